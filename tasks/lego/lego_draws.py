"""What a LEGO sentence is made of: different names, and the values along a chain of actions."""

import torch
from torch import Tensor

from tasks.lego.group_actions import GroupAction

_AT_ONCE = 4096  # sentences whose names are drawn at once: their pools stay in the cache


def values_after(action: GroupAction, actions: Tensor, start: Tensor) -> Tensor:
    """The value after each of the actions int64 [..., L] on the values `start` [...], [..., L]."""
    table = action.table.flatten().to(actions.device)
    along = (actions * action.values).movedim(-1, 0).contiguous()
    values, value = torch.empty_like(along), start
    for step, row in enumerate(along):
        value = values[step] = table[row + value]
    return values.movedim(0, -1)


def different(words: Tensor, size: int) -> Tensor:
    """Different numbers of 0 … size - 1 in random order from words [R, B, N], by the first N swaps of Fisher and Yates' shuffle."""
    along = words.flatten(0, -2)
    return torch.cat([_shuffled(part, size) for part in along.split(_AT_ONCE)]).view(words.shape)


def _shuffled(words: Tensor, size: int) -> Tensor:
    count = words.shape[1]
    # a place for each number, place by place: [size, N], so that what a swap reads first is in order
    pool = torch.arange(size, dtype=torch.int32, device=words.device)[:, None].repeat(1, len(words))
    places = torch.arange(count, device=words.device) + (words * (size - torch.arange(count, device=words.device)) >> 32)
    for i, place in enumerate(places.T.contiguous()):
        chosen = pool.gather(0, place[None])
        pool.scatter_(0, place[None], pool[i : i + 1].clone())
        pool[i] = chosen[0]
    return pool[:count].T.to(torch.int64)
