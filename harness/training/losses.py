"""The loss of every replicate of a pack on a batch of strings."""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, kl_div

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
    sizes = [wanted.weights.shape[-1]] if wanted.blocks is None else [block.shape[-1] for block in wanted.blocks]
    total = sum(part.sum(-1) for part in surprise.split(sizes, dim=-1))
    # a batch of which nothing is scored has loss 0 and no gradient
    return total.sum(-1) / wanted.weights.sum((-1, -2)).clamp(min=torch.finfo(torch.float32).tiny)
