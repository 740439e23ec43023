"""An LSTM with a replicate axis; gates, layers, dropout and initialisation as torch.nn.LSTM.

Width 128 with five tokens has 133,381 parameters: the skyline of Liu et al. 2023.
"""

import math
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from models.aligned import LINE, product
from models.draws import Draw
from models.linear import Linear, embed, parameter
from models.model import Attend, Blocks, Model, refuse_below
from models.noise import Noise

_WIDEST = 20_000  # 13 GB of weights a layer


@dataclass(frozen=True)
class LSTM(Model):
    """Options of the LSTM.

    width: of every hidden state. dropout: rate between layers, in training only. embedding: width of a token's vector (None: `width`).
    """

    vectors: ClassVar[tuple[str, ...]] = ("dropout",)

    width: int = 128
    layers: int = 1
    dropout: float = 0.0
    embedding: int | None = None

    def __post_init__(self) -> None:
        refuse_below(self, width=1, layers=1)
        if self.embedding is not None and not 1 <= self.embedding <= _WIDEST:
            raise ValueError(f"model.embedding = {self.embedding} must be from 1 to {_WIDEST}, or left out")
        if self.width > _WIDEST:
            raise ValueError(f"model.width = {self.width} must be at most {_WIDEST}: each layer has 8 · width² weights")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"model.dropout = {self.dropout} must be at least 0 and below 1")
        if self.dropout > 0 and self.layers == 1:
            raise ValueError(
                f"model.dropout = {self.dropout} acts between layers: give model.layers = 2 or more, or leave it out"
            )

    def make(self, draw: Draw, vocabulary: int, length: int, outputs: int | None = None) -> "Recurrent":
        if outputs is not None and outputs < 1:
            raise ValueError(f"the lstm needs at least 1 output, not {outputs}")
        return Recurrent(self, draw, vocabulary, vocabulary if outputs is None else outputs)


class Recurrent(nn.Module):
    """tokens [R, B, T] → logits [R, B, T, V]; with `needed`, blocks of positions [R, B, K] each → [R, B, sum of K, V].

    packed: whether one batched recurrence runs all replicates (True), or the library's LSTM one replicate after the other (False); None
    chooses by the device. On a CPU the library's is twice as fast and its bits do not depend on the pack; on a GPU it would be launched
    R times. The batched one pads widths to whole 64-byte lines with units that stay at zero, so that its bits do not either.
    """

    packed: bool | None = None

    def __init__(self, config: LSTM, draw: Draw, vocabulary: int, outputs: int):
        super().__init__()
        self.config = config
        width, bound = config.width, 1 / math.sqrt(config.width)
        narrow = config.embedding or width
        self.tokens = parameter(draw, "tokens", (vocabulary, narrow), "normal", 1.0)
        self.input = parameter(draw, "input", (narrow, 4 * width), "uniform", bound)
        self.hidden = parameter(draw, "hidden", (width, 4 * width), "uniform", bound)
        self.input_bias = parameter(draw, "input_bias", (4 * width,), "uniform", bound)
        self.hidden_bias = parameter(draw, "hidden_bias", (4 * width,), "uniform", bound)
        self.upper = nn.ModuleList(_Layer(draw, f"upper.{i}", width) for i in range(1, config.layers))
        self.head = Linear(draw, "head", width, outputs)

    def forward(
        self, tokens: Tensor, needed: Blocks = None, noise: Noise | None = None, attend: Attend | None = None
    ) -> Tensor:
        if attend is not None:
            raise ValueError("the lstm has no attention to hand out: leave out the penalty or probe that asks for it")
        packed = tokens.device.type != "cpu" if self.packed is None else self.packed
        width = self.config.width
        spare = -width % LINE if packed else 0
        if packed:
            # the input half of the gates depends on the token alone: V rows instead of B·T
            bias = _gates(self.input_bias + self.hidden_bias, spare)[:, None]
            rows = -self.tokens.shape[-1] % LINE
            gates = torch.baddbmm(bias, pad(self.tokens, (0, rows)), _filled(self.input, rows, spare))  # [R, V, 4D]
            states = _Recurrence.apply(tokens, gates, _filled(self.hidden, spare, spare).to(gates.dtype))  # [R, T, B, D]
        else:
            states = _one_by_one(embed(self.tokens, tokens.transpose(1, 2)), self)
        for site, layer in enumerate(self.upper):
            if self.config.dropout > 0 and noise is not None:
                states = pad(noise.drop(states[..., :width], "dropout", site), (0, spare))
            states = layer(states, spare) if packed else _one_by_one(states, cast(_Layer, layer))
        states = states.transpose(1, 2)
        if needed is None:
            return self._logits(states)
        width = states.shape[-1]
        return torch.cat(
            [self._logits(states.gather(2, block[..., None].expand(-1, -1, -1, width))) for block in needed], dim=2
        )

    def _logits(self, states: Tensor) -> Tensor:
        """[R, B, K, D] → [R, B, K, V]"""
        weight = pad(self.head.weight, (0, 0, 0, states.shape[-1] - self.config.width))
        return product(states.flatten(1, 2), weight, self.head.bias).view(*states.shape[:-1], -1)


