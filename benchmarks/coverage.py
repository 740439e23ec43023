"""How often the intervals of `results` cover and its tests reject where nothing differs, on a fixed grid of error distributions.

python -m benchmarks.coverage [--quick] [--out benchmarks/results/cpu/coverage.md]

25 replicates a condition unless stated, chances near 0 and heavy tails: log-normal errors, errors that are mostly zero, and errors of which
some are infinite (diverged). Exact intervals must cover at least 95 % and as often as is computed; approximate ones should cover 93-97 %.
"""

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from results import bootstrap, comparison, equivalence, statistics, variance
from results.survival import survival

Floats = NDArray[np.float64]
N = 25
RESAMPLES = 999
QUICK, FULL = 200, 1000
LEVEL = 0.05


@dataclass(frozen=True)
class Family:
    """Error rates: 0 with probability `zero`, infinite with `diverged`, else log-normal around exp(-5) with this sigma."""

    name: str
    zero: float = 0.0
    diverged: float = 0.0
    sigma: float = 2.0

    def ppf(self, u: Floats | float) -> Floats:
        inner = np.clip((np.asarray(u) - self.zero) / (1 - self.zero - self.diverged), 0, 1)
        value = np.exp(self.sigma * stats.norm.ppf(inner) - 5)
        return np.where(np.asarray(u) < self.zero, 0.0, np.where(np.asarray(u) >= 1 - self.diverged, np.inf, value))

    def sample(self, random: np.random.Generator, n: int = N) -> Floats:
        return self.ppf(random.random(n))

    def above(self, x: Floats, at_least: bool = False) -> Floats:
        """P(error > x), or P(error ≥ x), of finite x ≥ 0: [...] as x."""
        with np.errstate(divide="ignore"):
            tail = self.diverged + (1 - self.zero - self.diverged) * stats.norm.sf((np.log(x) + 5) / self.sigma)
        return np.where(x == 0, 1.0 if at_least else 1 - self.zero, tail)


LOGNORMAL, LIGHTER = Family("log-normal"), Family("log-normal, sigma 1", sigma=1.0)
MOSTLY_ZERO, DIVERGING = Family("80 % zero", zero=0.8), Family("40 % zero, 10 % diverged", zero=0.4, diverged=0.1)
FAMILIES = (LOGNORMAL, MOSTLY_ZERO, DIVERGING)


@dataclass(frozen=True)
class Row:
    """`measured`: the share of `of` samples; computed: what it must be, where that is known. target: exact, approximate or level."""

    what: str
    setting: str
    target: str
    measured: float
    of: int
    computed: float | None = None

    @property
    def error(self) -> float:
        """Standard error of the simulation, at least that of the nominal share."""
        return math.sqrt(max(self.measured * (1 - self.measured), LEVEL * (1 - LEVEL)) / self.of)

    @property
    def verdict(self) -> str:
        """The same sentence in the table and in the tests; four standard errors stand for agreement."""
        if self.computed is not None and abs(self.measured - self.computed) > 4 * self.error:
            return "differs from the computed one"
        if self.target == "level":
            return "above 5 %" if self.measured - 2 * self.error > LEVEL else "holds"
        if self.target == "exact":
            return "below 95 %" if self.measured + 4 * self.error < 1 - LEVEL else "holds"
        return "holds" if 0.93 <= self.measured <= 0.97 else "below 93 %" if self.measured < 0.93 else "above 97 %"


def _share(times: int, trial: Callable[[], bool | None]) -> tuple[float, int]:
    """How often a trial succeeds, of those that have an answer."""
    answers = [answer for _ in range(times) if (answer := trial()) is not None]
    return (sum(answers) / len(answers) if answers else math.nan), len(answers)


def _inside(interval: statistics.Interval | None, value: float) -> bool | None:
    return None if interval is None else bool(interval.low <= value <= interval.high)


def proportions(random: np.random.Generator, times: int) -> Iterator[Row]:
    table = [statistics.clopper_pearson(k, N) for k in range(N + 1)]
    for p in (0.001, 0.01, 0.04, 0.1, 0.3, 0.5):
        covers = np.array([each.low <= p <= each.high for each in table])
        computed = float(stats.binom.pmf(np.arange(N + 1), N, p)[covers].sum())
        measured = float(covers[random.binomial(N, p, 20 * times)].mean())
        yield Row("Clopper–Pearson", f"p = {p}", "exact", measured, 20 * times, computed)


