"""How often the intervals of `results` cover and its tests reject where nothing differs, on a fixed grid of error distributions.

python -m benchmarks.coverage [--quick] [--out benchmarks/results/cpu/coverage.md]

The grid has 5, 8, 12 and 25 replicates per condition, chances near 0 and heavy tails: log-normal errors, errors that are mostly zero, and
errors of which some are infinite (diverged). Exact intervals must cover at least 95 %, and as often as computed. Approximate ones must
cover at least 95 %, within the error of the simulation; the bootstrap of a ratio should cover 93-97 %.
"""

import argparse
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

from results.markdown_table import markdown_table
from results.statistics import bootstrap, comparison, equivalence, unpaired, variance
from results.statistics import intervals as statistics
from results.statistics.intervals import Floats
from results.statistics.survival import Survival, survival

N = 25
SIZES = (5, 8, 12, 25)
RESAMPLES = 999
QUICK, FULL = 150, 600
LEVEL = 0.05
_HEAD = f"""Made by `python -m benchmarks.coverage` (`--quick`: fewer samples): n = {N} unless stated, nominal 95 % (tests: 5 %), \
{RESAMPLES} resamples; ± is one
standard error of the simulation. Samples without an answer (0/0) are left out.
"""


@dataclass(frozen=True)
class Family:
    """Error rates: 0 with probability `zero`, infinite with `diverged`, else log-normal around exp(median) with this sigma."""

    name: str
    zero: float = 0.0
    diverged: float = 0.0
    sigma: float = 2.0
    median: float = -5.0  # logarithm

    def ppf(self, u: Floats | float) -> Floats:
        inner = np.clip((np.asarray(u) - self.zero) / (1 - self.zero - self.diverged), 0, 1)
        value = np.exp(self.sigma * stats.norm.ppf(inner) + self.median)
        return np.where(np.asarray(u) < self.zero, 0.0, np.where(np.asarray(u) >= 1 - self.diverged, np.inf, value))

    def sample(self, random: np.random.Generator, n: int = N) -> Floats:
        return self.ppf(random.random(n))

    def above(self, x: Floats, at_least: bool = False) -> Floats:
        """P(error > x), or P(error ≥ x), of finite x ≥ 0: [...] as x."""
        with np.errstate(divide="ignore"):
            tail = self.diverged + (1 - self.zero - self.diverged) * stats.norm.sf((np.log(x) - self.median) / self.sigma)
        return np.where(x == 0, 1.0 if at_least else 1 - self.zero, tail)


LOGNORMAL, LIGHTER = Family("log-normal"), Family("log-normal, sigma 1", sigma=1.0)
MOSTLY_ZERO, DIVERGING = Family("80 % zero", zero=0.8), Family("40 % zero, 10 % diverged", zero=0.4, diverged=0.1)
HALF_ZERO, RARE = Family("50 % zero", zero=0.5), Family("96 % zero", zero=0.96)
ABOVE, FAR = Family("log-normal, 50 times higher", median=-1.0), Family("log-normal, 400 times higher", median=1.0)
FAMILIES = (LOGNORMAL, MOSTLY_ZERO, DIVERGING)


@dataclass(frozen=True)
class Row:
    """`measured`: the share, of `samples` draws; computed: what it must be, where that is known. target: a key of `TARGETS`."""

    what: str
    setting: str
    target: str
    measured: float
    samples: int
    computed: float | None = None

    @property
    def error(self) -> float:
        """Standard error of the simulation, at least that of the nominal share."""
        return math.sqrt(max(self.measured * (1 - self.measured), LEVEL * (1 - LEVEL)) / self.samples)

    @property
    def verdict(self) -> str:
        """The same sentence in the table and in the tests; four standard errors stand for agreement."""
        if self.computed is not None and abs(self.measured - self.computed) > 4 * self.error:
            return "differs from the computed one"
        if self.target == "level":
            return "above 5 %" if self.measured - 2 * self.error > LEVEL else "holds"
        if self.target == "exact":
            return "below 95 %" if self.measured + 4 * self.error < 1 - LEVEL else "holds"
        if self.target == "nominal":
            return "below 95 %" if self.measured + 2 * self.error < 1 - LEVEL else "holds"
        if self.target == "not covered":
            return "below 95 %, as stated" if self.measured < 1 - LEVEL else "holds"
        return "holds" if 0.93 <= self.measured <= 0.97 else "below 93 %" if self.measured < 0.93 else "above 97 %"