class _Layer(nn.Module):
    """A layer above the first: hidden states of the layer below → its own, both [R, T, B, D]."""

    def __init__(self, draw: Draw, name: str, width: int):
        super().__init__()
        bound = 1 / math.sqrt(width)
        self.input = parameter(draw, f"{name}.input", (width, 4 * width), "uniform", bound)
        self.hidden = parameter(draw, f"{name}.hidden", (width, 4 * width), "uniform", bound)
        self.input_bias = parameter(draw, f"{name}.input_bias", (4 * width,), "uniform", bound)
        self.hidden_bias = parameter(draw, f"{name}.hidden_bias", (4 * width,), "uniform", bound)

    def forward(self, below: Tensor, spare: int) -> Tensor:
        bias = _gates(self.input_bias + self.hidden_bias, spare)[:, None]
        gates = torch.baddbmm(bias, below.flatten(1, 2), _filled(self.input, spare, spare)).view(*below.shape[:-1], -1)
        return _Recurrence.apply(None, gates, _filled(self.hidden, spare, spare).to(gates.dtype))


def _one_by_one(x: Tensor, layer: "Recurrent | _Layer") -> Tensor:
    """torch's LSTM of every replicate: x [R, T, B, D] → hidden states [R, T, B, D]."""
    zeros = x.new_zeros(1, x.shape[2], layer.hidden.shape[1])
    states = []
    # oneDNN has no LSTM in bfloat16 for processors without AVX-512; torch's own kernels have one
    bf16 = torch.is_autocast_enabled("cpu") and not torch.ops.mkldnn._is_mkldnn_bf16_supported()
    with torch.backends.mkldnn.flags(enabled=False, allow_tf32=None) if bf16 else nullcontext():
        for slot, inputs in enumerate(x.unbind()):
            weights = [layer.input[slot].T, layer.hidden[slot].T, layer.input_bias[slot], layer.hidden_bias[slot]]
            states.append(torch.lstm(inputs, (zeros, zeros), weights, True, 1, 0.0, False, False, False)[0])
    return torch.stack(states)


def _gates(x: Tensor, spare: int) -> Tensor:
    """Pad each of the four gates with zeros, […, 4·D] → […, 4·(D + spare)]."""
    return x if spare == 0 else pad(x.unflatten(-1, (4, -1)), (0, spare)).flatten(-2)


def _filled(weight: Tensor, rows: int, spare: int) -> Tensor:
    """Pad a weight with zeros, [R, E, 4·D] → [R, E + rows, 4·(D + spare)]."""
    return pad(_gates(weight, spare), (0, 0, 0, rows)) if rows else _gates(weight, spare)


def walk(positions: range) -> Iterable[int]:
    """The positions in the order of the recurrence; a count of its operations, equal at each, replaces this function."""
    return positions


