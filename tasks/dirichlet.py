"""Keyed draws of a symmetric Dirichlet law: normalised gamma variates, each the inverse transform of one keyed uniform number.

Everything is computed in float64 on the CPU, so that a law depends on its seed and number alone.
"""

import functools
import math

import torch
from torch import Tensor

_CELLS = 2**13  # of the table of quantiles
_REACH = 23.0  # above |logit u| of every number u that a word of 32 bits makes
_TINY = -27.0  # log of a quantile below which the first term of the distribution function is exact in float64


def dirichlet(uniform: Tensor, alpha: float) -> Tensor:
    """Laws with all parameters alpha > 0, float64 [..., S] on the CPU, from uniform numbers (`Draw.quantiles`), float64 [..., S]."""
    if alpha == 1:
        return _normalised(uniform.log().neg_())
    if alpha == 0.5:  # half a squared normal number
        return _normalised(torch.special.ndtri(uniform).square_())
    return log_gamma_quantile(uniform, alpha).softmax(-1)


def log_gamma_quantile(uniform: Tensor, alpha: float) -> Tensor:
    """log q with P(Gamma(alpha) ≤ q) = uniform, float64 [...], from a table; uniform must lie within 2^-33 … 1 - 2^-33.

    The logarithm loses no quantile where alpha is small and most of them lie below the smallest float.
    """
    place = ((uniform.log() - torch.log1p(-uniform)) + _REACH) * (_CELLS / (2 * _REACH))
    cell = place.to(torch.int64)
    within = place - cell
    cubic = _table(float(alpha))[cell]
    return ((cubic[..., 3] * within + cubic[..., 2]) * within + cubic[..., 1]) * within + cubic[..., 0]


def _normalised(values: Tensor) -> Tensor:
    """Divide by the sum, in place: the time of a draw is that of its memory traffic."""
    return values.div_(values.sum(-1, keepdim=True))


@functools.lru_cache(maxsize=64)
def _table(alpha: float) -> Tensor:
    """Cubic polynomials of log q between equally spaced logits, [cells, 4], from values and slopes at both ends."""
    logit = torch.linspace(-_REACH, _REACH, _CELLS + 1, dtype=torch.float64)
    value = _solved(logit, alpha)
    # dq/du is one over the density, and du/dlogit = u (1 - u)
    log_slope = torch.nn.functional.logsigmoid(logit) + torch.nn.functional.logsigmoid(-logit)
    log_slope = log_slope + math.lgamma(alpha) - alpha * value + value.exp()
    slope = log_slope.exp() * (2 * _REACH / _CELLS)
    rise, left, right = value[1:] - value[:-1], slope[:-1], slope[1:]
    return torch.stack([value[:-1], left, 3 * rise - 2 * left - right, left + right - 2 * rise], dim=-1)


def _solved(logit: Tensor, alpha: float) -> Tensor:
    """log q at these logits, by bisection of the smaller tail."""
    below = torch.nn.functional.logsigmoid(logit)  # log u
    first = (below + math.lgamma(alpha + 1)) / alpha  # P ≈ q^alpha / Γ(alpha + 1)
    low, high = first - 1, torch.full_like(first, math.log(alpha + 60 + 20 * math.sqrt(alpha)))
    shape = torch.full_like(logit, alpha)
    lower, upper = logit.sigmoid(), (-logit).sigmoid()
    for _ in range(80):
        middle = (low + high) / 2
        quantile = middle.exp()
        less = torch.special.gammainc(shape, quantile) < lower
        more = torch.special.gammaincc(shape, quantile) > upper
        under = torch.where(logit < 0, less, more)
        low, high = torch.where(under, middle, low), torch.where(under, high, middle)
    return torch.where(first < _TINY, first, (low + high) / 2)
