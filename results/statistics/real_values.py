"""Numbers of any size and sign over replicates: interquartile means, differences of medians, and what a maximum says of other seeds.

Values are costs, of which lower ones are better; a diverged replicate is infinity.
"""

import numpy as np
from numpy.typing import ArrayLike

from results.statistics.bootstrap import percentiles
from results.statistics.comparison import differences
from results.statistics.intervals import CONFIDENCE, Floats, Interval, quantile, quantile_interval

RESAMPLES = 2000
FEWEST, FEWEST_EACH = 10, 3  # replicates that a bootstrap needs in all, and of each stratum: below, it is far too narrow
_BLOCK = 4_000_000  # most resampled values in memory at once


def interquartile_mean(values: ArrayLike) -> float:
    """The mean of the middle half of the values; infinity where one of them is, NaN for no values.

    Of n values the floor(n / 4) smallest and the floor(n / 4) largest are cut off, as by `scipy.stats.trim_mean(values, 0.25)` (Agarwal et
    al. 2021, "Deep reinforcement learning at the edge of the statistical precipice").
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    cut = ordered.size // 4
    middle = ordered[cut : ordered.size - cut]
    return float(middle.mean()) if middle.size else float("nan")


def enough(*strata: ArrayLike) -> bool:
    """Whether there are the replicates that a bootstrap needs: a resample of one has no spread, and one of few has too little."""
    sizes = [np.size(values) for values in strata]
    return sum(sizes) >= FEWEST and min(sizes) >= FEWEST_EACH


def interquartile_mean_interval(*strata: ArrayLike, confidence: float = CONFIDENCE, seed: int = 0) -> Interval:
    """Interval of the interquartile mean by a seeded percentile bootstrap over replicates: too narrow below about 20 replicates.

    It has no ends where these are not `enough`. Several strata, such as tasks, are pooled into one mean of the middle half of all values,
    so they must share one scale; each stratum is resampled by itself.
    """
    groups = [np.asarray(values, dtype=np.float64) for values in strata]
    total = sum(values.size for values in groups)
    if not enough(*groups):
        return Interval(-np.inf, np.inf)
    random, cut, rows, means = np.random.default_rng(seed), total // 4, max(1, _BLOCK // total), []
    for start in range(0, RESAMPLES, rows):
        count = min(rows, RESAMPLES - start)
        drawn = [values[random.integers(0, values.size, (count, values.size))] for values in groups]
        means.append(np.sort(np.concatenate(drawn, axis=1), axis=1)[:, cut : total - cut].mean(axis=1))
    drawn_means = np.concatenate(means)
    return percentiles(drawn_means, drawn_means, confidence)


def share_below_largest(replicates: int, confidence: float = CONFIDENCE) -> float:
    """A lower bound, with this confidence, on the share of all seeds that lie at or below the largest of `replicates`. 0 for none.

    The largest of n lies below the q-quantile of the population with probability q^n, whatever the distribution.
    """
    return float((1 - confidence) ** (1 / replicates)) if replicates else 0.0


def median_difference(
    first: ArrayLike, second: ArrayLike, paired: bool, confidence: float = CONFIDENCE
) -> tuple[float, Interval]:
    """How much larger the second is by the median, with an interval that covers at least `confidence` whatever the distributions.

    Paired: the median of second - first, from its order statistics. Else the difference of the two medians, from the order statistics of
    each at half the error (Bonferroni). NaN where both medians are infinite; an end is infinite where those that it is made of are.
    """
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if paired:
        changes = differences(x, y)
        return quantile(changes, 0.5), quantile_interval(changes, 0.5, confidence, -np.inf)
    of_x, of_y = (quantile_interval(values, 0.5, (1 + confidence) / 2, -np.inf) for values in (x, y))
    low, high = _minus(of_y.low, of_x.high, -np.inf), _minus(of_y.high, of_x.low, np.inf)
    return _minus(quantile(y, 0.5), quantile(x, 0.5), np.nan), Interval(low, high)


def _minus(one: float, other: float, unknown: float) -> float:
    """one - other, or `unknown` where both are the same infinity."""
    return unknown if np.isinf(one) and one == other else one - other


def wants_log_axis(*groups: ArrayLike) -> bool:
    """Whether to draw values on a log axis: none is negative, and the largest is over 100 times the smallest that is not 0."""
    values: Floats = np.concatenate([np.empty(0), *(np.asarray(group, dtype=np.float64).ravel() for group in groups)])
    finite = values[np.isfinite(values)]
    positive = finite[finite > 0]
    return bool(positive.size and (finite >= 0).all() and positive.max() > 100 * positive.min())
