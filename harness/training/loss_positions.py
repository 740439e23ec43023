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
    """The positions that a loss or a score needs.

    blocks: the positions, [R, B, K] each, or None for all T; order [R, B, N]: the same as one tensor; targets [R, B, N, …] and weights [R,
    B, N]: those at these positions.
    """

    blocks: tuple[Tensor, ...] | None
    targets: Tensor
    weights: Tensor
    order: Tensor | None

    def of(self, values: Tensor) -> Tensor:
        """Values [R, B, T, …] at these positions, [R, B, N, …]; values [R, B, 1, …] are those of every position."""
        return values if self.order is None else _at(values, self.order)


def needed(batch: Batch, count: int | None) -> Needed:
    """The scored positions of a batch in blocks of `count` (None: every position)."""
    if count is None:
        return Needed(None, batch.targets, batch.weights, None)
    scored = batch.weights > 0
    blocks = max(1, -(-int(scored.sum(-1).max()) // count))
    # of the first position alone no order is needed
    order = scored.byte().argmax(-1, keepdim=True) if blocks * count == 1 else _scored_first(scored)[..., : blocks * count]
    return _gathered(order, _at(batch.targets, order), batch.weights.gather(-1, order), count)


def slices(whole: Needed, steps: int) -> list[Needed]:
    """A chunk whose leading axis is steps · R as one `Needed` a step, each with the blocks that its own strings fill."""
    targets, weights = whole.targets.chunk(steps), whole.weights.chunk(steps)
    if whole.blocks is None or whole.order is None:
        return [Needed(None, *pair, None) for pair in zip(targets, weights, strict=True)]
    count = whole.blocks[0].shape[-1]
    if len(whole.blocks) == 1:
        most = [1] * steps
    else:
        filled = (whole.weights > 0).sum(-1).view(steps, -1).amax(1).tolist()
        most = [max(1, -(-number // count)) for number in filled]
    orders = whole.order.chunk(steps)
    out = []
    for number, part in zip(most, zip(orders, targets, weights, strict=True), strict=True):
        order, target, weight = (values[:, :, : number * count] for values in part)
        out.append(_gathered(order, target, weight, count))
    return out


def _scored_first(scored: Tensor) -> Tensor:
    """The positions of each string, the scored ones first, both in order: a stable sort by counting. bool [..., T] → int64 [..., T]"""
    index = torch.arange(scored.shape[-1], device=scored.device)
    before = scored.cumsum(-1)
    rank = torch.where(scored, before - 1, before[..., -1:] + index - before)
    return torch.empty_like(rank).scatter_(-1, rank, index.expand_as(rank))


def first_block(whole: Needed, count: int) -> Needed:
    """The first `count` of the positions, as one block."""
    if whole.order is None:
        return whole
    return _gathered(whole.order[..., :count], whole.targets[:, :, :count], whole.weights[..., :count], count)


def twice(values: Tensor, most: int) -> Tensor:
    """[R, B, K, …] with the positions repeated: 2K of them, but at most `most`."""
    return torch.cat([values, values], 2)[:, :, :most]


def two_blocks(whole: Needed, most: int) -> Needed:
    """The same positions again in a second block, in the shape of strings with more than K: 2K positions, but at most `most`."""
    if whole.order is None or whole.blocks is None:
        raise ValueError("all positions are one block")
    order, targets, weights = (twice(values, most) for values in (whole.order, whole.targets, whole.weights))
    return _gathered(order, targets, weights, whole.blocks[0].shape[-1])


def _at(values: Tensor, order: Tensor) -> Tensor:
    """values [R, B, T, …] at positions [R, B, N], [R, B, N, …]; [R, B, 1, …] are those of every position."""
    index = order.view(*order.shape, *[1] * (values.dim() - order.dim())).expand(*order.shape, *values.shape[3:])
    return values.gather(2, torch.zeros_like(index) if values.shape[2] == 1 else index)


def _gathered(order: Tensor, targets: Tensor, weights: Tensor, count: int) -> Needed:
    return Needed(order.split(count, dim=-1), targets, weights, order)