def quantiles(random: np.random.Generator, times: int) -> Iterator[Row]:
    for family in FAMILIES:
        for q in (0.5, 0.75, 0.9):
            truth = float(family.ppf(q))
            setting = f"q = {q}, {family.name}"
            lower, upper = statistics.quantile_ranks(N, q)
            below = np.arange(lower, upper)  # of the sample below the quantile: the two order statistics enclose it
            atom = family.above(np.array([truth]), True) - family.above(np.array([truth])) if math.isfinite(truth) else 1.0
            computed = float(stats.binom.pmf(below, N, q).sum()) if float(np.squeeze(atom)) == 0 else None
            measured = _share(
                2 * times, lambda f=family, q=q, t=truth: _inside(statistics.quantile_interval(f.sample(random), q), t)
            )
            yield Row("order statistics", setting, "exact", *measured, computed)

            def trial(f: Family = family, q: float = q, truth: float = truth) -> bool | None:
                return _inside(
                    bootstrap.quantile_bootstrap(f.sample(random), q, resamples=RESAMPLES, seed=_seed(random)), truth
                )

            yield Row("bootstrap", setting, "approximate", *_share(times, trial))


def bands(random: np.random.Generator, times: int) -> Iterator[Row]:
    for family in FAMILIES:

        def trial(f: Family = family) -> bool:
            found = survival(f.sample(random))
            before = f.above(found.x[1:], at_least=True)  # the step before reaches up to here
            ends = np.append(before, f.diverged)
            starts = f.above(found.x)
            return bool(((found.low <= np.minimum(starts, ends)) & (np.maximum(starts, ends) <= found.high)).all())

        computed = 1 - LEVEL if family is LOGNORMAL else None
        yield Row("survival band", family.name, "exact", *_share(2 * times, trial), computed)


def chances(random: np.random.Generator, times: int) -> Iterator[Row]:
    for one, other in (
        (LOGNORMAL, LOGNORMAL),
        (LOGNORMAL, LIGHTER),
        (MOSTLY_ZERO, LOGNORMAL),
        (MOSTLY_ZERO, MOSTLY_ZERO),
        (DIVERGING,) * 2,
    ):
        x, y = (family.ppf((np.arange(2000) + 0.5) / 2000) for family in (one, other))
        truth = float(((y[:, None] > x) + (y[:, None] == x) / 2).mean())
        setting = f"{one.name} against {other.name}"

        def alone(a: Family = one, b: Family = other, truth: float = truth) -> bool | None:
            return _inside(equivalence.superiority(a.sample(random), b.sample(random), 1 - LEVEL)[1], truth)

        def pairs(a: Family = one, b: Family = other, truth: float = truth) -> bool | None:
            changes = comparison.differences(a.sample(random), b.sample(random))
            return _inside(comparison.pair_superiority(changes, 1 - LEVEL)[1], truth)

        yield Row("P(errs more), unpaired", setting, "approximate", *_share(times, alone))
        yield Row("P(errs more), paired", setting, "exact", *_share(times, pairs))


def ratios(random: np.random.Generator, times: int) -> Iterator[Row]:
    """Pairs share half of what they are, as replicates of the same seeds might: correlated uniforms behind both."""
    for q, n in ((0.5, N), (0.9, 40), (0.9, 100)):
        for one, other in ((LOGNORMAL, LOGNORMAL), (LIGHTER, LOGNORMAL), (LOGNORMAL, MOSTLY_ZERO), (DIVERGING, LOGNORMAL)):
            low, high = float(one.ppf(q)), float(other.ppf(q))
            if not (0 < low < math.inf and 0 < high < math.inf):
                continue
            for paired in (True, False):

                def trial(
                    a: Family = one,
                    b: Family = other,
                    q: float = q,
                    n: int = n,
                    paired: bool = paired,
                    truth: float = high / low,
                ) -> bool | None:
                    shared = random.normal(size=n)
                    u, v = (stats.norm.cdf((shared + random.normal(size=n)) / math.sqrt(2)) for _ in range(2))
                    y = b.ppf(v if paired else random.random(n))
                    found = bootstrap.quantile_ratio(a.ppf(u), y, q, paired, resamples=RESAMPLES, seed=_seed(random))
                    return _inside(found.interval, truth)

                setting = f"q = {q}, n = {n}, {other.name} over {one.name}, {'paired' if paired else 'unpaired'}"
                yield Row("ratio of quantiles", setting, "approximate", *_share(times, trial))


