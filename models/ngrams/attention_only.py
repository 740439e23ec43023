"""The attention-only transformers of Varre et al. 2025, "Learning in-context n-grams with transformers" (section 2, appendices F and I).

`Disentangled` is Definition 2.2 (outputs are appended, not added), `AttentionOnly` the residual model of Figure 4 and `AttentionMLP`
that of Figure 7. No attention here is divided by √d. The model that they analyse is in `models.ngrams.disentangled`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from models.aligned import product
from models.draws import Draw
from models.linear import embed, parameter
from models.model import Attend, Blocks, Model, refuse_unlisted
from models.ngrams.disentangled import FLOOR, refuse_length, refuse_width
from models.noise import Noise
from models.plain_attention import at_positions, attention


@dataclass(frozen=True)
class Disentangled(Model):
    """heads: of each layer; embed: one_hot (fixed) | learned, the token's and the position's vectors side by side.

    qk_width: rows of Q and K of a head, default the width that the layer reads; w_init: normal | zero, of the read-out; output: linear
    (logits z) | log (logits log(|z| + 1e-8), appendix F.1).
    """

    attends: ClassVar[bool] = True

    heads: tuple[int, ...] = (2, 1)
    embed: str = "one_hot"
    qk_width: int | None = None
    w_init: str = "normal"
    output: str = "linear"

    def __post_init__(self) -> None:
        object.__setattr__(self, "heads", _layers(self.heads))
        refuse_width(self.qk_width)
        refuse_unlisted(self, {"embed": ("one_hot", "learned"), "w_init": ("normal", "zero"), "output": ("linear", "log")})
        if self.output == "log" and self.w_init == "zero":
            raise ValueError("model.w_init = 'zero' with model.output = 'log' has no gradient: choose w_init = 'normal'")

    def make(self, draw: Draw, vocabulary: int, length: int, outputs: int | None = None) -> "Appending":
        return Appending(self, draw, vocabulary, length, _classes(vocabulary, outputs))


@dataclass(frozen=True)
class AttentionOnly(Model):
    """heads: of each layer; embed: one_hot (token and position side by side, fixed) | learned (two tables added).

    The width is vocabulary + length. w_init: zero (loss starts at ln S exactly, as in Figure 4) | normal, of the read-out.
    """

    attends: ClassVar[bool] = True
    mlp: ClassVar[bool] = False

    heads: tuple[int, ...] = (2, 1)
    embed: str = "one_hot"
    w_init: str = "zero"

    def __post_init__(self) -> None:
        object.__setattr__(self, "heads", _layers(self.heads))
        refuse_unlisted(self, {"embed": ("one_hot", "learned"), "w_init": ("zero", "normal")})

    def make(self, draw: Draw, vocabulary: int, length: int, outputs: int | None = None) -> "Adding":
        return Adding(self, draw, vocabulary, length, _classes(vocabulary, outputs))


@dataclass(frozen=True)
class AttentionMLP(AttentionOnly):
    """As `AttentionOnly`, but each layer's summed heads pass through d → d → d with ReLU before they are added (Figure 7)."""

    mlp: ClassVar[bool] = True

    w_init: str = "normal"


