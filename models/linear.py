"""The packed building blocks: every parameter has a leading replicate axis R, weights are [R, in, out]."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from models.aligned import product
from models.draws import Draw

_NUMBERS = 2**22  # most that are drawn at once: a draw takes some 60 bytes a number for a while


def parameter(draw: Draw, name: str, shape: tuple[int, ...], law: str, scale: float) -> nn.Parameter:
    """[R, *shape] drawn by the parameter's name: law "uniform" is U(-scale, scale), "normal" is N(0, scale²), "constant" is scale."""
    if law == "constant":
        value = torch.full((draw.replicates, *shape), float(scale), device=draw.seeds.device)
    elif law == "uniform":
        value = _uniform(draw.named(name), shape).mul_(2).sub_(1).mul_(scale)
    elif law == "normal":
        value = draw.named(name).normal(shape) * scale
    else:
        raise ValueError(f"initial law {law!r} is not uniform, normal or constant")
    return nn.Parameter(value)


def _uniform(draw: Draw, shape: tuple[int, ...]) -> Tensor:
    """[R, *shape] in [0, 1), drawn some rows at a time: 100 · 50,000 numbers of one replicate would take 300 MB at once."""
    rows = max(1, _NUMBERS // (draw.replicates * math.prod(shape[1:])))
    if rows >= shape[0]:
        return draw.uniform(shape)
    value = torch.empty(draw.replicates, *shape, device=draw.seeds.device)
    for first in range(0, shape[0], rows):
        count = min(rows, shape[0] - first)
        value[:, first : first + count] = draw.rows(first).uniform((count, *shape[1:]))
    return value


class Linear(nn.Module):
    """x [R, N, in] → [R, N, out]. Weights U(±1/√in) as torch.nn.Linear (He et al. 2015 with a = √5), bias likewise;
    with `std`, weights N(0, std²) and biases 0 (GPT-2, BERT)."""

    def __init__(self, draw: Draw, name: str, inputs: int, outputs: int, bias: bool = True, std: float | None = None):
        super().__init__()
        law, scale = ("uniform", 1 / math.sqrt(inputs)) if std is None else ("normal", std)
        self.weight = parameter(draw, f"{name}.weight", (inputs, outputs), law, scale)
        start = ("uniform", scale) if std is None else ("constant", 0.0)
        self.bias = parameter(draw, f"{name}.bias", (outputs,), *start) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return product(x, self.weight, self.bias)


class Bias(nn.Module):
    """The bias [R, out] of a linear map that uses another module's weight; 0 at first."""

    def __init__(self, draw: Draw, name: str, outputs: int):
        super().__init__()
        self.bias = parameter(draw, f"{name}.bias", (outputs,), "constant", 0.0)


class Norm(nn.Module):
    """Layer normalisation of x [R, N, D] with the gain and bias of each replicate."""

    def __init__(self, draw: Draw, name: str, width: int):
        super().__init__()
        self.gain = parameter(draw, f"{name}.gain", (width,), "constant", 1.0)
        self.bias = parameter(draw, f"{name}.bias", (width,), "constant", 0.0)

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.layer_norm(x, x.shape[-1:]) * self.gain[:, None] + self.bias[:, None]

    def fold(self, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor]:
        """Fold gain and bias into the linear map after this norm, so that no affine map of the size of the activations runs.

        weight [R, D, out] → gain·weight; bias → bias + norm bias · weight. The sum runs elementwise: a matrix product with one row
        would take another kernel at R = 1 and change bits.
        """
        shift = (self.bias[..., None] * weight).sum(1)
        return self.gain[..., None] * weight, shift if bias is None else bias + shift


_MOST_ROWS = 64  # rows of a table whose gradient is a product


class FewRows(torch.autograd.Function):
    """`embed` for a table of few rows on a GPU.

    The gradient of a row is a sum over thousands of tokens. Where its order must be fixed torch adds them one by one; here it is a
    product with the tokens as unit vectors.
    """

    @staticmethod
    def forward(ctx: Any, table: Tensor, tokens: Tensor) -> Tensor:
        ctx.save_for_backward(tokens)
        ctx.rows = table.shape[1]
        return _looked_up(table, tokens)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (tokens,) = ctx.saved_tensors
        rows = torch.arange(ctx.rows, device=tokens.device)[None, :, None]
        with torch.autocast(gradient.device.type, enabled=False):
            # string by string first: a single sum over thousands of tokens leaves most of a GPU idle
            units = (tokens.flatten(0, -2)[:, None] == rows).to(gradient.dtype)
            sums = torch.bmm(units, gradient.flatten(0, -3))
            return sums.view(len(tokens), -1, *sums.shape[1:]).sum(1), None


def embed(table: Tensor, tokens: Tensor) -> Tensor:
    """Look up tokens [R, …] int64 in a table [R, V, D]: [R, …, D]."""
    if table.is_cuda and table.shape[1] <= _MOST_ROWS:
        return FewRows.apply(table, tokens)
    return _looked_up(table, tokens)


def _looked_up(table: Tensor, tokens: Tensor) -> Tensor:
    replicates, vocabulary, width = table.shape
    offsets = torch.arange(replicates, device=table.device).view(-1, *[1] * (tokens.dim() - 1)) * vocabulary
    return nn.functional.embedding(tokens + offsets, table.reshape(-1, width))
