"""Strings of fair bits, and strings whose only answer is a class wanted at the last position."""

import torch
from torch import Tensor

from tasks.batch import Batch
from tasks.draws import Draw


def bits(draw: Draw, batch: int, length: int) -> Tensor:
    """Fair bits, int64 [R, B, T]: 32 of each word of the draw, the least significant first."""
    words = draw.words((batch, -(-length // 32)), 0)
    unpacked = words[..., None] >> torch.arange(32, device=words.device) & 1
    return unpacked.flatten(-2)[..., :length].contiguous()


def at_the_end(inputs: Tensor, classes: Tensor) -> Batch:
    """The batch of strings [R, B, T] whose class [R, B] is wanted at the last position."""
    targets, weights = torch.zeros_like(inputs), torch.zeros(inputs.shape, device=inputs.device)
    targets[..., -1] = classes
    weights[..., -1] = 1
    return Batch(inputs, targets, weights, {})
