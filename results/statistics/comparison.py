"""Whether one condition errs more than another: a rank test, the chance that it does, and ratios of quantiles; Holm's correction for many.

Paired where the numbers come as pairs (the same `init_seed` and `data_seed`): a sign-flip test on Pratt's signed ranks, exact under the
hypothesis that the two of a pair could as well be swapped. Else Brunner and Munzel's test by permutation, `unpaired.brunner_munzel`.
Zeros need no stand-in and a diverged replicate, infinity, errs most; two that diverged are equal.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from results.statistics.bootstrap import Ratio, quantile_ratio
from results.statistics.intervals import CONFIDENCE, Floats, Interval, clopper_pearson, refuse_confidence
from results.statistics.unpaired import Permuted, brunner_munzel, superiority

QUANTILES = (0.5, 0.9)
EXACT = 200  # most differing pairs for which the null distribution is computed and not drawn
DRAWS = 19_999
_BLOCK = 4_000_000  # signs held at once


@dataclass(frozen=True)
class Compared:
    """A comparison of two conditions.

    first, second: their numbers of replicates; where paired, both are the number of pairs. ratios: second over first, by quantile.
    superiority: P(second errs more) + P(they err equally)/2, within pairs where paired, with its interval; p: two-sided; least: the
    smallest p that replicates with these values can have; at_most: whether the exact p may be smaller (`Permuted`). tied: whether no
    two values that are compared differ.
    """

    paired: bool
    first: int
    second: int
    superiority: float
    interval: Interval
    p: float
    least: float
    ratios: dict[float, Ratio]
    at_most: bool = False
    tied: bool = False


def compare(
    first: ArrayLike,
    second: ArrayLike,
    paired: bool,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    quantiles: Sequence[float] = QUANTILES,
) -> Compared:
    """Compare the error rates of two conditions, [n] and [m]; where paired, first[i] and second[i] are one pair.

    quantiles: whose ratios are formed; () for costs, which may be negative.
    ValueError for a NaN, unequal numbers of a pair, and fewer than 2 replicates of a condition where they are not paired.
    """
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    ratios = {q: quantile_ratio(x, y, q, paired, confidence, seed=seed) for q in quantiles}
    if paired:
        changes = differences(x, y)
        chance, interval = pair_superiority(changes, confidence)
        test, tied = sign_flip(changes, seed), not changes.any()
    else:
        chance, interval = superiority(x, y, confidence)
        test, tied = brunner_munzel(x, y, seed), np.unique([*x, *y]).size == 1
    return Compared(paired, len(x), len(y), chance, interval, test.p, test.least, ratios, test.at_most, tied)


def differences(first: ArrayLike, second: ArrayLike) -> Floats:
    """second - first of each pair, 0 where both diverged. [n]"""
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if x.shape != y.shape or np.isnan(x).any() or np.isnan(y).any():
        raise ValueError(f"{x.size} and {y.size} numbers are no pairs: give both of each pair, infinity where one diverged")
    equal = x == y
    return np.where(equal, 0.0, np.where(equal, 0.0, y) - np.where(equal, 0.0, x))


def signed_ranks(changes: ArrayLike) -> Floats:
    """Ranks of |change| with its sign, ties averaged; zeros take part in the ranking and count 0 (Pratt 1959). [n]"""
    gaps = np.asarray(changes, dtype=np.float64)
    if np.isnan(gaps).any():
        raise ValueError("a change is NaN: give 0 where both of a pair diverged, as `differences` does")
    return np.sign(gaps) * scipy.stats.rankdata(np.abs(gaps))


def sign_flip(changes: ArrayLike, seed: int = 0) -> Permuted:
    """Two-sided p of the sum of signed ranks if every nonzero sign were a fair coin. 1 where no pair differs; least where all agree.

    Exact, ties included, for up to `EXACT` pairs that differ: the distribution of the sum is convolved rank by rank; and where all signs
    agree. Else `DRAWS` seeded draws, counting the observed one, which keeps the test valid (Phipson and Smyth 2010).
    """
    ranks = np.rint(2 * signed_ranks(changes)).astype(np.int64)  # twice the average ranks: whole numbers
    sizes, observed = np.abs(ranks[ranks != 0]), abs(int(ranks.sum()))
    agreeing = min(1.0, 2.0 ** (1 - sizes.size))  # the share of flips that make all signs agree
    if sizes.size and observed == sizes.sum():
        return Permuted(agreeing, agreeing)
    if sizes.size > EXACT:
        extreme, block = 0, max(1, _BLOCK // sizes.size)
        for start in range(0, DRAWS, block):
            positive = _signs(sizes.size, min(block, DRAWS - start), seed, start) @ sizes.astype(
                np.float64
            )  # whole numbers: exact
            extreme += int((np.abs(2 * positive - sizes.sum()) >= observed).sum())
        return Permuted((extreme + 1) / (DRAWS + 1), agreeing, extreme == 0)
    total = int(sizes.sum())
    chances = np.zeros(total + 1)  # of every sum of the positive ones
    chances[0] = 1.0
    for size in sizes:
        added = chances[:-size] / 2
        chances /= 2
        chances[size:] += added
    sums = 2 * np.arange(total + 1) - total
    return Permuted(min(1.0, float(chances[np.abs(sums) >= observed].sum())), agreeing)


@lru_cache(maxsize=8)
def _signs(pairs: int, draws: int, seed: int, start: int) -> NDArray[np.bool_]:
    """Draw fair coins, [draws, pairs], the same for every comparison of so many pairs."""
    return np.random.default_rng([seed, start]).random((draws, pairs), dtype=np.float32) < 0.5


def pair_superiority(changes: ArrayLike, confidence: float = CONFIDENCE) -> tuple[float, Interval]:
    """The share of pairs in which the second errs more, equal ones halved, and a conservative interval.

    The mean of two proportions, P(more) and P(more or equal), whose Clopper–Pearson intervals hold together by Bonferroni.
    """
    gaps = np.asarray(changes, dtype=np.float64)
    if not gaps.size:
        raise ValueError("there is no pair of replicates: nothing to compare")
    if np.isnan(gaps).any():
        raise ValueError("a change is NaN: give 0 where both of a pair diverged, as `differences` does")
    refuse_confidence(confidence)
    more, least = int((gaps > 0).sum()), int((gaps >= 0).sum())
    one, other = (clopper_pearson(count, gaps.size, (1 + confidence) / 2) for count in (more, least))
    return (more + least) / 2 / gaps.size, Interval((one.low + other.low) / 2, (one.high + other.high) / 2)


def holm(p: Sequence[float]) -> list[float]:
    """Adjusted p-values (Holm 1979): the chance of any false rejection at level α is at most α, however the tests depend on each other."""
    if not all(0 <= value <= 1 for value in p):
        raise ValueError(f"p = {[float(value) for value in p]} must lie in 0 … 1: they are probabilities")
    order = np.argsort(p, kind="stable")
    scaled = np.asarray(p, dtype=np.float64)[order] * np.arange(len(p), 0, -1)
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return [float(value) for value in adjusted]
