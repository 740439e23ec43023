"""The comparisons that several claims share, on error rates of replicates, zeros and infinities (diverged) included."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike

from results.claims.evidence import Seeds
from results.rows.plural import distinct, factor
from results.statistics.bootstrap import divide
from results.statistics.comparison import differences, pair_superiority
from results.statistics.intervals import CONFIDENCE, Interval, clopper_pearson, quantile, quantile_interval
from results.statistics.unpaired import superiority


class Exceeds(NamedTuple):
    """P(a replicate of the first errs more than `factor` times one of the second) + P(equal)/2, its interval, and the medians' ratio,
    NaN where both are 0 or infinite."""

    chance: float
    interval: Interval
    ratio: float

    def __str__(self) -> str:
        return f"{factor(self.ratio)} ({probability(self.chance, self.interval)})"

    def moves(self, to_first: bool) -> str:
        """How the median changes from one to the other, such as "rises 6.7×", "falls to 0.20×" or "stays the same"."""
        ratio = self.ratio if to_first else float(divide(1.0, self.ratio))
        moved = "rises" if ratio > 1 else "falls to" if ratio < 1 else "stays the same"  # both are 0, or both infinite
        by = "" if moved == "stays the same" else f" {factor(ratio)}"
        return f"{moved}{by} ({probability(self.chance, self.interval)})"


def exceeds(first: ArrayLike, second: ArrayLike, factor: float, confidence: float = CONFIDENCE) -> Exceeds:
    """Test whether the first errs more than `factor` times the second: shown if the interval lies above 1/2, refuted if below.

    By ranks, so zeros need no stand-in and a diverged replicate (infinity) is as bad as can be.
    """
    one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    chance, interval = superiority(factor * other, one, confidence)
    return Exceeds(chance, interval, float(divide(quantile(one, 0.5), quantile(other, 0.5))))


def above(intervals: Iterable[Interval], value: float) -> tuple[bool, bool]:
    """Whether every interval lies above the value, and whether one lies below it. No interval shows nothing."""
    listed = list(intervals)
    return bool(listed) and all(interval.low > value for interval in listed), any(interval.high < value for interval in listed)


def higher(tests: Iterable[Exceeds]) -> tuple[bool, bool]:
    """Whether all tests are shown, and whether one is refuted."""
    return above((test.interval for test in tests), 0.5)


def higher_by_pairs(
    first: Mapping[Seeds, float], second: Mapping[Seeds, float], confidence: float = CONFIDENCE
) -> tuple[float, Interval]:
    """The chance that the second of a pair is higher, equal ones halved, and its interval, over the seeds that both have."""
    common = sorted(first.keys() & second.keys())
    return pair_superiority(differences([first[seeds] for seeds in common], [second[seeds] for seeds in common]), confidence)


class Median(NamedTuple):
    """A median over replicates with its exact interval, written as such in a sentence: f"{median:.2f}" is 0.53 [0.4, 0.6]."""

    value: float
    interval: Interval

    def __format__(self, form: str) -> str:
        return f"{self.value:{form}} {between(self.interval)}"


def median(values: ArrayLike, confidence: float = CONFIDENCE, least: float = 0.0) -> Median:
    """The median of values, none of which can be below `least`."""
    return Median(quantile(values, 0.5), quantile_interval(values, 0.5, confidence, least))


def median_accuracy(errors: ArrayLike, confidence: float = CONFIDENCE) -> Interval:
    """Interval of the median of 1 - error."""
    interval = quantile_interval(errors, 0.5, confidence)
    return Interval(1 - min(interval.high, 1.0), 1 - interval.low)


def share_below(count: int, total: int, value: float, behind: int | None) -> float:
    """One-sided p that a share is below the paper's: Fisher's test where `behind` replicates gave it, else the binomial one."""
    if behind is None:
        return float(scipy.stats.binomtest(count, total, value, "less").pvalue)
    in_paper = round(value * behind)
    return float(scipy.stats.fisher_exact([[count, total - count], [in_paper, behind - in_paper]], "less").pvalue)


def percent(count: int, total: int, confidence: float = CONFIDENCE) -> str:
    """A share with its exact interval, such as "3 of 10 [6.7%, 65.2%]"; `confidence` is that of the interval which is judged."""
    interval = clopper_pearson(count, total, confidence)
    low, high = (distinct(100 * end, 1, "f", 0, 100) for end in (interval.low, interval.high))
    return f"{count} of {total} [{low}%, {high}%]"


def between(interval: Interval) -> str:
    return f"[{interval.low:.3g}, {interval.high:.3g}]".replace("inf", "∞")


def probability(chance: float, interval: Interval) -> str:
    """A chance with its interval, such as "P = 0.96 [0.81, 0.99]" or "P < 0.005 [0, 0.01]"; none is rounded to never, even or always."""
    low, high = (distinct(end, 3, "g", 0, 0.5, 1) for end in (interval.low, interval.high))
    shown = "< 0.005" if chance < 0.005 else f"= {distinct(chance, 2, 'f', 0.5, 1)}"
    return f"P {shown} [{low}, {high}]"
