"""Bootstrap intervals of the ratio of a quantile between two conditions; `intervals.quantile_interval` is that of a single quantile.

Percentile intervals (Efron 1979), seeded, so that the same rows give the same digits. Not BCa: its acceleration is a jackknife, which is
inconsistent for quantiles, undefined where all values are tied and NaN where one is infinite; `scipy.stats.bootstrap` interpolates between
infinities too. A diverged replicate is infinity and ranks worst. `docs/explanation/statistics.md` says how often these intervals cover.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from results.statistics.intervals import CONFIDENCE, Floats, Interval, quantile, refuse_confidence, refuse_share

RESAMPLES = 9999
_BLOCK = 4_000_000  # most numbers of resampled pairs in memory at once


@dataclass(frozen=True)
class Ratio:
    """A quantile of the second condition divided by the first's, with its interval; where either is None, `reason` says why."""

    value: float | None
    interval: Interval | None
    reason: str | None = None


def quantile_ratio(
    first: ArrayLike,
    second: ArrayLike,
    q: float,
    paired: bool,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Ratio:
    """q-quantile of `second` over that of `first`, resampling pairs (first[i], second[i]) where paired, else each condition alone.

    0/0 and ∞/∞ have no ratio. A resample that has none counts as 0 for the lower end and as infinity for the upper one. Too few
    replicates to bound the quantile itself on both sides give the ratio without an interval: see `replicates_to_bound`.
    """
    x, y = _checked(first, q, "the first condition"), _checked(second, q, "the second condition")
    if paired and len(x) != len(y):
        raise ValueError(f"{len(x)} and {len(y)} replicates can't be paired: give one number of each condition for every pair")
    value = float(divide(quantile(y, q), quantile(x, q)))
    if math.isnan(value):
        kind = "without error" if quantile(x, q) == 0 else "diverged"
        return Ratio(None, None, f"both are {kind} at this quantile")
    least = replicates_to_bound(q, confidence)
    if min(len(x), len(y)) < least:
        return Ratio(value, None, f"an interval needs {least} replicates of each")
    if paired:
        low, high = _draw_pairs(x, y, q, resamples, seed)
    else:
        random = np.random.default_rng(seed)
        low, high = _draw(np.sort(x), q, resamples, random), _draw(np.sort(y), q, resamples, random)
    ratios = divide(high, low)
    undefined = np.isnan(ratios)
    return Ratio(value, percentiles(np.where(undefined, 0.0, ratios), np.where(undefined, np.inf, ratios), confidence))


def replicates_to_bound(q: float, confidence: float = CONFIDENCE) -> int:
    """Fewest replicates whose order statistics bound the q-quantile on both sides: 6 for the median, 36 for q = 0.9 at 95 %.

    n values all lie below the quantile with probability q^n, and all above it with (1 - q)^n.
    """
    if not 0 < q < 1:
        raise ValueError(f"q = {q} must lie between 0 and 1: the extremes of a population have no bound")
    refuse_confidence(confidence)
    n = max(1, math.floor(math.log((1 - confidence) / 2) / math.log(max(q, 1 - q))))
    while max(q, 1 - q) ** n > (1 - confidence) / 2:
        n += 1
    return n


def _draw(ordered: Floats, q: float, resamples: int, random: np.random.Generator) -> Floats:
    """The q-quantile of resamples of sorted values: [resamples]. Only the order statistics that it needs are drawn.

    The k-th smallest of n uniform ranks is Beta(k, n - k + 1), and the next one, given it, the least of n - k uniforms above it.
    """
    n = ordered.size
    position = q * (n - 1)
    k = int(position) + 1
    place = random.beta(k, n - k + 1, resamples)
    low = ordered[np.minimum((place * n).astype(int), n - 1)]
    if position == k - 1:
        return low
    place = place + (1 - place) * random.beta(1, n - k, resamples)
    return _interpolate(low, ordered[np.minimum((place * n).astype(int), n - 1)], position - (k - 1))


def _draw_pairs(x: Floats, y: Floats, q: float, resamples: int, seed: int) -> tuple[Floats, Floats]:
    """The q-quantiles of both conditions in resamples of pairs: [resamples] each."""
    position = q * (len(x) - 1)
    below = int(position)
    blocks: list[tuple[Floats, Floats]] = []
    for times in _chosen(len(x), resamples, seed):
        both = []
        for values in (x, y):
            order = np.argsort(values, kind="stable")
            reached = np.cumsum(times[order], axis=0, dtype=times.dtype)  # how many of a resample are among the smallest
            low, high = (values[order][(reached <= at).sum(axis=0)] for at in (below, min(below + 1, len(x) - 1)))
            both.append(_interpolate(low, high, position - below))
        blocks.append((both[0], both[1]))
    return np.concatenate([low for low, _ in blocks]), np.concatenate([high for _, high in blocks])


@lru_cache(maxsize=2)
def _chosen(n: int, resamples: int, seed: int) -> tuple[NDArray[np.int32], ...]:
    """How often each of n pairs is in a resample, in blocks: [n, resamples of the block] each. The same for all samples of n pairs."""
    random, blocks = np.random.default_rng(seed), []
    size = max(1, _BLOCK // n)
    for start in range(0, resamples, size):
        chosen = random.integers(0, n, (min(size, resamples - start), n))
        cells = chosen * len(chosen) + np.arange(len(chosen))[:, None]
        counts = np.bincount(cells.ravel(), minlength=n * len(chosen)).reshape(n, len(chosen))
        blocks.append(counts.astype(np.int32))
    return tuple(blocks)


def _interpolate(low: Floats, high: Floats, weight: float) -> Floats:
    """Interpolate as `intervals.quantile` does: infinity wherever an infinite value has weight."""
    if weight == 0:
        return low
    finite = np.isfinite(high)
    return np.where(finite, low + weight * (np.where(finite, high, 0) - np.where(finite, low, 0)), high)


def divide(above: ArrayLike, below: ArrayLike) -> Floats:
    """above / below; NaN for 0/0 and ∞/∞, infinity for anything else over 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.divide(above, below)


def percentiles(lows: Floats, highs: Floats, confidence: float) -> Interval:
    """The order statistics of resamples that leave (1 - confidence)/2 of them outside at each end.

    lows, highs: the same resamples, with what an undefined one counts as for the lower end and for the upper one.
    """
    cut = int((1 - confidence) / 2 * len(lows))
    return Interval(float(np.partition(lows, cut)[cut]), float(np.partition(highs, len(highs) - 1 - cut)[len(highs) - 1 - cut]))


def _checked(values: ArrayLike, q: float, what: str) -> Floats:
    refuse_share(q)
    numbers = np.asarray(values, dtype=np.float64).ravel()
    if not numbers.size:
        raise ValueError(f"{what} has no replicate with a number: a quantile needs at least one")
    if np.isnan(numbers).any() or (numbers < 0).any():
        raise ValueError(f"{what} holds a NaN or a negative number: give error rates, with infinity for diverged replicates")
    return numbers