def rates(random: np.random.Generator, times: int) -> Iterator[Row]:
    """Bursts of errors in 1,000 sequences of 5 reads: `burst` of them err in each sequence that errs."""
    for burst in (1, 2, 5):
        for wrong in (3, 30):
            k = random.binomial(1000, wrong / 1000, 5 * times)
            ones = np.ones_like(k)
            found = statistics.clustered_rates(burst * k, 5000 * ones, 1000 * ones, burst**2 * k, 5 * burst * k, 25_000 * ones)
            truth = burst * wrong / 5000
            measured = float(((found.low <= truth) & (truth <= found.high)).mean())
            setting = f"bursts of {burst}, {wrong} wrong sequences of 1,000 expected"
            yield Row("clustered rate", setting, "approximate", measured, 5 * times)


def correlations(random: np.random.Generator, times: int) -> Iterator[Row]:
    """Errors of replicates whose chances are Beta(a, b)."""
    for a, b, count in ((0.3, 8.0, 1000), (0.5, 50.0, 3540), (2.0, 50.0, 3540)):

        def trial(a: float = a, b: float = b, count: int = count) -> bool | None:
            errors = random.binomial(count, random.beta(a, b, N))
            return _inside(variance.icc_interval(errors, np.full(N, count)), 1 / (a + b + 1))

        yield Row(
            "intraclass correlation", f"Beta({a}, {b}), {count} reads", "approximate", *_share(max(QUICK, times // 2), trial)
        )


def alike(random: np.random.Generator, times: int) -> Iterator[Row]:
    """Replicates that all have the same chance: the true correlation is at its end."""

    def trial() -> bool | None:
        return _inside(variance.icc_interval(random.binomial(1000, 0.01, N), np.full(N, 1000)), 0.0)

    yield Row("intraclass correlation", "all alike, p = 0.01, 1000 reads", "exact", *_share(max(QUICK, times // 2), trial))


def tests(random: np.random.Generator, times: int) -> Iterator[Row]:
    def paired(x: Floats, y: Floats) -> float:
        return comparison.sign_flip(comparison.differences(x, y))

    for name, test in (("paired test", paired), ("unpaired test", comparison.brunner_munzel)):
        for family in (*FAMILIES, Family("96 % zero", zero=0.96)):

            def single(f: Family = family, test: Callable[[Floats, Floats], float] = test) -> bool:
                return test(f.sample(random), f.sample(random)) <= LEVEL

            def many(f: Family = family, test: Callable[[Floats, Floats], float] = test) -> bool:
                base = f.sample(random)
                return min(comparison.holm([test(base, f.sample(random)) for _ in range(10)])) <= LEVEL

            yield Row(f"{name}, false positives", family.name, "level", *_share(times, single))
            yield Row(f"{name}, any of 10 after Holm", family.name, "level", *_share(max(QUICK, times // 2), many))


def _seed(random: np.random.Generator) -> int:
    return int(random.integers(2**31))


PARTS = (
    proportions,
    quantiles,
    bands,
    chances,
    ratios,
    rates,
    tests,
    correlations,
    alike,
)  # new ones last: the number is in the seed


def measure(times: int, seed: int = 0) -> list[Row]:
    """Every row of the grid: `times` samples each, more where they are cheap."""
    return [row for index, part in enumerate(PARTS) for row in part(np.random.default_rng([seed, index]), times)]


def markdown(rows: Sequence[Row]) -> str:
    lines = [
        f"Made by `python -m benchmarks.coverage`: n = {N} unless stated, nominal 95 % (tests: 5 %), {RESAMPLES} resamples; ± is one",
        "standard error of the simulation. Samples without an answer (0/0) are left out.",
        "",
        "| what | setting | must be | measured | computed | samples | |",
        "|---|---|---|---|---|---|---|",
    ]
    targets = {"exact": "at least 95 %", "approximate": "93–97 %", "level": "at most 5 %"}
    for row in rows:
        error = math.sqrt(row.measured * (1 - row.measured) / row.of) if row.of else math.nan
        computed = "" if row.computed is None else f"{row.computed:.2%}"
        share = f"{row.measured:.2%} ± {error:.2%}"
        lines.append(
            f"| {row.what} | {row.setting} | {targets[row.target]} | {share} | {computed} | {row.of} | {row.verdict} |"
        )
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} samples a row instead of {FULL}")
    parser.add_argument("--out", type=Path, help="also write the table here")
    options = parser.parse_args(arguments)
    text = markdown(measure(QUICK if options.quick else FULL))
    print(text, end="")
    if options.out:
        options.out.write_text(text)


if __name__ == "__main__":
    main()