class _Recurrence(torch.autograd.Function):
    """The recurrence with its backward pass written out: autograd would record a dozen nodes a token.

    gates: the input half of i, f, g, o, [R, V, 4D] by token with tokens [R, B, T], or [R, T, B, 4D] by position with tokens None;
    weight [R, D, 4D], of the dtype of `gates` → hidden states float32 [R, T, B, D]. Matrix products are of that dtype, which autocast
    makes bfloat16; cells and states stay in float32, since they add up over the string.
    """

    @staticmethod
    def forward(ctx: Any, tokens: Tensor | None, gates: Tensor, weight: Tensor) -> Tensor:
        width, rows = weight.shape[1], None
        if tokens is None:
            replicates, length, batch, _ = gates.shape
        else:
            replicates, batch, length = tokens.shape
            offsets = torch.arange(replicates, device=tokens.device) * gates.shape[1]
            rows = (tokens + offsets[:, None, None]).permute(2, 0, 1).reshape(length, -1)  # [T, R·B]
            table = gates.reshape(-1, 4 * width)
        keep = ctx.needs_input_grad[1] or ctx.needs_input_grad[2]
        steps = length if keep else 1
        exact = torch.float32 if gates.dtype == torch.bfloat16 else gates.dtype
        active = gates.new_empty(steps, replicates, batch, 4 * width, dtype=exact)
        cells = gates.new_zeros(steps + 1, replicates, batch, width, dtype=exact)
        squashed = gates.new_empty(steps, replicates, batch, width, dtype=exact)  # tanh of the cells
        states = gates.new_zeros(replicates, length + 1, batch, width, dtype=exact)
        for t in walk(range(length)):
            at = t if keep else 0
            given = gates[:, t] if rows is None else table[rows[t]].view(replicates, batch, -1)
            raw = torch.baddbmm(given, states[:, t].to(weight.dtype), weight).to(states.dtype)
            now = active[at]
            torch.sigmoid(raw, out=now)
            torch.tanh(raw[..., 2 * width : 3 * width], out=now[..., 2 * width : 3 * width])
            enter, forget, new, leave = now.chunk(4, dim=-1)
            cell = cells[at + 1] if keep else cells[0]
            torch.mul(forget, cells[at], out=cell)
            cell.addcmul_(enter, new)
            torch.tanh(cell, out=squashed[at])
            torch.mul(leave, squashed[at], out=states[:, t + 1])
        if keep:
            ctx.save_for_backward(rows, active, cells, squashed, states, weight)
            ctx.vocabulary = gates.shape[1]
        return states[:, 1:]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor, Tensor]:
        rows, active, cells, squashed, states, weight = ctx.saved_tensors
        length, replicates, batch, width = squashed.shape
        d_raw = active.new_empty(replicates, length, batch, 4 * width)
        d_cell = active.new_zeros(replicates, batch, width)
        d_state = active.new_zeros(replicates, batch, width)
        transposed = weight.transpose(1, 2)
        # derivative of the activations for all steps at once: a(1 - a), and 1 - a² for the new content
        slopes = active * (1 - active)
        slopes[..., 2 * width : 3 * width] = 1 - active[..., 2 * width : 3 * width] ** 2
        through = 1 - squashed**2
        for t in walk(range(length)[::-1]):
            enter, forget, new, leave = active[t].chunk(4, dim=-1)
            d_state = d_state + grad[:, t]
            d_cell = torch.addcmul(d_cell, d_state * leave, through[t])
            d_now = torch.cat([d_cell * new, d_cell * cells[t], d_cell * enter, d_state * squashed[t]], dim=-1)
            d_now.mul_(slopes[t])
            d_raw[:, t] = d_now
            d_cell = d_cell * forget
            d_state = torch.bmm(d_now.to(weight.dtype), transposed).to(d_cell.dtype)
        flat = d_raw.view(replicates, length * batch, -1).to(weight.dtype)
        before = states[:, :-1].reshape(replicates, length * batch, width).to(weight.dtype)
        d_weight = torch.bmm(before.transpose(1, 2), flat)
        if rows is None:
            return None, d_raw.to(weight.dtype), d_weight
        offsets = torch.arange(replicates, device=rows.device) * ctx.vocabulary
        local = rows.view(length, replicates, batch).permute(1, 0, 2) - offsets[:, None, None]
        hot = torch.nn.functional.one_hot(local.reshape(replicates, -1), ctx.vocabulary).to(flat.dtype)
        d_gates = torch.bmm(hot.transpose(1, 2), flat)
        return None, d_gates, d_weight
