"""Intervals and quantiles for error rates that are mostly zero, sometimes huge and counted in correlated reads.

Three kinds of uncertainty, never mixed: over replicates (how many of n make no error, where the median lies), within a
replicate (its rate, from a finite evaluation set) and from replicates that have no number (failed, not run yet), which is
a bound, not an interval. A diverged replicate has a number: infinity, so it ranks worst in every quantile.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr, betaincinv, stdtrit  # those of scipy.stats, which is slow to import

Floats = NDArray[np.float64]
CONFIDENCE = 0.95
FEW_WRONG = 30  # wrong sequences below which the interval of their share is shown beside that of a rate


@dataclass(frozen=True)
class Interval:
    low: float
    high: float


@dataclass(frozen=True)
class Rates:
    """Rates in 0 … 1 with their intervals: one value per replicate. NaN where nothing was counted."""

    value: Floats
    low: Floats
    high: Floats


@cache  # conditions of one size share most of their counts
def clopper_pearson(successes: int, trials: int, confidence: float = CONFIDENCE) -> Interval:
    """Exact interval of a proportion: covers at least `confidence`, whatever the proportion. 0 … 1 without trials.

    >>> clopper_pearson(6, 25)
    Interval(low=0.0935643..., high=0.4512875...)
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes in {trials} trials: there must be 0 to {trials}")
    if trials == 0:
        return Interval(0.0, 1.0)
    low, high = clopper_pearsons(successes, trials, confidence)
    return Interval(float(low), float(high))


def clopper_pearsons(successes: ArrayLike, trials: ArrayLike, confidence: float = CONFIDENCE) -> tuple[Floats, Floats]:
    """The ends of `clopper_pearson` for many counts at once; NaN where a count is NaN, or not within 0 … its trials."""
    refuse_confidence(confidence)
    k, n = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    tail, possible = (1 - confidence) / 2, (k >= 0) & (k <= n)
    with np.errstate(invalid="ignore"):
        low = np.where(k == 0, 0.0, betaincinv(k, n - k + 1, tail))
        high = np.where(k == n, 1.0, betaincinv(k + 1, n - k, 1 - tail))
    return np.where(possible, low, np.nan), np.where(possible, high, np.nan)


def zero_error_bound(trials: int, confidence: float = CONFIDENCE) -> float:
    """The rate that 0 errors in `trials` independent trials excludes, one-sided: 1 - 0.05^(1/n), the "rule of three" 3/n.

    With reads as trials it assumes that reads err independently; with sequences as trials it bounds the share of sequences
    that hold an error and assumes only that sequences are independent. 1 without trials.
    """
    refuse_confidence(confidence)
    if trials < 0:
        raise ValueError(f"trials = {trials} must be 0 or more")
    return float(-np.expm1(np.log1p(-confidence) / trials)) if trials else 1.0


def clustered_rates(
    errors: ArrayLike,
    count: ArrayLike,
    sequences: ArrayLike,
    errors_sq: ArrayLike,
    errors_x_count: ArrayLike,
    count_sq: ArrayLike,
    confidence: float = CONFIDENCE,
) -> Rates:
    """errors / count with an interval that allows for reads of one sequence erring together. Arguments are per replicate.

    The ratio estimator's variance, clustered by sequence, gives the number of independent reads that are as informative;
    the interval is Clopper–Pearson's at that number (Korn and Graubard 1998, Survey Methodology 24, eq. 2), which keeps its
    coverage where a normal interval collapses: near zero. Assumes independent sequences, and that the sample shows how long
    bursts are: where rare sequences hold most errors and none of them is seen, the interval lies below the truth, and no interval
    from these counts alone knows it. docs/explanation/statistics.md says how often it then covers; the share of wrong sequences is exact.

    Without an error (or without a correct read) nothing is known about bursts, so whole sequences are the trials: the
    interval is exact if a sequence's chance of erring does not depend on how many reads it has.
    """
    e, c, n, ee, ec, cc = (
        np.atleast_1d(np.asarray(a, dtype=np.float64)) for a in (errors, count, sequences, errors_sq, errors_x_count, count_sq)
    )
    refuse_confidence(confidence)
    tail = (1 - confidence) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.where(c > 0, e / c, np.nan)
        variance = ratio_variance(e, c, n, ee, ec, cc)
        fewer = stdtrit(c - 1, 1 - tail) / stdtrit(n - 1, 1 - tail)  # the variance was estimated from n sequences
        effective = np.minimum(rate * (1 - rate) / variance, c) * fewer**2
        effective = np.where((e == 0) | (e == c), n, effective)
        wrong = rate * effective
        low = np.where(e == 0, 0.0, betaincinv(wrong, effective - wrong + 1, tail))
        high = np.where(e == c, 1.0, betaincinv(wrong + 1, effective - wrong, 1 - tail))
    alone = (n < 2) & (c > 0)  # one sequence says nothing about how sequences differ
    low, high = np.where(alone, 0.0, low), np.where(alone, 1.0, high)
    empty = np.isnan(rate)
    return Rates(rate, np.where(empty, np.nan, low), np.where(empty, np.nan, high))


