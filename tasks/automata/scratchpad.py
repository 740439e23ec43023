"""Words with their answers in between: σ_1, y_1, σ_2, y_2, …, σ_T, so that each answer needs only the one before it and one token.

Liu's thesis (CMU-ML-24-110), 3.4.5.2.3: the loss is of the positions of the σ alone, and at inference the model's own answers are filled
in one after the other. Answer y is token S + y, where S is the number of tokens of the word.
"""

import torch
from torch import Tensor

from tasks.batch import Batch
from tasks.task import Forward


def interleaved(batch: Batch, tokens: int) -> Batch:
    """A batch of words of T tokens of `tokens` kinds as one of 2T - 1 positions, of which the even ones are scored."""

    def between(even: Tensor, odd: Tensor) -> Tensor:
        return torch.stack([even, odd], dim=-1).flatten(-2)[..., :-1]

    return Batch(
        between(batch.inputs, tokens + batch.targets),
        between(batch.targets, torch.zeros_like(batch.targets)),
        between(batch.weights, torch.zeros_like(batch.weights)),
        {name: between(values, values) for name, values in batch.about.items()},
    )


def autoregressive(forward: Forward, inputs: Tensor, tokens: int) -> Tensor:
    """Logits [R, B, T, V] of the T even positions of inputs [R, B, 2T - 1], whose answers are not read: the model's own stand there.

    T passes over longer and longer prefixes, so the model must be causal.
    """
    filled = inputs.clone(memory_format=torch.contiguous_format)
    logits = []
    for position in range(0, inputs.shape[-1], 2):
        last = torch.full((*inputs.shape[:-1], 1), position, device=inputs.device)
        logits.append(forward(filled[..., : position + 1], (last,)))
        if position + 1 < inputs.shape[-1]:
            filled[..., position + 1] = tokens + logits[-1][..., 0, :].argmax(-1)
    return torch.cat(logits, dim=-2)
