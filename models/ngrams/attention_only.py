"""The attention-only transformers of Varre et al. 2025, "Learning in-context n-grams with transformers" (section 2, appendices F and I).

`Disentangled` is Definition 2.2 (outputs are appended, not added), `AttentionOnly` the residual model of Figure 4 and `AttentionMLP`
that of Figure 7. No attention here is divided by √d. The model that they analyse is in `models.ngrams.disentangled`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot, pad

from models.aligned import product, whole_lines
from models.draws import Draw
from models.linear import embed, parameter
from models.model import Attend, Blocks, Model, refuse_unlisted
from models.ngrams.disentangled import FLOOR, refuse_length, refuse_width
from models.noise import Noise
from models.plain_attention import at_positions, hidden


@dataclass(frozen=True)
class Disentangled(Model):
    """Options of the model of Definition 2.2.

    heads: of each layer. embed: one_hot (fixed) | learned, the vectors of token and position side by side. qk_width: rows of Q and K of a
    head, by default the width that the layer reads. w_init: normal | zero, of the read-out. output: linear (logits z) | log (logits
    log(|z| + 1e-8), appendix F.1).
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
    """Options of the residual model of Figure 4, whose width is vocabulary + length.

    heads: of each layer. embed: one_hot (token and position side by side, fixed) | learned (two tables added). w_init: of the read-out,
    zero (the loss starts at ln S exactly, as in Figure 4) | normal.
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
    """Base of `Appending` and `Adding`: tokens [R, B, T] → logits [R, B, T, V], with `needed` [R, B, sum of K, V]."""

    def __init__(self, vocabulary: int, length: int, one_hot_input: bool, layers: list["_Heads"]):
        super().__init__()
        self.vocabulary, self.length, self.one_hot_input = vocabulary, length, one_hot_input
        self.layers = nn.ModuleList(layers)

    def forward(
        self, tokens: Tensor, needed: Blocks = None, noise: Noise | None = None, attend: Attend | None = None
    ) -> Tensor:
        refuse_length(tokens, self.length)
        replicates, batch = tokens.shape[:2]
        x = self._embedded(tokens)
        *others, last = range(len(self.layers))
        for i in others:
            heads = cast(_Heads, self.layers[i])
            looked_up = i == 0 and self.one_hot_input
            read, weights = heads.of_one_hot(tokens, self.vocabulary) if looked_up else heads(x, x, batch, None)
            x = self._joined(i, x, read)
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
        super().__init__(vocabulary, length, config.embed == "one_hot", layers)
        self.config = config
        if config.embed == "learned":
            self.tokens = parameter(draw, "tokens", (vocabulary, vocabulary), "normal", scale)
            self.positions = parameter(draw, "positions", (length, length), "normal", scale)
        self.head = _read_out(draw, width, outputs, config.w_init)

    def _embedded(self, tokens: Tensor) -> Tensor:
        if self.one_hot_input:
            return _one_hot_embedding(tokens, self.vocabulary, self.length, self.head.dtype)
        positions = self.positions[:, None, : tokens.shape[2]].expand(-1, tokens.shape[1], -1, -1)
        return torch.cat([embed(self.tokens, tokens), positions], dim=-1).flatten(1, 2)

    def _joined(self, i: int, x: Tensor, read: Tensor) -> Tensor:
        heads = read[..., : x.shape[-1]].transpose(2, 3)
        return torch.cat([x, heads.reshape(*x.shape[:2], -1)], dim=-1)

    def _logits(self, x: Tensor) -> Tensor:
        out = product(x, self.head)
        return out if self.config.output == "linear" else torch.log(out.abs() + FLOOR)


class Adding(_Layers):
    """x ← x + f(Σ_h σ(x Q_h K_h x) x V_h), f the identity or an MLP; logits x W (Figures 4 and 7).

    x is padded with zeros from D numbers to whole lines (`models.aligned`).
    """

    def __init__(self, config: AttentionOnly, draw: Draw, vocabulary: int, length: int, outputs: int):
        width = vocabulary + length
        layers = [_Heads(draw, f"layers.{i}", width, width, heads) for i, heads in enumerate(config.heads)]
        super().__init__(vocabulary, length, config.embed == "one_hot", layers)
        self.config = config
        if config.embed == "learned":
            self.tokens = parameter(draw, "tokens", (vocabulary, width), "normal", width**-0.5)
            self.positions = parameter(draw, "positions", (length, width), "normal", width**-0.5)
        self.mlps = nn.ModuleList(_TwoMaps(draw, width) for _ in layers) if config.mlp else None
        self.head = _read_out(draw, width, outputs, config.w_init)

    def _embedded(self, tokens: Tensor) -> Tensor:
        if self.one_hot_input:
            x = _one_hot_embedding(tokens, self.vocabulary, self.length, self.head.dtype)
        else:
            x = (embed(self.tokens, tokens) + self.positions[:, None, : tokens.shape[2]]).flatten(1, 2)
        return pad(x, (0, whole_lines(x.shape[-1]) - x.shape[-1]))

    def _joined(self, i: int, x: Tensor, read: Tensor) -> Tensor:
        parts = list(read.unbind(2))
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        total = total.flatten(1, 2)
        return x + (total if self.mlps is None else self.mlps[i](total))

    def _logits(self, x: Tensor) -> Tensor:
        return product(x, _padded(self.head, x.shape[-1], self.head.shape[-1]))


class _Heads(nn.Module):
    """σ(x Q_h K_h x) x V_h for each head; Q, K [R, D, H·E] and V [R, D, H·D] are N(0, 1/D).

    Q_h K_h is multiplied out first, and V_h comes after the sum over positions: keys and values of all positions need not be made.
    """

    def __init__(self, draw: Draw, name: str, width: int, inner: int, heads: int):
        super().__init__()
        self.heads = heads
        self.query = parameter(draw, f"{name}.query", (width, heads * inner), "normal", width**-0.5)
        self.key = parameter(draw, f"{name}.key", (width, heads * inner), "normal", width**-0.5)
        self.value = parameter(draw, f"{name}.value", (width, heads * width), "normal", width**-0.5)

    def forward(self, x: Tensor, queries: Tensor, batch: int, positions: Tensor | None) -> tuple[Tensor, Tensor]:
        """Attend from queries [R, B·K, D] to x [R, B·T, D]: what each head reads, [R, B, H, K, D], and the weights, [R, B, H, K, T]."""
        replicates, _, width = x.shape
        asked = product(queries, self._query_times_key(width).transpose(1, 2).flatten(2))
        asked = asked.reshape(replicates * batch, -1, self.heads, width).transpose(1, 2).flatten(1, 2)
        x = x.reshape(replicates * batch, -1, width)
        scores = product(asked, x.transpose(1, 2)).reshape(replicates, batch, self.heads, -1, x.shape[1])
        weights = (scores + hidden(scores, positions)).softmax(-1)
        seen = product(weights.flatten(0, 1).flatten(1, 2), x).reshape(replicates, batch, self.heads, -1, width)
        return self._valued(seen.transpose(1, 2), _by_head(self.value, self.heads, width, width)).transpose(1, 2), weights

    def of_one_hot(self, tokens: Tensor, vocabulary: int) -> tuple[Tensor, Tensor]:
        """`forward` at every position of x = [one-hot token ; one-hot position] of tokens [R, B, T].

        x_i A x_j = A[token i, token j] + A[token i, j] + A[i, token j] + A[i, j]: what depends on no token is the same for all strings.
        """
        (replicates, batch, length), heads = tokens.shape, self.heads
        rows, width = whole_lines(vocabulary), whole_lines(self.query.shape[1])
        units = one_hot(tokens, rows).to(self.query.dtype)[:, None].expand(-1, heads, -1, -1, -1).reshape(-1, length, rows)

        def for_strings(matrix: Tensor) -> Tensor:
            """[R, H, …] → [R·H·B, …]"""
            return matrix[:, :, None].expand(-1, -1, batch, -1, -1).flatten(0, 2)

        def parts(matrix: Tensor, axis: int) -> tuple[Tensor, Tensor]:
            """Split an axis into its tokens, padded with zeros to `rows`, and its positions."""
            of_tokens, of_positions, _ = matrix.split([vocabulary, length, matrix.shape[axis] - vocabulary - length], axis)
            return pad(of_tokens, (0, 0) * (matrix.dim() - 1 - axis) + (0, rows - vocabulary)), of_positions

        of_token, of_position = parts(self._query_times_key(width), 2)
        (token_token, token_position), (position_token, position_position) = parts(of_token, 3), parts(of_position, 3)
        by_token = (
            product(units, for_strings(token_token)).reshape(replicates, heads, batch, length, rows)
            + position_token[:, :, None]
        )
        scores = product(
            torch.cat([by_token.flatten(0, 2), units], -1), torch.cat([units.transpose(1, 2), for_strings(token_position)], 1)
        ).reshape(replicates, heads, batch, length, length)
        weights = (scores + (position_position[:, :, None] + hidden(scores, None))).softmax(-1)
        tokens_seen = product(weights.flatten(0, 2), units).reshape(replicates, heads, batch, length, rows)
        values = torch.cat(parts(_by_head(self.value, heads, width, width), 2)[::-1], 2)
        return self._valued(torch.cat([weights, tokens_seen], -1), values).transpose(1, 2), weights.transpose(1, 2)

    def _query_times_key(self, width: int) -> Tensor:
        """Q_h K_h, padded with zeros to [R, H, width, width]."""
        inner = whole_lines(self.query.shape[2] // self.heads)
        query, key = (_by_head(weight, self.heads, width, inner).flatten(0, 1) for weight in (self.query, self.key))
        return product(query, key.transpose(1, 2)).unflatten(0, (-1, self.heads))

    def _valued(self, seen: Tensor, values: Tensor) -> Tensor:
        """Multiply what was attended to by the value maps: seen [R, H, B, K, M], values [R, H, M, D] → [R, H, B, K, D]."""
        out = product(seen.flatten(0, 1).flatten(1, 2), values.flatten(0, 1))
        return out.reshape(*seen.shape[:-1], -1)


def _by_head(weight: Tensor, heads: int, inputs: int, outputs: int) -> Tensor:
    """Split a weight by head and pad it with zeros, [R, D, H·E] → [R, H, inputs, outputs]."""
    return _padded(weight.unflatten(2, (heads, -1)).transpose(1, 2), inputs, outputs)


def _padded(weight: Tensor, inputs: int, outputs: int) -> Tensor:
    """Pad a weight with zeros, […, in, out] → […, inputs, outputs]."""
    return pad(weight, (0, outputs - weight.shape[-1], 0, inputs - weight.shape[-2]))


class _TwoMaps(nn.Module):
    """The MLP of the paper's code, x [R, N, ≥ D] → relu(x W1 + √D b1) W2 + √D b2, with W1 ~ N(0, 1/D) and the rest zero at first.

    All layers of a model draw W1 under one name, so they start alike: the paper's code gave both of its layers the same random key.
    """

    def __init__(self, draw: Draw, width: int):
        super().__init__()
        self.up = parameter(draw, "mlp.up", (width, width), "normal", width**-0.5)
        self.up_bias = parameter(draw, "mlp.up_bias", (width,), "constant", 0.0)
        self.down = parameter(draw, "mlp.down", (width, width), "constant", 0.0)
        self.down_bias = parameter(draw, "mlp.down_bias", (width,), "constant", 0.0)

    def forward(self, x: Tensor) -> Tensor:
        wide, scale = x.shape[-1], math.sqrt(self.up.shape[1])
        up, down = (_padded(weight, wide, wide) for weight in (self.up, self.down))
        up_bias, down_bias = (pad(bias * scale, (0, wide - bias.shape[1])) for bias in (self.up_bias, self.down_bias))
        return product(torch.relu(product(x, up, up_bias)), down, down_bias)


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
