"""Two independent samples compared by ranks: P(the second errs more) with its interval, and a permutation test of an even chance.

Only the order of the values matters, so zeros need no stand-in and a diverged replicate, infinity, errs most.
"""

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from results.errors import StudyError
from results.statistics.intervals import Floats, Interval, refuse_confidence

Ints = NDArray[np.integer]
SPLITS = 50_000  # most different splits that are all summed, and not drawn: 9 and 9 replicates without ties
DRAWS = 9_999
_BLOCK = 25_000_000  # most positions of drawn splits in memory at once
_EQUAL = 1 - 1e-9  # ratio of statistics above which they differ by rounding alone


class Permuted(NamedTuple):
    """The p of a permutation test.

    p: two-sided; least: the smallest p that any split of these values into two samples of these sizes has. at_most: none of the random
    draws is as extreme as the samples, so p is the smallest that so many draws can show, and the exact one may be far smaller.
    """

    p: float
    least: float
    at_most: bool = False


def superiority(first: ArrayLike, second: ArrayLike, confidence: float) -> tuple[float, Interval]:
    """P(Y > X) + P(Y = X)/2 of samples X and Y with its two-sided interval. StudyError for fewer than 2 values of either.

    P(Y > X) and P(Y < X) each get an interval on the logit scale, with Brunner and Munzel's variance and degrees of freedom (2000). They
    are joined by the distances between their ends and their estimates (Zou and Donner 2008, Statistics in Medicine 27, 1693-1702), which
    keeps what each says about its own side: where most values are equal, the variance of the sum says too little. Without ties this is
    the logit interval of P(Y > X).
    """
    x, y = np.sort(np.asarray(first, dtype=np.float64)), np.sort(np.asarray(second, dtype=np.float64))
    refuse_confidence(confidence)
    _refuse_nan(x, y)
    n, m = x.size, y.size
    if min(n, m) < 2:
        raise StudyError(f"{n} and {m} replicates: an interval needs at least 2 of each condition")
    below_x, to_x = (
        np.searchsorted(y, x, "left"),
        np.searchsorted(y, x, "right"),
    )  # how many of y are below, and at most, each x
    below_y, to_y = np.searchsorted(x, y, "left"), np.searchsorted(x, y, "right")
    more, less = (m - to_x, below_y), (below_x, n - to_y)
    p, q = float(below_y.sum()) / n / m, float(below_x.sum()) / n / m
    (p_low, p_high), (q_low, q_high) = _logit_interval(p, *more, confidence), _logit_interval(q, *less, confidence)
    together = math.sqrt(_covariance(more, more) * _covariance(less, less))
    # without spread on one side nothing is known of how the two move together: the worst is that they move against each other
    correlation = max(-1.0, min(1.0, _covariance(more, less) / together)) if together else -1.0
    estimate = 0.5 if p == q else (p + 1 - q) / 2  # rounding must not make a difference that many replicates could show
    low = estimate - _joined(p - p_low, q_high - q, correlation) / 2
    high = estimate + _joined(p_high - p, q - q_low, correlation) / 2
    return estimate, Interval(max(0.0, low), min(1.0, high))


def brunner_munzel(first: ArrayLike, second: ArrayLike, seed: int = 0) -> Permuted:
    """Brunner and Munzel's test of P(Y > X) + P(Y = X)/2 = 1/2 by permutation (Neubert and Brunner 2007, CSDA 51, 5192-5204).

    The studentised statistic of the two samples is compared with that of all splits of the pooled values: exact where the samples come
    from one distribution, whatever its ties, and right in large samples where only the chance is even. The variance has a floor below
    every value but 0, so samples that do not overlap have the largest statistic. p is 1 where all values are tied.

    Beyond `SPLITS` different splits, the few without overlap are counted, so samples that do not overlap have an exact p. Of the others
    `DRAWS` are drawn with a seed and the observed one is counted among them; p is the sum of the two shares.
    """
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    _refuse_nan(x, y)
    if min(x.size, y.size) < 2:
        raise StudyError(f"{x.size} and {y.size} replicates: a comparison needs at least 2 of each condition")
    values, place = np.unique(np.concatenate([x, y]), return_inverse=True)
    sizes = np.bincount(place, minlength=values.size)
    own = np.concatenate([[0], np.bincount(place[x.size :], minlength=values.size).cumsum()])
    observed = float(_statistics(own[:, None], sizes, y.size)[0]) * _EQUAL
    if _countable(sizes, y.size):
        null, weights = _all_splits(tuple(sizes.tolist()), y.size)
        return Permuted(min(1.0, float(weights[null >= observed].sum())), float(weights[null >= null.max() * _EQUAL].sum()))
    apart = x.size * y.size * _EQUAL  # the statistic of samples that do not overlap
    separated = _separated(sizes, y.size)
    if observed >= apart:
        return Permuted(separated, separated)
    if values.size == place.size:
        untied = _untied(place.size, y.size, seed)
        below, overlapping = (int(np.searchsorted(untied, statistic)) for statistic in (observed, apart))
    else:
        below = overlapping = 0
        for splits in _drawn(sizes, y.size, seed):
            statistics = _statistics(splits, sizes, y.size)
            below, overlapping = below + int((statistics < observed).sum()), overlapping + int((statistics < apart).sum())
    p = separated + (1 - separated) * (overlapping - below + 1) / (overlapping + 1)
    return Permuted(p, separated or 1 / (overlapping + 1), below == overlapping)


def _refuse_nan(*samples: Floats) -> None:
    if any(np.isnan(sample).any() for sample in samples):
        raise ValueError("a value is NaN: give diverged replicates as infinity and leave missing ones out")


