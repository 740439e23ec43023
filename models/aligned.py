"""Batched matrix products whose bits do not depend on the pack.

A CPU library chooses the order of a sum by where a matrix starts within a 64-byte line, and takes another kernel (gemv) for a single
product with one column. So matrices are padded with zeros here until each one of the batch starts at a line and has two columns. The
padding adds exact zeros.
"""

import functools
import math

import torch
from torch import Tensor
from torch.nn.functional import pad

LINE = 16  # float32 numbers in 64 bytes


def product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x [G, N, in] · weight [G, in, out] + bias [G, out] → [G, N, out], for any G ≥ 1; rows are padded before weights are."""
    rows, (_, inputs, outputs) = x.shape[1], weight.shape
    tall, deep, wide = _sizes(rows, inputs, outputs)
    if (rows, inputs) != (tall, deep):
        x = pad(x, (0, deep - inputs, 0, tall - rows))
    if (inputs, outputs) != (deep, wide):
        weight = pad(weight, (0, wide - outputs, 0, deep - inputs))
        bias = None if bias is None else pad(bias, (0, wide - outputs))
    if bias is None:
        out = torch.bmm(x, weight)
    elif x.is_cuda:
        # baddbmm spreads the bias over a matrix first; added afterwards it can join the next pass over memory
        out = torch.bmm(x, weight)
        out = out + bias[:, None].to(out.dtype)
    else:
        out = torch.baddbmm(bias[:, None], x, weight)
    return out if (rows, outputs) == (tall, wide) else out[:, :rows, :outputs]


def one_layout(x: Tensor) -> Tensor:
    """x [R, …] as a pack of one has it: contiguous where a replicate's own part is.

    A part of a larger tensor, such as a product whose rows were padded, is contiguous at R = 1 alone, and there torch's gelu takes another
    kernel.
    """
    return x.contiguous() if x[0].is_contiguous() else x


def whole_lines(width: int) -> int:
    """Round a width up to whole lines. A tensor of that width is padded once, and not again by each product."""
    return _round_up(width, LINE)


@functools.cache
def _sizes(rows: int, inputs: int, outputs: int) -> tuple[int, int, int]:
    """Padded rows, inputs and outputs, such that all three matrices fill whole lines."""
    deep = max(inputs, 2)
    wide = _round_up(max(outputs, 2), _step(deep))
    return _round_up(rows, math.lcm(_step(deep), _step(wide))), deep, wide


def _step(size: int) -> int:
    """The fewest rows of `size` numbers that fill whole lines."""
    return LINE // math.gcd(LINE, size)


def _round_up(size: int, step: int) -> int:
    return -(-size // step) * step