def ratio_variance(e: Floats, c: Floats, n: Floats, ee: Floats, ec: Floats, cc: Floats) -> Floats:
    """Variance of e / c, clustered by sequence: the ratio estimator's (Cochran 1977, eq. 6.13). Per replicate, as `clustered_rates`.

    NaN without reads or with a single sequence, which says nothing about how sequences differ.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.where(c > 0, e / c, np.nan)
        return n / (n - 1) * np.maximum(ee - 2 * rate * ec + rate**2 * cc, 0) / c**2


def quantile(values: ArrayLike, q: float) -> float:
    """Linear interpolation between order statistics (numpy's default), but infinity wherever an infinite one has weight.

    NaN for no values.
    """
    refuse_share(q)
    ordered = _ordered(values)
    if not ordered.size:
        return float("nan")
    position = q * (ordered.size - 1)
    below = int(np.floor(position))
    weight = position - below
    if weight == 0:
        return float(ordered[below])
    low, high = ordered[below], ordered[below + 1]
    return float(low if np.isneginf(low) else high if np.isinf(high) else low + weight * (high - low))


@cache
def quantile_ranks(n: int, q: float, confidence: float = CONFIDENCE) -> tuple[int, int]:
    """1-based ranks of the order statistics that enclose the q-quantile of a population with at least `confidence`.

    0 as the lower rank, or n + 1 as the upper, says that n values can't bound the quantile on that side.
    """
    refuse_share(q)
    refuse_confidence(confidence)
    tail = (1 - confidence) / 2
    at_most = bdtr(np.arange(n + 1.0), n, q)  # P(at most k of n values lie below the quantile)
    lower = int(np.searchsorted(at_most, tail, side="right"))
    upper = int(np.searchsorted(at_most, 1 - tail, side="left")) + 1
    return lower, upper


def quantile_interval(values: ArrayLike, q: float, confidence: float = CONFIDENCE, least: float = 0.0) -> Interval:
    """Distribution-free interval of the population's q-quantile, over independent replicates.

    Too few values leave a side unbounded: its end is then `least`, the smallest value possible (0 for error rates), or infinity.
    """
    ordered = np.concatenate([[least], _ordered(values), [np.inf]])
    lower, upper = quantile_ranks(ordered.size - 2, q, confidence)
    return Interval(float(ordered[lower]), float(ordered[upper]))


def quantile_bounds(values: ArrayLike, missing: int, q: float, least: float = 0.0) -> Interval:
    """The q-quantile if all `missing` replicates turned out best, with the value `least`, and if all of them diverged."""
    if missing < 0:
        raise ValueError(f"missing = {missing} must be 0 or more: it counts replicates without a number")
    ordered = _ordered(values)
    best, worst = (np.concatenate([ordered, np.full(missing, rank)]) for rank in (least, np.inf))
    return Interval(quantile(best, q), quantile(worst, q))


def refuse_confidence(confidence: float) -> None:
    """ValueError unless a confidence lies between 0 and 1."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence = {confidence} must lie between 0 and 1, such as 0.95")


def refuse_share(q: float) -> None:
    """ValueError unless q is a share."""
    if not 0 <= q <= 1:
        raise ValueError(f"q = {q} must lie in 0 … 1: it is the share of replicates below the quantile")


def _ordered(values: ArrayLike) -> Floats:
    ordered = np.sort(np.asarray(values, dtype=np.float64).ravel())
    if np.isnan(ordered).any():
        raise ValueError("a value is NaN: give diverged replicates as infinity and leave missing ones out")
    return ordered