def _share(trials: Iterable[bool | None]) -> tuple[float, int]:
    """How often a trial succeeds, of those that have an answer."""
    answers = [answer for answer in trials if answer is not None]
    return (sum(answers) / len(answers) if answers else math.nan), len(answers)


def _inside(interval: statistics.Interval | None, value: float) -> bool | None:
    return None if interval is None else bool(interval.low <= value <= interval.high)


def proportions(random: np.random.Generator, times: int) -> Iterator[Row]:
    table = [statistics.clopper_pearson(k, N) for k in range(N + 1)]
    for p in (0.001, 0.01, 0.04, 0.1, 0.3, 0.5):
        covers = np.array([interval.low <= p <= interval.high for interval in table])
        computed = float(stats.binom.pmf(np.arange(N + 1), N, p)[covers].sum())
        measured = float(covers[random.binomial(N, p, 20 * times)].mean())
        yield Row("Clopper–Pearson", f"p = {p}", "exact", measured, 20 * times, computed)


def quantiles(random: np.random.Generator, times: int) -> Iterator[Row]:
    for n in (*SIZES[1:-1], N):  # 5 replicates bound no median: the interval is everything
        for family in FAMILIES:
            for q in (0.5, 0.75, 0.9) if n == N else (0.5,):
                truth = float(family.ppf(q))
                lower, upper = statistics.quantile_ranks(n, q)
                below = np.arange(lower, upper)  # of the sample below the quantile: the two order statistics enclose it
                atom = family.above(np.array([truth]), True) - family.above(np.array([truth])) if math.isfinite(truth) else 1.0
                computed = float(stats.binom.pmf(below, n, q).sum()) if float(np.squeeze(atom)) == 0 else None
                trials = (_inside(statistics.quantile_interval(family.sample(random, n), q), truth) for _ in range(2 * times))
                yield Row("order statistics", f"q = {q}, n = {n}, {family.name}", "exact", *_share(trials), computed)


def bands(random: np.random.Generator, times: int) -> Iterator[Row]:
    for family in FAMILIES:
        trials = (_within_band(family, survival(family.sample(random))) for _ in range(2 * times))
        computed = 1 - LEVEL if family is LOGNORMAL else None
        yield Row("survival band", family.name, "exact", *_share(trials), computed)


def _within_band(family: Family, curve: Survival) -> bool:
    """Whether the true curve lies within the band everywhere."""
    before = family.above(curve.x[1:], at_least=True)  # the step before reaches up to here
    ends = np.append(before, family.diverged)
    starts = family.above(curve.x)
    return bool(((curve.low <= np.minimum(starts, ends)) & (np.maximum(starts, ends) <= curve.high)).all())


PAIRS = (
    (LOGNORMAL, LOGNORMAL),
    (LOGNORMAL, LIGHTER),
    (LOGNORMAL, ABOVE),
    (LOGNORMAL, FAR),
    (MOSTLY_ZERO, LOGNORMAL),
    (HALF_ZERO, LOGNORMAL),
    (MOSTLY_ZERO, MOSTLY_ZERO),
    (MOSTLY_ZERO, HALF_ZERO),
    (RARE, LOGNORMAL),
    (RARE, RARE),
    (DIVERGING, DIVERGING),
    (DIVERGING, LOGNORMAL),
)


