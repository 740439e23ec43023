"""What the theorems on distilled parity say, and what networks of a few units do.

docs/explanation/progressive-distillation.md shows the table.

python -m benchmarks.parity_theory            # 1 minute of one core

Results are exact (over all 2^d inputs) unless a number of strings is named. Source: section 4.2.6 of Liu's thesis (CMU-ML-24-110).
"""

import math
import statistics

import torch
from torch import Tensor

from benchmarks.theory.parity_theory import (
    Network,
    Phase,
    after_one_step,
    degree_one,
    first_rate,
    hinge_loss,
    majority,
    removing,
    strings_to_find,
    symmetric,
    train,
)
from harness.draw import Draw
from tasks.bits import bits
from tasks.distillation.monomials import signs_of


def every_input(length: int) -> Tensor:
    """All of {+-1}^d, float64 [2^d, d]."""
    return 1.0 - 2.0 * (torch.arange(2**length)[:, None] >> torch.arange(length) & 1).double()


def fresh(seed: int, units: int, length: int, degree: int) -> Network:
    return symmetric(Draw(torch.tensor([seed]), "init"), units, length, degree)


def drawn(seed: int, length: int):
    """Strings for `train` and `strings_to_find`: step and batch → inputs."""
    return lambda step, batch: signs_of(bits(Draw(torch.tensor([seed]), step=step), batch, length)[0]).double()


def parity_of(degree: int):
    """Labels of the parity of the first coordinates."""
    return lambda signs: signs[:, :degree].prod(-1)


def one_batch(seed: int, units: int, length: int, degree: int, batch: int) -> Network:
    """The step of Lemma 63 on sampled strings."""
    rate = first_rate(units, length, degree)
    phases = Phase(1, batch, rate, removing(rate)), Phase(0, 1, 1.0)
    return train(fresh(seed, units, length, degree), drawn(seed, length), parity_of(degree), *phases)


def two_stages(seed: int, units: int, length: int, degree: int, steps: int, looks: int) -> list[tuple[int, float, Tensor]]:
    """(step, hinge loss, E f x_j [d]) at `looks` steps of Lemma 65's second stage of algorithm 2, after an exact first step."""
    signs, labels = every_input(length), parity_of(degree)
    network, rows = after_one_step(fresh(seed, units, length, degree), tuple(range(degree))), []

    def look(step: int, now: Network) -> None:
        if step % (steps // looks) == 0:
            rows.append((step, hinge_loss(now(signs), labels(signs)), degree_one(now, signs)))

    look(0, network)
    rate = 4 * degree**1.5 / (length * math.sqrt(units * (steps - 1)))
    train(network, drawn(seed, length), labels, Phase(0, 1, 1.0), Phase(steps, 1, rate), seen=look)
    return rows


def found_from_labels(seed: int, length: int, degree: int, units: int = 8) -> int | None:
    support = tuple(range(degree))
    return strings_to_find(fresh(seed, units, length, degree), drawn(seed, length), parity_of(degree), support)


def found_from_teacher(seed: int, length: int, degree: int, units: int = 8, wide: int = 64) -> int | None:
    """From a teacher of `wide` units after its first step."""
    support = tuple(range(degree))
    teacher = after_one_step(fresh(1000 + seed, wide, length, degree), support)
    return strings_to_find(fresh(seed, units, length, degree), drawn(seed, length), teacher, support)


def middle(steps: list[int | None]) -> float:
    """The median; None counts as infinity."""
    return statistics.median(math.inf if step is None else step for step in steps)


def main() -> None:
    print("Lemma 63, one batch: |w| · 2k in the support and outside (smallest … largest), and outside as predicted")
    for length, degree, batch in ((31, 2, 2**15), (15, 4, 2**18)):
        weights = one_batch(0, 32, length, degree, batch).weights.abs() * 2 * degree
        within, beyond = weights[:, :degree], weights[:, degree:]
        ratio = abs(float(majority(length, degree + 1) / majority(length, degree - 1)))
        ranges = f"{within.min():.3f} … {within.max():.3f}, {beyond.min():.3f} … {beyond.max():.3f}"
        print(f"  d {length} k {degree} B {batch}: {ranges}, {ratio:.3f}")
    print("Lemma 64 after an exact step, 40 networks: mean of |E f x_j| inside, outside, share of negative ones inside, 1/(8k)")
    for length, degree, units in ((15, 2, 64), (15, 4, 64), (15, 4, 256)):
        signs = every_input(length)
        correlations = torch.stack(
            [degree_one(after_one_step(fresh(seed, units, length, degree), tuple(range(degree))), signs) for seed in range(40)]
        )
        within, beyond = correlations[:, :degree], correlations[:, degree:]
        print(
            f"  d {length} k {degree} m {units}: {within.abs().mean():.5f}, {beyond.abs().mean():.5f}, {(within < 0).double().mean():.2f}, "
            f"{1 / (8 * degree):.5f}; 1/(2k sqrt(2m)) = {1 / (2 * degree * math.sqrt(2 * units)):.5f}"
        )
    print("Corollary 4: d 15, k 2, m 64, second stage of 20,000 strings: step, loss, largest |E f x_j| inside, outside")
    for seed in range(3):
        for step, loss, correlations in two_stages(seed, 64, 15, 2, 20_000, 5):
            sizes = correlations.abs()
            print(f"  seed {seed} step {step}: {loss:.4f}, {sizes[:2].max():.4f}, {sizes[2:].max():.4f}", flush=True)
    print(
        "Theorem 23, k 4: strings until half of the support stands out in 8 units, median of 5 seeds from labels, of 15 from teachers"
    )
    for length in (9, 15, 31, 63, 127):
        labels = middle([found_from_labels(seed, length, 4) for seed in range(5)]) if length <= 31 else math.nan
        taught = [found_from_teacher(seed, length, 4) for seed in range(15)]
        gap = abs(float(majority(length, 3))) - abs(float(majority(length, 5)))
        counts = f"{labels:.0f}, {middle(taught):.0f} ({taught.count(None)} never)"
        scales = f"labels · gap^2 = {labels * gap**2:.1f}, k^2 log d = {16 * math.log(length):.0f}"
        print(f"  d {length}: {counts}; {scales}", flush=True)


if __name__ == "__main__":
    main()
