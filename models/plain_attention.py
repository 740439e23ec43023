"""Causal attention written out (scores, softmax, sum), for the small models whose weights are looked at."""

from collections.abc import Callable

import torch
from torch import Tensor

from models.aligned import product
from models.model import Attend, Blocks


def attention(
    query: Tensor, key: Tensor, value: Tensor, batch: int, heads: int, positions: Tensor | None, scale: float
) -> tuple[Tensor, Tensor]:
    """What the queries read and the weights they read it with: [R, B, H, K, F] and [R, B, H, K, T].

    query [R, B·K, H·E] stands at `positions` [R, B, K] (None: at all, K = T) and sees no later one; key [R, B·T, H·E] and value
    [R, B·T, H·F] are of all T positions. weights = softmax(scale · query · key).
    """
    replicates, length = key.shape[0], key.shape[1] // batch
    query, key, value = (_split(part, batch, heads) for part in (query, key, value))
    scores = product(query, key.transpose(1, 2)).view(replicates, batch, heads, -1, length) * scale
    weights = (scores + hidden(scores, positions)).softmax(-1)
    read = product(weights.flatten(0, 2), value)
    return read.reshape(*scores.shape[:-1], value.shape[-1]), weights


def hidden(scores: Tensor, positions: Tensor | None) -> Tensor:
    """-inf where a query sees no key, since that stands behind it, else 0; to be added to scores [R, B, H, K, T] of queries at
    `positions` [R, B, K] (None: at all, K = T). Filled in instead, it would take another pass over memory on the way back.
    """
    index = torch.arange(scores.shape[-1], device=scores.device)
    behind = index > (index[:, None] if positions is None else positions[:, :, None, :, None])
    return torch.zeros(behind.shape, dtype=scores.dtype, device=scores.device).masked_fill_(behind, -torch.inf)


def pick(x: Tensor, needed: Tensor) -> Tensor:
    """The rows of x [R, B·T, D] at `needed` [R, B, K], as [R, B·K, D]."""
    replicates, batch, _ = needed.shape
    length = x.shape[1] // batch
    rows = (torch.arange(batch, device=x.device)[:, None] * length + needed).reshape(replicates, -1)
    return x.gather(1, rows[..., None].expand(-1, -1, x.shape[-1]))


def at_positions(
    layer: Callable[[Tensor, Tensor | None], tuple[Tensor, Tensor]],
    x: Tensor,
    needed: Blocks,
    attend: Attend | None,
    number: int = 0,
) -> list[Tensor]:
    """What the last layer of a model answers at the asked positions, a tensor a block; all are computed where attention is handed out.

    layer(queries [R, B·K, D], positions [R, B, K] or None for all): answers [R, B·K, F] and attention. number: of the layer.
    """
    if needed is not None and attend is None:
        return [layer(pick(x, block), block)[0] for block in needed]
    whole, weights = layer(x, None)
    if attend is not None:
        attend(number, weights)
    return [whole] if needed is None else [pick(whole, block) for block in needed]


def _split(x: Tensor, batch: int, heads: int) -> Tensor:
    """[R, B·N, H·E] → [R·B·H, N, E]"""
    x = x.view(x.shape[0], batch, -1, heads, x.shape[-1] // heads)
    return x.transpose(2, 3).reshape(-1, x.shape[2], x.shape[-1])
