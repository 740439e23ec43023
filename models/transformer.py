"""A GPT-style decoder with a replicate axis on everything.

The canonical flip-flop baseline (Liu et al. 2023, section 3.5.6 of the thesis) is the x-transformers decoder of its time: pre-norm, GELU
feed-forward of 4·D, no bias in attention, learned absolute positions scaled by D^-1/2, final norm, untied head with bias; 19,170,309
parameters at 6 layers, width 512 and length 512.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, layer_norm, relu, scaled_dot_product_attention

from models.linear import Linear, Norm, embed, parameter

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"gelu": gelu, "relu": relu}


@dataclass(frozen=True)
class Transformer:
    """layers L, width D, heads H, head_dim (default D/H), positions learned | none, activation gelu | relu, norm pre | none."""

    rev: ClassVar[int] = 1

    layers: int = 6
    width: int = 512
    heads: int = 8
    head_dim: int | None = None
    positions: str = "learned"
    activation: str = "gelu"
    norm: str = "pre"

    def __post_init__(self) -> None:
        for name in ("layers", "width", "heads"):
            if getattr(self, name) < 1:
                raise ValueError(f"model.{name} = {getattr(self, name)} must be at least 1")
        if self.head_dim is None and self.width % self.heads:
            raise ValueError(
                f"model.heads = {self.heads} does not divide model.width = {self.width}: change one or give model.head_dim"
            )
        if self.head_dim is not None and self.head_dim < 1:
            raise ValueError(f"model.head_dim = {self.head_dim} must be at least 1")
        for name, known in (("positions", ("learned", "none")), ("activation", tuple(ACTIVATIONS)), ("norm", ("pre", "none"))):
            if getattr(self, name) not in known:
                raise ValueError(f"model.{name} = {getattr(self, name)!r} must be one of {', '.join(known)}")

    def make(self, draw, vocabulary: int, length: int) -> "Decoder":
        return Decoder(self, draw, vocabulary, length)


class Decoder(nn.Module):
    """tokens [R, B, T] → logits [R, B, T, V]; with `needed`, blocks of positions [R, B, K] each → [R, B, sum of K, V]."""

    def __init__(self, config: Transformer, draw, vocabulary: int, length: int):
        super().__init__()
        self.config, self.length = config, length
        width = config.width
        # kaiming_normal_ of a [V, D] table: fan_in = D
        self.tokens = parameter(draw, "tokens", (vocabulary, width), "normal", (2 / width) ** 0.5)
        self.positions = parameter(draw, "positions", (length, width), "normal", 1.0) if config.positions == "learned" else None
        self.blocks = nn.ModuleList(Block(config, draw, f"blocks.{i}") for i in range(config.layers))
        self.norm = Norm(draw, "norm", width) if config.norm == "pre" else None
        self.head = Linear(draw, "head", width, vocabulary)

    def forward(self, tokens: Tensor, needed: Sequence[Tensor] | None = None) -> Tensor:
        _, batch, length = tokens.shape
        if length > self.length:
            raise ValueError(f"strings of {length} tokens are longer than the {self.length} positions of this model")
        x = embed(self.tokens, tokens)
        if self.positions is not None:
            x = x + (self.positions[:, :length] * self.config.width**-0.5)[:, None]
        x = x.flatten(1, 2)  # [R, B·T, D]
        for block in self.blocks[:-1]:
            x = block(x, batch)
        if needed is None:
            return self._logits(self.blocks[-1](x, batch), batch)
        # block by block: another K would change the bits of every weight gradient
        last = cast(Block, self.blocks[-1])
        return torch.cat([self._logits(last.at(x, block), batch) for block in needed], dim=2)

    def _logits(self, x: Tensor, batch: int) -> Tensor:
        if self.norm is None:
            logits = self.head(x)
        else:
            weight, bias = self.norm.fold(self.head.weight, self.head.bias)
            logits = torch.baddbmm(bias[:, None], layer_norm(x, x.shape[-1:]), weight)
        return logits.view(x.shape[0], batch, -1, logits.shape[-1])


class Block(nn.Module):
    """One pre-norm layer: x + attention(norm(x)), then + feed-forward(norm(x)); x [R, B·T, D]."""

    def __init__(self, config: Transformer, draw, name: str):
        super().__init__()
        self.heads, self.head_dim = config.heads, config.head_dim or config.width // config.heads
        inner = self.heads * self.head_dim
        self.activation = ACTIVATIONS[config.activation]
        self.norm1 = Norm(draw, f"{name}.norm1", config.width) if config.norm == "pre" else None
        self.norm2 = Norm(draw, f"{name}.norm2", config.width) if config.norm == "pre" else None
        self.query = Linear(draw, f"{name}.query", config.width, inner, bias=False)
        self.key = Linear(draw, f"{name}.key", config.width, inner, bias=False)
        self.value = Linear(draw, f"{name}.value", config.width, inner, bias=False)
        self.out = Linear(draw, f"{name}.out", inner, config.width, bias=False)
        self.up = Linear(draw, f"{name}.up", config.width, 4 * config.width)
        self.down = Linear(draw, f"{name}.down", 4 * config.width, config.width)

    def forward(self, x: Tensor, batch: int) -> Tensor:
        length = x.shape[1] // batch
        query, key, value = self._project(self._normalised(x), (self.query, self.key, self.value))
        query, key, value = (self._heads(part, length) for part in (query, key, value))
        attended = scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(self._join(attended, x.shape[0]))
        return x + self._feed_forward(x)

    def at(self, x: Tensor, needed: Tensor) -> Tensor:
        """The outputs at `needed` [R, B, K] alone, [R, B·K, D]: keys and values everywhere, the rest only there."""
        replicates, batch, count = needed.shape
        length = x.shape[1] // batch
        rows = (torch.arange(batch, device=x.device)[:, None] * length + needed).reshape(replicates, -1)
        pick = rows[..., None].expand(-1, -1, x.shape[-1])
        normal = self._normalised(x)
        (query,) = self._project(normal.gather(1, pick), (self.query,))
        key, value = self._project(normal, (self.key, self.value))
        visible = torch.arange(length, device=x.device) <= needed.reshape(-1, 1, count, 1)  # [R·B, 1, K, T]
        attended = scaled_dot_product_attention(
            self._heads(query, count), self._heads(key, length), self._heads(value, length), attn_mask=visible
        )
        x = x.gather(1, pick) + self.out(self._join(attended, replicates))
        return x + self._feed_forward(x)

    def _normalised(self, x: Tensor) -> Tensor:
        return x if self.norm1 is None else layer_norm(x, x.shape[-1:])

    def _project(self, normal: Tensor, maps: tuple[Linear, ...]) -> tuple[Tensor, ...]:
        """Several maps of the same input as one product; [R, N, D] → [R, N, H·K] each."""
        weight = torch.cat([one.weight for one in maps], dim=-1)
        if self.norm1 is None:
            out = torch.bmm(normal, weight)
        else:
            weight, bias = self.norm1.fold(weight, None)
            out = torch.baddbmm(bias[:, None], normal, weight)
        return out.chunk(len(maps), dim=-1)

    def _feed_forward(self, x: Tensor) -> Tensor:
        if self.norm2 is None:
            hidden = self.up(x)
        else:
            weight, bias = self.norm2.fold(self.up.weight, self.up.bias)
            hidden = torch.baddbmm(bias[:, None], layer_norm(x, x.shape[-1:]), weight)
        return self.down(self.activation(hidden))

    def _heads(self, x: Tensor, length: int) -> Tensor:
        """[R, B·T, H·K] → [R·B, H, T, K]"""
        return x.reshape(-1, length, self.heads, self.head_dim).transpose(1, 2)

    def _join(self, x: Tensor, replicates: int) -> Tensor:
        """[R·B, H, T, K] → [R, B·T, H·K]"""
        return x.transpose(1, 2).reshape(replicates, -1, self.heads * self.head_dim)