def _logit_interval(chance: float, by_x: Ints, by_y: Ints, confidence: float) -> tuple[float, float]:
    """Interval of the share of pairs (x, y) with a property. by_x: for how many y each x has it; by_y: for how many x each y has it.

    Where no pair or every pair has it, the bound is exact: k = min(n, m) independent pairs are all alike with probability chance^k.
    """
    n, m = by_x.size, by_y.size
    if chance in (0.0, 1.0):
        reach = 1 - ((1 - confidence) / 2) ** (1 / min(n, m))
        return (0.0, reach) if chance == 0 else (1 - reach, 1.0)
    from_x, from_y = by_x.var(ddof=1) / n / m**2, by_y.var(ddof=1) / m / n**2
    variance = from_x + from_y
    freedom = variance**2 / (from_x**2 / (n - 1) + from_y**2 / (m - 1))
    half = scipy.stats.t.ppf((1 + confidence) / 2, freedom) * math.sqrt(variance) / (chance * (1 - chance))
    middle = scipy.special.logit(chance)
    return float(scipy.special.expit(middle - half)), float(scipy.special.expit(middle + half))


def _covariance(one: tuple[Ints, Ints], other: tuple[Ints, Ints]) -> float:
    """Covariance of two shares of pairs, from the same counts as `_logit_interval`."""
    n, m = one[0].size, one[1].size
    by_x, by_y = (float(((a - a.mean()) * (b - b.mean())).sum()) for a, b in zip(one, other, strict=True))
    return by_x / (n - 1) / n / m**2 + by_y / (m - 1) / m / n**2


def _joined(one: float, other: float, correlation: float) -> float:
    return math.sqrt(max(0.0, one**2 + other**2 - 2 * correlation * one * other))


def _statistics(taken: Ints, sizes: Ints, m: int) -> Floats:
    """|estimate - 1/2| over its standard error, for splits of pooled values in K groups of ties: [S].

    taken: how many of the second sample's m values are among the first 0 … K groups, [K + 1, S]; sizes: of the groups, [K].
    """
    n = int(sizes.sum()) - m
    above, square_x, square_y = (np.zeros(taken.shape[1]) for _ in range(3))
    before = 0
    for k, size in enumerate(sizes.tolist()):
        y = (taken[k + 1] - taken[k]).astype(np.float64)
        placed_x = (taken[k + 1] + taken[k]).astype(np.float64)  # twice how many y are below an x of this group, ties halved
        placed_y = 2 * before + size - placed_x
        square_x += (size - y) * placed_x * placed_x
        product = y * placed_y
        above += product
        square_y += product * placed_y
        before += size
    pairs = 2 * n * m
    variance_x = (square_x - (pairs - above) ** 2 / n) / (n - 1) / n / (2 * m) ** 2
    variance_y = (square_y - above**2 / m) / (m - 1) / m / (2 * n) ** 2
    statistic: Floats = np.abs(above / pairs - 0.5) / np.sqrt(np.maximum(variance_x + variance_y, 1 / pairs**2))
    return statistic


def _separated(sizes: Ints, m: int) -> float:
    """The share of all splits whose samples do not overlap; 0 where ties make each overlap, or below what float64 can hold."""
    total, ends = int(sizes.sum()), set(sizes.cumsum().tolist())
    return ((m in ends) + (total - m in ends)) / math.comb(total, m)


def _countable(sizes: Ints, m: int) -> bool:
    """Whether the second sample's m values can fall into the groups of ties in at most `SPLITS` ways."""
    ways, left = np.ones(1), int(sizes.sum())
    for size in sizes.tolist():
        left -= size
        ways = np.convolve(ways, np.ones(size + 1))[: m + 1]
        if ways[max(0, m - left) :].max(initial=0) > SPLITS:  # each of these can still be completed
            return False
    return True


@lru_cache(maxsize=64)
def _all_splits(sizes: tuple[int, ...], m: int) -> tuple[Floats, Floats]:
    """The statistic of every count of the second sample's values by group, and its probability: [S] each."""
    taken, weights, left = np.zeros((1, 1), dtype=np.int32), np.ones(1), sum(sizes)
    whole = scipy.special.comb(left, m)
    for size in sizes:
        left -= size
        more = taken[-1][:, None] + np.arange(size + 1)
        parent, count = np.nonzero((more <= m) & (more >= m - left))
        taken = np.vstack([taken[:, parent], more[parent, count]])
        weights = weights[parent] * scipy.special.comb(size, count)
    return _statistics(taken, np.array(sizes), m), weights / whole


@lru_cache(maxsize=16)
def _untied(total: int, m: int, seed: int) -> Floats:
    """The sorted statistics of drawn splits without ties, which are the same for all samples of these sizes."""
    ones = np.ones(total, dtype=np.int64)
    return np.sort(np.concatenate([_statistics(splits, ones, m) for splits in _drawn(ones, m, seed)]))


def _drawn(sizes: Ints, m: int, seed: int) -> Iterator[Ints]:
    """`DRAWS` random splits in blocks, as `_statistics` takes them."""
    total = int(sizes.sum())
    ends = np.concatenate([[0], sizes.cumsum()])
    at_once = max(1, min(DRAWS, _BLOCK // total))
    for start in range(0, DRAWS, at_once):
        yield _orders(total, m, seed, start, min(at_once, DRAWS - start))[ends]


@lru_cache(maxsize=2)
def _orders(total: int, m: int, seed: int, start: int, draws: int) -> Ints:
    """How many of m chosen items are among the first 0 … total, for random choices: selection sampling, [total + 1, draws]."""
    random = np.random.default_rng([seed, start])
    taken = np.zeros((total + 1, draws), dtype=np.int16 if total < 2**14 else np.int32)
    for i in range(total):
        taken[i + 1] = taken[i] + (random.random(draws) * (total - i) < m - taken[i])
    return taken