class _Layers(nn.Module, ABC):
    """What `Appending` and `Adding` share; tokens [R, B, T] → logits [R, B, T, V], with `needed` [R, B, sum of K, V]."""

    def __init__(self, length: int, layers: list["_Heads"]):
        super().__init__()
        self.length = length
        self.layers = nn.ModuleList(layers)

    def forward(
        self, tokens: Tensor, needed: Blocks = None, noise: Noise | None = None, attend: Attend | None = None
    ) -> Tensor:
        refuse_length(tokens, self.length)
        replicates, batch = tokens.shape[:2]
        x = self._embedded(tokens)
        *others, last = range(len(self.layers))
        for i in others:
            x, weights = self._layer(i, x, batch, x, None)
            if attend is not None:
                attend(i, weights)
        rows = at_positions(partial(self._layer, last, x, batch), x, needed, attend, last)
        return torch.cat([self._logits(part).reshape(replicates, batch, part.shape[1] // batch, -1) for part in rows], dim=2)

    def _layer(self, i: int, x: Tensor, batch: int, queries: Tensor, positions: Tensor | None) -> tuple[Tensor, Tensor]:
        read, weights = self.layers[i](x, queries, batch, positions)
        return self._joined(i, queries, read), weights

    @abstractmethod
    def _embedded(self, tokens: Tensor) -> Tensor:
        """[R, B, T] → [R, B·T, D]"""

    @abstractmethod
    def _joined(self, i: int, x: Tensor, read: Tensor) -> Tensor:
        """The layer's output from its input x [R, B·K, D] and what its heads read, [R, B, H, K, D]."""

    @abstractmethod
    def _logits(self, x: Tensor) -> Tensor:
        """[R, N, D] → [R, N, V]"""


class Appending(_Layers):
    """r_ℓ = [r_{ℓ-1}, what head 1 read, …, what head h read]; logits r_L U (Definition 2.2)."""

    def __init__(self, config: Disentangled, draw: Draw, vocabulary: int, length: int, outputs: int):
        width, layers = vocabulary + length, []
        scale = width**-0.5
        for i, heads in enumerate(config.heads):
            layers.append(_Heads(draw, f"layers.{i}", width, config.qk_width or width, heads))
            width *= 1 + heads
        super().__init__(length, layers)
        self.config, self.vocabulary = config, vocabulary
        if config.embed == "learned":
            self.tokens = parameter(draw, "tokens", (vocabulary, vocabulary), "normal", scale)
            self.positions = parameter(draw, "positions", (length, length), "normal", scale)
        self.head = _read_out(draw, width, outputs, config.w_init)

    def _embedded(self, tokens: Tensor) -> Tensor:
        if self.config.embed == "one_hot":
            return _one_hot_embedding(tokens, self.vocabulary, self.length, self.head.dtype)
        positions = self.positions[:, None, : tokens.shape[2]].expand(-1, tokens.shape[1], -1, -1)
        return torch.cat([embed(self.tokens, tokens), positions], dim=-1).flatten(1, 2)

    def _joined(self, i: int, x: Tensor, read: Tensor) -> Tensor:
        return torch.cat([x, read.transpose(2, 3).reshape(x.shape[0], x.shape[1], -1)], dim=-1)

    def _logits(self, x: Tensor) -> Tensor:
        out = product(x, self.head)
        return out if self.config.output == "linear" else torch.log(out.abs() + FLOOR)


class Adding(_Layers):
    """x ← x + f(Σ_h σ(x Q_h K_h x) x V_h), f the identity or an MLP; logits x W (Figures 4 and 7)."""

    def __init__(self, config: AttentionOnly, draw: Draw, vocabulary: int, length: int, outputs: int):
        width = vocabulary + length
        layers = [_Heads(draw, f"layers.{i}", width, width, heads) for i, heads in enumerate(config.heads)]
        super().__init__(length, layers)
        self.config, self.vocabulary = config, vocabulary
        if config.embed == "learned":
            self.tokens = parameter(draw, "tokens", (vocabulary, width), "normal", width**-0.5)
            self.positions = parameter(draw, "positions", (length, width), "normal", width**-0.5)
        self.mlps = nn.ModuleList(_TwoMaps(draw, width) for _ in layers) if config.mlp else None
        self.head = _read_out(draw, width, outputs, config.w_init)

    def _embedded(self, tokens: Tensor) -> Tensor:
        if self.config.embed == "one_hot":
            return _one_hot_embedding(tokens, self.vocabulary, self.length, self.head.dtype)
        return (embed(self.tokens, tokens) + self.positions[:, None, : tokens.shape[2]]).flatten(1, 2)

    def _joined(self, i: int, x: Tensor, read: Tensor) -> Tensor:
        parts = list(read.unbind(2))
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        total = total.flatten(1, 2)
        return x + (total if self.mlps is None else self.mlps[i](total))

    def _logits(self, x: Tensor) -> Tensor:
        return product(x, self.head)


class _Heads(nn.Module):
    """σ(x Q_h K_h x) x V_h for each head; Q, K [R, D, H·E] and V [R, D, H·D] are N(0, 1/D)."""

    def __init__(self, draw: Draw, name: str, width: int, inner: int, heads: int):
        super().__init__()
        self.heads = heads
        self.query = parameter(draw, f"{name}.query", (width, heads * inner), "normal", width**-0.5)
        self.key = parameter(draw, f"{name}.key", (width, heads * inner), "normal", width**-0.5)
        self.value = parameter(draw, f"{name}.value", (width, heads * width), "normal", width**-0.5)

    def forward(self, x: Tensor, queries: Tensor, batch: int, positions: Tensor | None) -> tuple[Tensor, Tensor]:
        query, key, value = product(queries, self.query), product(x, self.key), product(x, self.value)
        return attention(query, key, value, batch, self.heads, positions, 1.0)


class _TwoMaps(nn.Module):
    """x [R, N, D] → relu(x W1 + √D b1) W2 + √D b2, the paper's code: W1 ~ N(0, 1/D), the rest zero.

    Both layers of a model draw W1 under one name: the code gave both the same random key.
    """

    def __init__(self, draw: Draw, width: int):
        super().__init__()
        self.up = parameter(draw, "mlp.up", (width, width), "normal", width**-0.5)
        self.up_bias = parameter(draw, "mlp.up_bias", (width,), "constant", 0.0)
        self.down = parameter(draw, "mlp.down", (width, width), "constant", 0.0)
        self.down_bias = parameter(draw, "mlp.down_bias", (width,), "constant", 0.0)

    def forward(self, x: Tensor) -> Tensor:
        scale = math.sqrt(x.shape[-1])
        hidden = torch.relu(product(x, self.up, self.up_bias * scale))
        return product(hidden, self.down, self.down_bias * scale)


def _one_hot_embedding(tokens: Tensor, vocabulary: int, length: int, dtype: torch.dtype) -> Tensor:
    """[one-hot token ; one-hot position], [R, B·T, V + length]."""
    positions = one_hot(torch.arange(tokens.shape[2], device=tokens.device), length).expand(*tokens.shape, -1)
    return torch.cat([one_hot(tokens, vocabulary), positions], dim=-1).flatten(1, 2).to(dtype)


def _read_out(draw: Draw, width: int, outputs: int, initial: str) -> nn.Parameter:
    law, scale = ("constant", 0.0) if initial == "zero" else ("normal", width**-0.5)
    return parameter(draw, "head", (width, outputs), law, scale)


def _layers(heads: Sequence[int]) -> tuple[int, ...]:
    if not isinstance(heads, tuple | list) or not heads or min(heads) < 1:
        raise ValueError(f"model.heads = {heads!r} must list the heads of each layer, at least 1 in each, such as [2, 1]")
    return tuple(heads)


def _classes(vocabulary: int, outputs: int | None) -> int:
    if outputs is not None and outputs < 1:
        raise ValueError(f"a model needs at least 1 output, not {outputs}")
    return vocabulary if outputs is None else outputs