def chances(random: np.random.Generator, times: int) -> Iterator[Row]:
    for one, other in PAIRS:
        x, y = (family.ppf((np.arange(4000) + 0.5) / 4000) for family in (one, other))
        truth = float((np.searchsorted(x, y, "left") + np.searchsorted(x, y, "right")).mean()) / 2 / x.size
        for n in SIZES:
            setting = f"n = {n}, P = {truth:.2f}, {one.name} against {other.name}"
            samples = ((one.sample(random, n), other.sample(random, n)) for _ in itertools.count())
            alone = (unpaired.superiority(x, y, 1 - LEVEL)[1] for x, y in itertools.islice(samples, 2 * times))
            yield Row("P(errs more), unpaired", setting, "nominal", *_share(_inside(interval, truth) for interval in alone))
            if n in (SIZES[0], N):
                changes = (comparison.differences(x, y) for x, y in itertools.islice(samples, times // 2))
                pairs = (_inside(comparison.pair_superiority(change, 1 - LEVEL)[1], truth) for change in changes)
                yield Row("P(errs more), paired", setting, "exact", *_share(pairs))


def margins(random: np.random.Generator, times: int) -> Iterator[Row]:
    """Conditions that differ by exactly the margin of 0.15, which must not be called equivalent in more than 5 % of the samples."""
    for zero in (1.0, 0.98, 0.9, 0.8, 0.4):
        for n in (*SIZES[1:], 50):
            samples = (
                [Family("", zero=z).sample(random, n) if z < 1 else np.zeros(n) for z in (zero, zero - 0.3)]
                for _ in range(times)
            )
            trials = (equivalence.compare(x, y, 0.15).verdict == "equivalent" for x, y in samples)
            setting = f"n = {n}, {zero:.0%} zero against {zero - 0.3:.0%}".replace("%", " %")
            yield Row("called equivalent at the margin", setting, "level", *_share(trials))


def ratios(random: np.random.Generator, times: int) -> Iterator[Row]:
    """Pairs share half of what they are, as replicates of the same seeds might: correlated uniforms behind both."""
    for q, n in ((0.5, 8), (0.5, 12), (0.5, N), (0.9, 40), (0.9, 100)):
        for one, other in ((LOGNORMAL, LOGNORMAL), (LIGHTER, LOGNORMAL), (LOGNORMAL, MOSTLY_ZERO), (DIVERGING, LOGNORMAL)):
            low, high = float(one.ppf(q)), float(other.ppf(q))
            if not (0 < low < math.inf and 0 < high < math.inf):
                continue
            for paired in (True, False):
                trials = (_inside(_ratio(random, one, other, q, n, paired).interval, high / low) for _ in range(times))
                setting = f"q = {q}, n = {n}, {other.name} over {one.name}, {'paired' if paired else 'unpaired'}"
                yield Row("ratio of quantiles", setting, "approximate", *_share(trials))


def _ratio(random: np.random.Generator, one: Family, other: Family, q: float, n: int, paired: bool) -> bootstrap.Ratio:
    shared = random.normal(size=n)
    u, v = (stats.norm.cdf((shared + random.normal(size=n)) / math.sqrt(2)) for _ in range(2))
    y = other.ppf(v if paired else random.random(n))
    return bootstrap.quantile_ratio(one.ppf(u), y, q, paired, resamples=RESAMPLES, seed=int(random.integers(2**31)))


def rates(random: np.random.Generator, times: int) -> Iterator[Row]:
    """Bursts of errors in 1,000 sequences of 5 reads: `burst` of them err in each sequence that errs."""
    for burst in (1, 2, 5):
        for wrong in (3, 30):
            k = random.binomial(1000, wrong / 1000, 5 * times)
            ones = np.ones_like(k)
            rate = statistics.clustered_rates(burst * k, 5000 * ones, 1000 * ones, burst**2 * k, 5 * burst * k, 25_000 * ones)
            truth = burst * wrong / 5000
            measured = float(((rate.low <= truth) & (truth <= rate.high)).mean())
            setting = f"bursts of {burst}, {wrong} wrong sequences of 1,000 expected"
            yield Row("clustered rate", setting, "approximate", measured, 5 * times)


def whole(random: np.random.Generator, times: int) -> Iterator[Row]:
    """One wrong sequence in ten is wrong in all of its 50 reads, the others in one: the few that matter are often not in the sample."""
    for wrong in (3, 10, 30, 100):
        k = random.binomial(1000, wrong / 1000, 5 * times)
        all_wrong = random.binomial(k, 0.1)
        errors, squares = k + 49 * all_wrong, k + 2499 * all_wrong
        ones = np.ones_like(k)
        rate = statistics.clustered_rates(errors, 50_000 * ones, 1000 * ones, squares, 50 * errors, 2_500_000 * ones)
        truth = wrong / 1000 * (0.9 + 0.1 * 50) / 50
        setting = f"one wrong sequence in ten wrong throughout, {wrong} wrong of 1,000 expected"
        yield Row(
            "clustered rate", setting, "not covered", float(((rate.low <= truth) & (truth <= rate.high)).mean()), 5 * times
        )
        table = {successes: statistics.clopper_pearson(successes, 1000) for successes in np.unique(k).tolist()}
        covers = np.array([table[successes].low <= wrong / 1000 <= table[successes].high for successes in k.tolist()])
        yield Row("share of wrong sequences", setting, "exact", float(covers.mean()), 5 * times)


def correlations(random: np.random.Generator, times: int) -> Iterator[Row]:
    """Errors of replicates whose chances are Beta(a, b)."""
    for n in SIZES:
        for a, b, count in ((0.3, 8.0, 1000), (0.5, 50.0, 3540), (2.0, 50.0, 3540)):
            samples = (random.binomial(count, random.beta(a, b, n)) for _ in range(_fewer(times)))
            trials = (_inside(variance.icc_interval(errors, np.full(n, count)), 1 / (a + b + 1)) for errors in samples)
            setting = f"n = {n}, Beta({a}, {b}), {count} reads"
            yield Row("intraclass correlation", setting, "nominal", *_share(trials))


def alike(random: np.random.Generator, times: int) -> Iterator[Row]:
    """Replicates that all have the same chance: the true correlation is at its end."""
    for n in SIZES:
        samples = (random.binomial(1000, 0.01, n) for _ in range(_fewer(times)))
        trials = (_inside(variance.icc_interval(errors, np.full(n, 1000)), 0.0) for errors in samples)
        yield Row("intraclass correlation", f"n = {n}, all alike, p = 0.01, 1000 reads", "exact", *_share(trials))


def tests(random: np.random.Generator, times: int) -> Iterator[Row]:
    def paired(x: Floats, y: Floats) -> float:
        return comparison.sign_flip(comparison.differences(x, y)).p

    def alone(x: Floats, y: Floats) -> float:
        return unpaired.brunner_munzel(x, y).p

    for name, test in (("paired test", paired), ("unpaired test", alone)):
        for family in (*FAMILIES, RARE):
            for n in SIZES:
                setting = f"n = {n}, {family.name}"
                single = (test(family.sample(random, n), family.sample(random, n)) <= LEVEL for _ in range(times))
                yield Row(f"{name}, false positives", setting, "level", *_share(single))
                bases = (family.sample(random, n) for _ in range(_fewer(times)))
                many = (
                    min(comparison.holm([test(base, family.sample(random, n)) for _ in range(10)])) <= LEVEL for base in bases
                )
                yield Row(f"{name}, any of 10 after Holm", setting, "level", *_share(many))


def _fewer(times: int) -> int:
    """How often a trial is made that takes long."""
    return max(QUICK, times * 3 // 10)


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
    margins,
    whole,
)  # new ones last: the number is in the seed


def measure(times: int, seed: int = 0) -> list[Row]:
    """Every row of the grid: `times` samples each, more where they are cheap."""
    return [row for index, part in enumerate(PARTS) for row in part(np.random.default_rng([seed, index]), times)]


TARGETS = {
    "exact": "at least 95 %",
    "nominal": "at least 95 %, approximately",
    "approximate": "93–97 %",
    "level": "at most 5 %",
    "not covered": "–",
}


def markdown(rows: Sequence[Row]) -> str:
    columns = ("what", "setting", "must be", "measured", "computed", "samples", "")
    return f"{_HEAD}\n{markdown_table(columns, map(_cells, rows))}\n"


def _cells(row: Row) -> list[object]:
    error = math.sqrt(row.measured * (1 - row.measured) / row.samples) if row.samples else math.nan
    measured = f"{row.measured:.2%} ± {error:.2%}"
    computed = "" if row.computed is None else f"{row.computed:.2%}"
    return [row.what, row.setting, TARGETS[row.target], measured, computed, row.samples, row.verdict]


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
