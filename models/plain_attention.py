"""Causal attention written out (scores, softmax, sum), for small models whose attention weights are studied."""

from collections.abc import Callable

import torch
from torch import Tensor

from models.aligned import product
from models.model import Attend, Blocks


def attention(
    query: Tensor, key: Tensor, value: Tensor, batch: int, heads: int, positions: Tensor | None, scale: float
) -> tuple[Tensor, Tensor]:
    """The values that the queries read, [R, B, H, K, F], and the attention weights, softmax(scale · query · key), [R, B, H, K, T].

    query [R, B·K, H·E]: of `positions` [R, B, K] (None: of all, K = T); it sees no later position. key [R, B·T, H·E], value
    [R, B·T, H·F]: of all T positions.
    """
    replicates, length = key.shape[0], key.shape[1] // batch
    query, key, value = (_split(part, batch, heads) for part in (query, key, value))
    scores = product(query, key.transpose(1, 2)).view(replicates, batch, heads, -1, length) * scale
    weights = (scores + hidden(scores, positions)).softmax(-1)
    read = product(weights.flatten(0, 2), value)
    return read.reshape(*scores.shape[:-1], value.shape[-1]), weights


def hidden(scores: Tensor, positions: Tensor | None) -> Tensor:
    """The causal mask to add to scores [R, B, H, K, T]: -inf where the key is later than the query, else 0.

    positions [R, B, K]: of the queries (None: all, K = T). Filling -inf in would cost the backward pass another pass over memory.
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
    """Run a model's last layer at the needed positions alone: one tensor [R, B·K, F] for each block, or one for all positions.

    Where attention is handed out, all positions are computed and the needed ones picked. layer(queries [R, B·K, D], positions [R, B, K] or
    None for all) returns answers [R, B·K, F] and attention. number: of the layer.
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
