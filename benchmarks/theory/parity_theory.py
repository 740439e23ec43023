"""The two-layer network that the theorems on distilled parity are about, and the two-stage training of its teachers and students.

Panigrahi et al., "Progressive distillation induces an implicit curriculum" (ICLR 2025), section 4.2.6 of Liu's thesis (CMU-ML-24-110):

    f(x) = sum_i a_i relu(<w_i, x> + b_i),  x in {+1, -1}^d,  y = product of the k coordinates of the support, k even, d odd.

Every unit has a twin of opposite output, so f is 0 at first. Lemma 63, with one large batch and the rate m / (k |zeta_(k-1)|): the weights
of the support become +-1/(2k), the others smaller by |zeta_(k+1) / zeta_(k-1)|. Printed: a penalty 1 · ||w||^2. That removes the weights of
step 0 only where the penalty is 1 / (2 rate), which is used here (`removing`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import torch
from torch import Tensor


def majority(length: int, degree: int) -> Fraction:
    """zeta: the Fourier coefficient of the majority of `length` signs at any set of `degree` of them, exact.

    (-1)^((i-1)/2) C((d-1)/2, (i-1)/2) / C(d-1, i-1) · 2^(1-d) C(d-1, (d-1)/2) for odd i, 0 for even ones: not the order i^(-1/3) / C(d, i)
    that is printed. Raises ValueError for an even length or a degree that is not 0 … length.
    """
    if length < 1 or length % 2 == 0:
        raise ValueError(f"length = {length} must be odd: the majority of an even number of signs can be a draw")
    if not 0 <= degree <= length:
        raise ValueError(f"degree = {degree} must be from 0 to length = {length}")
    if degree % 2 == 0:
        return Fraction(0)
    half, place = (length - 1) // 2, (degree - 1) // 2
    size = Fraction(math.comb(half, place) * math.comb(length - 1, half), math.comb(length - 1, degree - 1) * 2 ** (length - 1))
    return -size if place % 2 else size


@dataclass(frozen=True)
class Network:
    """weights [m, d], biases [m], outputs [m], float64."""

    weights: Tensor
    biases: Tensor
    outputs: Tensor

    def before(self, signs: Tensor) -> Tensor:
        """<w_i, x> + b_i of inputs [N, d] → [N, m]."""
        return signs @ self.weights.T + self.biases

    def __call__(self, signs: Tensor) -> Tensor:
        """f(x) of inputs [N, d] → [N]."""
        return self.before(signs).relu() @ self.outputs


def symmetric(draw, units: int, length: int, degree: int) -> Network:
    """At step 0: w of U({+-1}^d), b of U{-1 + 1/k, -1 + 2/k, … 1 - 1/k}, a of U({+-1/m}), and the twin (w, b, -a) of each unit.

    draw: R = 1. Raises ValueError for an odd number of units.
    """
    if units < 2 or units % 2:
        raise ValueError(f"units = {units} must be even: every unit has a twin")
    weights = 1.0 - 2.0 * draw.integers(2, (units // 2, length), site=0)[0].double()
    biases = (draw.integers(2 * degree - 1, (units // 2,), site=1)[0].double() - (degree - 1)) / degree
    outputs = (1.0 - 2.0 * draw.integers(2, (units // 2,), site=2)[0].double()) / units
    return Network(weights.repeat(2, 1), biases.repeat(2), torch.cat([outputs, -outputs]))


def first_rate(units: int, length: int, degree: int) -> float:
    """eta_1 = m / (k |zeta_(k-1)|) of Lemma 63."""
    return units / (degree * abs(float(majority(length, degree - 1))))


def removing(rate: float) -> float:
    """The penalty on ||w||^2 with which one step leaves nothing of the weights before it."""
    return 1 / (2 * rate)


def after_one_step(network: Network, support: tuple[int, ...]) -> Network:
    """A fresh network after the step of Lemma 63 on the whole of {+-1}^d, in closed form.

    The gradient at w_ij is -a_i/2 · zeta · chi(w_i) w_ij, chi the product over the support and zeta that of degree k - 1 inside it, k + 1
    outside: in the support weights become +-1/(2k), of random sign. Raises ValueError for an even d.
    """
    (units, length), degree = network.weights.shape, len(support)
    zeta = torch.full((length,), float(majority(length, degree + 1)), dtype=network.weights.dtype)
    zeta[list(support)] = float(majority(length, degree - 1))
    parity = network.weights[:, list(support)].prod(-1, keepdim=True)
    step = network.outputs[:, None] / 2 * zeta * parity * network.weights
    return replace(network, weights=first_rate(units, length, degree) * step)


Strings = Callable[[int, int], Tensor]  # (step, batch) → inputs [batch, d]
Targets = Callable[[Tensor], Tensor]  # inputs [N, d] → labels +-1, or a teacher's f(x), [N]


def slope(network: Network, signs: Tensor, labels: Tensor, taught: Tensor | None = None, alpha: float = 0.0) -> Tensor:
    """d loss / d f(x) of each input, [N]: of max(0, 1 - f y), or of alpha · that + (1 - alpha) · max(0, 1 - f f_T) with a teacher."""
    answers = network(signs)

    def hinge(wanted: Tensor) -> Tensor:
        return -wanted * (answers * wanted < 1)

    return hinge(labels) if taught is None else alpha * hinge(labels) + (1 - alpha) * hinge(taught)


def first_gradient(network: Network, signs: Tensor, slopes: Tensor) -> Tensor:
    """d mean loss / d weights, [m, d]."""
    active = (network.before(signs) > 0).to(signs.dtype)
    return network.outputs[:, None] * ((slopes[:, None] * active).T @ signs) / len(signs)


def second_gradient(network: Network, signs: Tensor, slopes: Tensor) -> Tensor:
    """d mean loss / d outputs, [m]."""
    return slopes @ network.before(signs).relu() / len(signs)


@dataclass(frozen=True)
class Phase:
    """T, B, eta and lambda of one stage of algorithm 2."""

    steps: int
    batch: int
    rate: float
    penalty: float = 0.0


def train(
    network: Network,
    strings: Strings,
    labels: Targets,
    first: Phase,
    second: Phase,
    teacher: Targets | None = None,
    alpha: float = 0.0,
    seen: Callable[[int, Network], None] | None = None,
) -> Network:
    """Algorithm 2: `first` for the weights, then `second` for the outputs; biases stay. Steps are counted through for `strings`.

    With a teacher, its f(x) is the target, and the labels have a share alpha of the loss. seen: called after every step.
    """
    for number, phase in enumerate((first, second)):
        for step in range(phase.steps):
            signs = strings(number * first.steps + step, phase.batch)
            slopes = slope(network, signs, labels(signs), None if teacher is None else teacher(signs), alpha)
            if number == 0:
                change = first_gradient(network, signs, slopes) + 2 * phase.penalty * network.weights
                network = replace(network, weights=network.weights - phase.rate * change)
            else:
                change = second_gradient(network, signs, slopes) + 2 * phase.penalty * network.outputs
                network = replace(network, outputs=network.outputs - phase.rate * change)
            if seen is not None:
                seen(number * first.steps + step + 1, network)
    return network


def hinge_loss(answers: Tensor, wanted: Tensor) -> float:
    """mean max(0, 1 - f y) over inputs, answers and wanted [N]."""
    return float((1 - answers * wanted).clamp(min=0).mean())


def degree_one(network: Network, signs: Tensor) -> Tensor:
    """E f x_j over inputs [N, d] → [d]."""
    return network(signs) @ signs / len(signs)


def strings_to_find(
    network: Network, strings: Strings, targets: Targets, support: tuple[int, ...], first: int = 16, most: int = 2**21
) -> int | None:
    """The fewest strings of first, 2 first, 4 first, … `most` after which half of the support's coordinates stand out, over all units.

    A coordinate stands out in a unit of a fresh network where the gradient of its weight is larger than all those outside the support, of
    a loss whose target is the parity or a teacher's f(x). None where `most` do not suffice.
    """
    beyond = torch.ones(network.weights.shape[1], dtype=torch.bool)
    beyond[list(support)] = False
    total, count, goal, step = torch.zeros_like(network.weights), 0, first, 0
    while goal <= most:
        signs = strings(step, min(goal - count, 2**13))
        total += len(signs) * first_gradient(network, signs, -targets(signs))
        count, step = count + len(signs), step + 1
        if count == goal:
            size = total.abs()
            if float((size[:, ~beyond] > size[:, beyond].amax(-1, keepdim=True)).double().mean()) >= 0.5:
                return count
            goal *= 2
    return None
