"""The loss of every replicate of a pack on a batch of strings."""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, kl_div

from harness.training.loss_positions import Needed
from harness.training.training_strings import Strings


def mean_losses(logits: Tensor, strings: Strings) -> Tensor:
    """Mean over each replicate's scored positions of the cross-entropy with the class or, where labels are laws, with the law; or of the
    divergence from a teacher, KL(teacher || student); [R].

    logits: [R, B, N, V], or [R, B, N, K, V] where a position has K tokens, whose sum then counts.
    """
    wanted = strings.needed
    if strings.soft is not None:
        surprise = kl_div(logits.log_softmax(-1), strings.soft, reduction="none").sum(-1)
    elif wanted.targets.is_floating_point():
        surprise = -(wanted.targets * logits.log_softmax(-1)).sum(-1)
    else:
        surprise = cross_entropy(logits.flatten(0, -2), wanted.targets.flatten(), reduction="none")
        surprise = surprise.view(wanted.targets.shape)
    if surprise.dim() > wanted.weights.dim():
        surprise = surprise.flatten(3).sum(-1)
    surprise = surprise * wanted.weights
    # block by block, then string by string: a further block adds exact zeros where it holds nothing
    total = sum(part.sum(-1) for part in surprise.split(block_sizes(wanted), dim=-1))
    # a batch of which nothing is scored has loss 0 and no gradient
    return total.sum(-1) / summed(wanted.weights, wanted).clamp(min=torch.finfo(torch.float32).tiny)


def block_sizes(wanted: Needed) -> list[int]:
    """How many of the needed positions each block holds."""
    return [wanted.weights.shape[-1]] if wanted.blocks is None else [block.shape[-1] for block in wanted.blocks]


def summed(values: Tensor, wanted: Needed) -> Tensor:
    """Sum over each replicate's needed positions, values [R, B, N] → [R], in an order that no other replicate's strings change.

    A sum over all N at once is rounded otherwise where another replicate, or another step that was drawn with this one, has a further
    block; so is one over a block that is a slice of more.
    """
    parts = values.split(block_sizes(wanted), dim=-1)
    total = parts[0].contiguous().sum((-1, -2))
    for part in parts[1:]:
        total = total + part.contiguous().sum((-1, -2))
    return total
