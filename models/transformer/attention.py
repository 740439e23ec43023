"""Attention of a pack: fused unless its weights are needed, else written out. The two agree to float32 rounding."""

import math

import torch
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention

from models.aligned import LINE, product
from models.transformer.forward_pass import ATTENTION, Rows, Scene, site
from models.transformer.positions import ENCODINGS, rotate

STRINGS = 65_535  # most strings of one call: the grid of CUDA's attention kernels has no more places along this axis


def mix(query: Tensor, key: Tensor, value: Tensor, scene: Scene, layer: int, rows: Rows | None = None) -> Tensor:
    """query [R, B·Q, H·K], key and value [R, B·T, H·K] → the mixed values [R, B·Q, H·K], or their mean over heads [R, B·Q, K].

    The queries are those of all T positions, or of `rows` alone.
    """
    replicates, heads = len(query), scene.config.heads
    query = _heads(query, scene, _turns(scene, replicates, rows))
    key = _heads(key, scene, _turns(scene, replicates, None))
    value = _heads(value, scene, None)
    mask = scene.mask if rows is None else visible(scene, rows.needed.reshape(replicates * scene.batch, 1, -1, 1))
    sees = None
    if scene.hidden is not None and mask is not None:
        mask, sees = _opened(mask)
    if scene.explicit:
        mixed = _written_out(query, key, value, mask, sees, scene, layer, rows)
    else:
        mixed = _fused(query, key, value, mask, scene)
        mixed = mixed if sees is None else mixed.masked_fill(~sees, 0)
    mixed = mixed.transpose(1, 2)  # [R·B, Q, H, K]
    if scene.config.join == "average":
        return mixed.mean(2).reshape(replicates, -1, mixed.shape[-1])
    return mixed.reshape(replicates, -1, heads * mixed.shape[-1])


def visible(scene: Scene, queries: Tensor) -> Tensor | None:
    """The mask of queries at these positions, int64 [..., Q, 1], over all T keys.

    It is bool [..., Q, T], or scores to add [..., H, Q, T] where the encoding has a bias, or None where every query sees every key.
    """
    keys = torch.arange(scene.length, device=queries.device)
    bias = ENCODINGS[scene.config.positions].bias
    seen = keys <= queries if scene.config.causal else None
    if scene.hidden is not None:
        seen = ~scene.hidden if seen is None else seen & ~scene.hidden
    if bias is None:
        return seen
    added = bias((queries - keys).abs(), scene.config.heads)
    return added if seen is None else added.masked_fill(~seen, -math.inf)


def _opened(mask: Tensor) -> tuple[Tensor, Tensor]:
    """Let a query that sees nothing see everything: the new mask, and which queries saw something, bool [..., Q or 1, 1].

    A softmax over nothing is NaN, and so is its gradient; the caller sets what such a query reads to zero.
    """
    if mask.dtype == torch.bool:
        sees = mask.any(-1, keepdim=True)
        return mask | ~sees, sees
    sees = mask.isfinite().any(-1, keepdim=True)
    return mask.masked_fill(~sees, 0), sees


def _turns(scene: Scene, replicates: int, rows: Rows | None) -> tuple[Tensor, Tensor] | None:
    """Cosines and sines for all positions, [1 or R, 1, T, 1, K/2], or at `rows`, [R, B, K, 1, K/2]."""
    if scene.angles is None:
        return None
    cos, sin = scene.angles
    if rows is None:
        return cos[:, None, :, None], sin[:, None, :, None]
    replicate = torch.arange(replicates, device=cos.device)[:, None, None]
    cos, sin = (part.expand(replicates, -1, -1)[replicate, rows.needed] for part in (cos, sin))
    return cos[..., None, :], sin[..., None, :]


def _heads(x: Tensor, scene: Scene, turns: tuple[Tensor, Tensor] | None) -> Tensor:
    """[R, B·T, H·K] → [R·B, H, T, K], rotated."""
    replicates, rows, _ = x.shape
    heads = scene.config.heads
    if turns is not None:
        x = rotate(x.reshape(replicates, scene.batch, rows // scene.batch, heads, -1), *turns)
    return x.reshape(replicates * scene.batch, rows // scene.batch, heads, -1).transpose(1, 2)


def _fused(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scene: Scene) -> Tensor:
    """Attention by torch's fused kernel: query [R·B, H, Q, K], key and value [R·B, H, T, K] → [R·B, H, Q, K]."""
    _, heads, count, head_dim = query.shape
    row = scene.batch * heads * head_dim
    if row * count % LINE or row * scene.length % LINE:
        # a replicate that begins inside a line of memory would have other bits at another place of the pack: see `aligned`
        query, key, value = (pad(part, (0, -head_dim % LINE)) for part in (query, key, value))
    if mask is not None and mask.dtype != torch.bool:
        mask = mask.to(query.dtype).expand(len(query), -1, -1, -1)
    causal = mask is None and scene.config.causal
    one_per_string = mask is not None and mask.dim() == 4 and len(mask) == len(query)
    masks = mask.split(STRINGS) if mask is not None and one_per_string else [mask]
    parts = [
        scaled_dot_product_attention(q, k, v, attn_mask=masks[i % len(masks)], is_causal=causal, scale=head_dim**-0.5)
        for i, (q, k, v) in enumerate(zip(query.split(STRINGS), key.split(STRINGS), value.split(STRINGS), strict=True))
    ]
    mixed = parts[0] if len(parts) == 1 else torch.cat(parts)
    return mixed if mixed.shape[-1] == head_dim else mixed[..., :head_dim]


def _written_out(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    sees: Tensor | None,
    scene: Scene,
    layer: int,
    rows: Rows | None,
) -> Tensor:
    """Attention step by step: query [R·B, H, Q, K], key and value [R·B, H, T, K] → [R·B, H, Q, K].

    The weights go to `attend` before dropout. They are all zero for a query that sees nothing (`sees` is false).
    """
    strings, heads, count, head_dim = query.shape
    scores = product(query.flatten(0, 1), key.flatten(0, 1).transpose(1, 2)) * head_dim**-0.5
    scores = scores.view(strings, heads, count, -1)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask
    weights = scores.softmax(-1)
    if sees is not None:
        weights = weights.masked_fill(~sees, 0)
    if scene.attend is not None:
        scene.attend(layer, weights.unflatten(0, (-1, scene.batch)))
    if scene.noise is not None and scene.drops("attention_dropout"):
        shape = (scene.batch, heads, scene.length, scene.length)
        factors = scene.noise.mask(shape, "attention_dropout", site(layer, ATTENTION))
        if rows is not None:
            factors = factors.gather(3, rows.needed[:, :, None, :, None].expand(-1, -1, heads, -1, scene.length))
        weights = weights * factors.flatten(0, 1)
    mixed = product(weights.flatten(0, 1).to(value.dtype), value.flatten(0, 1))
    return mixed.view(strings, heads, count, head_dim)
