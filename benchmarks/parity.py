"""Sparse parity as the benchmark needs it: random strings of bits, and the parity of the first six of them at the last position.

It stands in for a task of the studies, which has more to say (which bits, which set is kept back); the model and the cost are the same.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from tasks.batch import Batch
from tasks.task import Task

_BITS = 32  # of a word


@dataclass(frozen=True)
class SparseParity(Task):
    """Strings of `length` bits; the label is the parity of the first `relevant`."""

    metrics: ClassVar[tuple[str, ...]] = ("parity",)

    length: int = 100
    relevant: int = 6

    @property
    def error(self) -> str:
        return "a string whose most probable class is not the parity of its relevant bits"

    @property
    def vocabulary(self) -> int:
        return 2

    def scored_positions(self) -> int:
        return 1

    def sample(self, draw, batch: int) -> Batch:
        """inputs, targets and weights [R, B, T]; 32 bits of a string come from one word."""
        words = draw.words((batch, -(-self.length // _BITS)))
        bits = (words[..., None] >> torch.arange(_BITS, device=words.device) & 1).flatten(-2)[..., : self.length]
        targets, weights = torch.zeros_like(bits), torch.zeros(bits.shape, device=bits.device)
        targets[..., -1] = bits[..., : self.relevant].sum(-1) % 2
        weights[..., -1] = 1
        return Batch(bits, targets, weights, {})

    def wrong(self, logits: Tensor, targets: Tensor) -> dict[str, Tensor]:
        return {"parity": logits.argmax(-1) != targets}
