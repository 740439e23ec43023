"""Which positions the loss and the scores need, in blocks of K.

K belongs to the task's distribution, never to a batch or a pack: another K would change the bits of weight gradients. A string with more
than K scored positions is finished in further blocks, which add exact zeros for every other replicate.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from tasks.batch import Batch


@dataclass(frozen=True)
class Needed:
    """blocks: positions [R, B, K] each, or None = all T; targets and weights [R, B, N] and `order` [R, B, N] of the same positions."""

    blocks: tuple[Tensor, ...] | None
    targets: Tensor
    weights: Tensor
    order: Tensor | None

    def of(self, values: Tensor) -> Tensor:
        """[R, B, T] → [R, B, N]"""
        return values if self.order is None else values.gather(-1, self.order)


def needed(batch: Batch, count: int | None) -> Needed:
    """The scored positions of a batch in blocks of `count` (None: every position)."""
    if count is None:
        return Needed(None, batch.targets, batch.weights, None)
    scored = batch.weights > 0
    blocks = max(1, -(-int(scored.sum(-1).max()) // count))
    order = torch.argsort(~scored, dim=-1, stable=True)[..., : blocks * count]
    chosen = order.split(count, dim=-1)
    return Needed(chosen, batch.targets.gather(-1, order), batch.weights.gather(-1, order), order)
