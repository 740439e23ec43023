"""Transformers of one layer with weights written by hand that solve sparse parity on every input; nothing is trained.

Panigrahi et al. 2025, Propositions 9 and 10 (section 4.2.6 of Liu's thesis): the support is found by attention, or by the MLP behind it.
The propositions give sizes and norms; the weights are ours. Inputs are signs [N, d], answers [N], all float64.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Perceptron:
    """One hidden ReLU layer: `inward` [h, n], `biases` [h], `outward` [h]."""

    inward: Tensor
    biases: Tensor
    outward: Tensor

    def __call__(self, read: Tensor) -> Tensor:
        """[N, n] → [N]."""
        return (read @ self.inward.T + self.biases).relu() @ self.outward

    def norm(self) -> float:
        """Root of the sum of the squares of all its parameters."""
        return math.sqrt(sum(float(part.square().sum()) for part in (self.inward, self.biases, self.outward)))


def attention(length: int, support: tuple[int, ...], sharpness: float) -> Tensor:
    """Of the last position: softmax of sharpness · 1[i in support], [d]."""
    logits = torch.zeros(length, dtype=torch.float64)
    logits[list(support)] = sharpness
    return logits.softmax(-1)


def sharp_attention(length: int, support: tuple[int, ...], sharpness: float | None = None) -> tuple[Tensor, Perceptron]:
    """Proposition 9: attention [d] on the support, and an MLP of 4(k+1) units that reads its one value, sum_i attention_i x_i.

    That value is near (2j - k) / k for j signs +1 in the support; four units of slope k make a trapezoid of height 1 over each, which is
    flat for errors of up to 1/2 of 2j - k. sharpness: None for log 4(d - k), with which the others move it by 1/4 at most.
    """
    degree = len(support)
    sharpness = math.log(4 * max(1, length - degree)) if sharpness is None else sharpness
    weights = attention(length, support, sharpness)
    scale = 1 / float(weights[support[0]])
    sums = torch.arange(-degree, degree + 1, 2, dtype=torch.float64)
    parity = torch.where((degree - sums) / 2 % 2 == 0, 1.0, -1.0).double()
    knots = torch.tensor([1.5, 0.5, -0.5, -1.5], dtype=torch.float64)
    turns = torch.tensor([1.0, -1.0, -1.0, 1.0], dtype=torch.float64)
    biases = (knots - sums[:, None]).flatten()
    inward = torch.full((len(biases), 1), scale, dtype=torch.float64)
    return weights, Perceptron(inward, biases, (parity[:, None] * turns).flatten())


def uniform_attention(length: int, support: tuple[int, ...]) -> tuple[Tensor, Tensor, Perceptron]:
    """Proposition 10: attention 1/d [d], the value map [d, k], and an MLP of 2^k units, one for each pattern of the support.

    A token of the support has the value d x_i in a coordinate of its own and every other token 0, so that attention hands on the signs
    themselves; unit p is relu(<p, x_S> - (k - 1)), 1 for its own pattern and 0 for all others.
    """
    degree = len(support)
    values = torch.zeros(length, degree, dtype=torch.float64)
    values[list(support), torch.arange(degree)] = float(length)
    patterns = 1.0 - 2.0 * (torch.arange(2**degree)[:, None] >> torch.arange(degree) & 1).double()
    biases = torch.full((len(patterns),), 1.0 - degree, dtype=torch.float64)
    return torch.full((length,), 1 / length, dtype=torch.float64), values, Perceptron(patterns, biases, patterns.prod(-1))
