"""What is proved about subsequence associations, in exact numbers: capacity, gradients, additivity.

Sun et al., "Why and how LLMs hallucinate: connecting the dots with subsequence associations" (2025), Theorem A.6 with Lemmas A.7 and
A.8, Proposition A.1 (2.5), Proposition 2.3 (A.5). What holds and what does not: docs/explanation/tracing.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from scipy.special import beta, betainc, lambertw
from torch import Tensor

from benchmarks.theory.subsequence_constructions import Piece


def capacity(cosine: float, dimension: int) -> float:
    """Lemma A.7: e d exp(d e^2 / 2), the number of unit vectors in d dimensions with cosines below e, without the constant of O()."""
    return cosine * dimension * math.exp(dimension * cosine**2 / 2)


def needed(count: float, cosine: float) -> float:
    """Lemma A.8: the dimension (2 / e^2) W(e N / 2) for so many vectors, the inverse of `capacity`."""
    return 2 / cosine**2 * float(lambertw(cosine * count / 2).real)


def cap_bound(cosine: float, dimension: int) -> float:
    """Theorem A.6 as printed: N <= 1 / integral of sin^(d-2) from 0 to pi/2 - e."""
    half = (dimension - 1) / 2
    return 2 / float(beta(half, 0.5) * betainc(half, 0.5, math.cos(cosine) ** 2))


def exceeding(cosine: float, dimension: int) -> float:
    """P(|cosine| >= e) of two independent random directions."""
    return float(betainc((dimension - 1) / 2, 0.5, 1 - cosine**2))


def gold_vectors(degree: int) -> Tensor:
    """Gold's sequences, degree m 3, 5 or 7: 2^(2m) unit vectors, float64 [N, d], d = 2^m - 1, |cosine| <= (1 + 2^((m+1)/2)) / d."""
    modulus = {3: 0b1011, 5: 0b100101, 7: 0b10000011}[degree]
    length = 2**degree - 1
    powers = [1]
    for _ in range(length - 1):
        power = powers[-1] << 1
        powers.append(power ^ modulus if power >> degree else power)

    def trace(exponent: int) -> int:
        value = 0
        for j in range(degree):
            value ^= powers[exponent * 2**j % length]
        return value

    families = []
    for step in (1, 3):
        word = torch.tensor([trace(step * i) for i in range(length)])
        families.append(torch.stack([torch.zeros_like(word)] + [word.roll(i) for i in range(length)]))
    words = (families[0][:, None] ^ families[1]).flatten(0, 1)
    return (1.0 - 2.0 * words.double()) / math.sqrt(length)


def ends(sequences: Tensor, pieces: Sequence[Piece]) -> Tensor:
    """Where pieces end: sequences int64 [S, n] → bool [S, n, N]; piece in x_1 … x_t with its last token at t."""

    def holds(piece: Piece) -> Tensor:
        here = sequences == piece[-1]
        if len(piece) == 1:
            return here
        before = torch.nn.functional.pad(holds(piece[:-1]).long().cumsum(-1)[:, :-1], (1, 0))
        return here & (before > 0)

    return torch.stack([holds(piece) for piece in pieces], dim=-1)


@dataclass(frozen=True)
class Linear:
    """f(s, y) = phi(y)^T W_OV Phi^T Phi W_KQ phi(end): vectors [N, d] of pieces, the last of them the end's, outputs [V, d], maps [d, d].

    A position's feature is the sum of the vectors of the pieces that end there; the end stands behind every sequence.
    """

    vectors: Tensor
    outputs: Tensor
    values: Tensor
    scores: Tensor

    def terms(self, ended: Tensor) -> tuple[Tensor, Tensor]:
        """Psi [S, n+1, V] and omega [S, n+1] of Proposition A.1, from `ends` [S, n, N-1] without the end."""
        features = torch.nn.functional.pad(ended.double(), (0, 1))
        end = torch.zeros_like(features[:, :1])
        end[..., -1] = 1
        features = torch.cat([features, end], dim=1) @ self.vectors
        return features @ self.values.T @ self.outputs.T, features @ self.scores @ self.vectors[-1]


@dataclass(frozen=True)
class Pressure:
    """Of every piece and answer, [N, V]: the terms of the gradient by Psi and by omega, and what is said to bound them.

    printed: tau · |sum over sequences with the piece of share · (model - data)| = tau · P(piece) · |gap|; absolute: the same with the
    absolute value inside. By psi both are times |W_KQ|, by omega times |W_OV|.
    """

    psi: Tensor
    omega: Tensor
    printed: Tensor
    absolute: Tensor


def pressure(model: Linear, ended: Tensor, shares: Tensor, answers: Tensor) -> Pressure:
    """Proposition A.1 on a corpus: `ends` [S, n, N-1], shares of the sequences [S], P(y|s) [S, V]. tau: how often a piece ends at most."""
    psi, omega = model.terms(ended)
    residual = shares[:, None] * ((psi * omega[..., None]).sum(1).softmax(-1) - answers)
    counts = torch.nn.functional.pad(ended.double().sum(1), (0, 1), value=1.0)  # [S, N]
    present, most = (counts > 0).double(), float(counts.max())
    summed = counts.T @ residual
    scores = model.vectors @ model.scores @ model.vectors[-1]
    return Pressure(
        scores[:, None] * summed,
        model.vectors @ model.values.T @ model.outputs.T * summed,
        most * (present.T @ residual).abs(),
        most * (present.T @ residual.abs()),
    )


def associations(shares: Tensor, outcome: Tensor, events: Tensor) -> Tensor:
    """Psi of definition 2.2, exact: shares of sequences [S], P(outcome|s) [S], events bool [S, E] → log P(o | event) / P(o), [E]."""
    joint = events.double().T @ (shares * outcome)
    return (joint / (events.double().T @ shares)).log() - (shares @ outcome).log()


def summed(shares: Tensor, outcome: Tensor, events: Tensor, row: int) -> tuple[float, float]:
    """Proposition 2.3 for sequence `row`: log P(o | s), and log P(o) + the sum of Psi over the events that it has."""
    total = associations(shares, outcome, events[:, events[row]]).sum() + (shares @ outcome).log()
    return float(outcome[row].log()), float(total)
