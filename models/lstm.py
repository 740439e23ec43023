"""A one-layer LSTM with a replicate axis; gates and initialisation as torch.nn.LSTM.

Width 128 with five tokens has 133,381 parameters: the skyline of Liu et al. 2023.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from models.linear import Linear, parameter


@dataclass(frozen=True)
class LSTM:
    """width: of the embedding and of the hidden state."""

    rev: ClassVar[int] = 1

    width: int = 128

    def __post_init__(self) -> None:
        if self.width < 1:
            raise ValueError(f"model.width = {self.width} must be at least 1")

    def make(self, draw, vocabulary: int, length: int) -> "Recurrent":
        return Recurrent(self, draw, vocabulary)


class Recurrent(nn.Module):
    """tokens [R, B, T] → logits [R, B, T, V]; with `needed`, blocks of positions [R, B, K] each → [R, B, sum of K, V]."""

    def __init__(self, config: LSTM, draw, vocabulary: int):
        super().__init__()
        width, bound = config.width, 1 / math.sqrt(config.width)
        self.tokens = parameter(draw, "tokens", (vocabulary, width), "normal", 1.0)
        self.input = parameter(draw, "input", (width, 4 * width), "uniform", bound)
        self.hidden = parameter(draw, "hidden", (width, 4 * width), "uniform", bound)
        self.input_bias = parameter(draw, "input_bias", (4 * width,), "uniform", bound)
        self.hidden_bias = parameter(draw, "hidden_bias", (4 * width,), "uniform", bound)
        self.head = Linear(draw, "head", width, vocabulary)

    def forward(self, tokens: Tensor, needed: Sequence[Tensor] | None = None) -> Tensor:
        # the input half of the gates depends on the token alone: V rows instead of B·T
        gates = torch.baddbmm((self.input_bias + self.hidden_bias)[:, None], self.tokens, self.input)  # [R, V, 4D]
        states = _Recurrence.apply(tokens, gates, self.hidden)  # [R, T, B, D]
        states = states.transpose(1, 2)
        if needed is None:
            return self._logits(states)
        width = states.shape[-1]
        return torch.cat(
            [self._logits(states.gather(2, block[..., None].expand(-1, -1, -1, width))) for block in needed], dim=2
        )

    def _logits(self, states: Tensor) -> Tensor:
        """[R, B, K, D] → [R, B, K, V]"""
        return self.head(states.flatten(1, 2)).view(*states.shape[:-1], -1)


class _Recurrence(torch.autograd.Function):
    """The recurrence with its backward pass written out: autograd would record a dozen nodes a token.

    tokens [R, B, T], gates [R, V, 4D] (the input half of i, f, g, o by token), weight [R, D, 4D] → hidden states [R, T, B, D].
    """

    @staticmethod
    def forward(ctx, tokens: Tensor, gates: Tensor, weight: Tensor) -> Tensor:
        replicates, batch, length = tokens.shape
        width = weight.shape[1]
        offsets = torch.arange(replicates, device=tokens.device) * gates.shape[1]
        rows = (tokens + offsets[:, None, None]).permute(2, 0, 1).reshape(length, -1)  # [T, R·B]
        table = gates.reshape(-1, 4 * width)
        keep = ctx.needs_input_grad[1] or ctx.needs_input_grad[2]
        steps = length if keep else 1
        active = gates.new_empty(steps, replicates, batch, 4 * width)
        cells = gates.new_zeros(steps + 1, replicates, batch, width)
        squashed = gates.new_empty(steps, replicates, batch, width)  # tanh of the cells
        states = gates.new_zeros(replicates, length + 1, batch, width)
        for t in range(length):
            at = t if keep else 0
            raw = torch.baddbmm(table[rows[t]].view(replicates, batch, -1), states[:, t], weight)
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
    def backward(ctx, grad: Tensor):
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
        for t in reversed(range(length)):
            enter, forget, new, leave = active[t].chunk(4, dim=-1)
            d_state = d_state + grad[:, t]
            d_cell = torch.addcmul(d_cell, d_state * leave, through[t])
            d_now = torch.cat([d_cell * new, d_cell * cells[t], d_cell * enter, d_state * squashed[t]], dim=-1)
            d_now.mul_(slopes[t])
            d_raw[:, t] = d_now
            d_cell = d_cell * forget
            d_state = torch.bmm(d_now, transposed)
        flat = d_raw.view(replicates, length * batch, -1)
        d_weight = torch.bmm(states[:, :-1].reshape(replicates, length * batch, width).transpose(1, 2), flat)
        offsets = torch.arange(replicates, device=rows.device) * ctx.vocabulary
        local = rows.view(length, replicates, batch).permute(1, 0, 2) - offsets[:, None, None]
        hot = torch.nn.functional.one_hot(local.reshape(replicates, -1), ctx.vocabulary).to(flat.dtype)
        d_gates = torch.bmm(hot.transpose(1, 2), flat)
        return None, d_gates, d_weight
