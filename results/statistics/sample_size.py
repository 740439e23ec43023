"""The number of replicates that would settle a question if what was seen so far is the truth. It is a plan: the truth may differ.

For a probability (of an error-free replicate) by exact Clopper–Pearson intervals, searched upward; for a comparison of two conditions
by Noether's formulas (1987, JASA 82, 645–647) with the variance reduced by ties.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from results.statistics.comparison import differences, signed_ranks
from results.statistics.intervals import CONFIDENCE, clopper_pearson
from results.statistics.unpaired import superiority

POWER = 0.8
EQUAL = "not settled by any number: the conditions err equally often"
CANCEL = "not settled by any number: the differences of the pairs cancel out"
LIMIT = 100_000  # most replicates that the search considers


@dataclass(frozen=True)
class Needed:
    """The replicates that are needed: `total`, `more` of them still to run; in a comparison, for each condition.

    Both are None, with the `reason`, where no number settles the question.
    """

    total: int | None
    more: int | None
    reason: str | None = None


def for_halfwidth(zero: int, total: int, halfwidth: float, confidence: float = CONFIDENCE) -> Needed:
    """The fewest replicates, from `total` on, whose Clopper–Pearson interval is at most ± `halfwidth` wide at the share seen.

    It must be so for both whole numbers of successes next to the share. Raises ValueError for impossible counts or half-widths.
    """
    _check(zero, total, confidence)
    if not 0 < halfwidth < 0.5:
        raise ValueError(f"halfwidth = {halfwidth} must lie between 0 and 0.5: it is half the width of an interval of a share")

    def narrow(n: int) -> bool:
        intervals = (clopper_pearson(k, n, confidence) for k in {math.floor(zero * n / total), math.ceil(zero * n / total)})
        return all((interval.high - interval.low) / 2 <= halfwidth for interval in intervals)

    return _search(total, narrow)


def to_exclude(zero: int, total: int, value: float, power: float = POWER, confidence: float = CONFIDENCE) -> Needed:
    """The fewest replicates, from `total` on, whose Clopper–Pearson interval leaves out `value` with probability `power`.

    0 more where the interval of those seen leaves it out already. The share seen is taken for the truth, so no number settles it where
    the share equals `value`.
    """
    _check(zero, total, confidence, power)
    if not 0 <= value <= 1:
        raise ValueError(f"value = {value} must lie in 0 … 1: it is a share of replicates")
    seen = clopper_pearson(zero, total, confidence)
    if not seen.low <= value <= seen.high:
        return Needed(total, 0)
    share, tail = zero / total, (1 - confidence) / 2
    if share == value:
        return Needed(None, None, f"not settled by any number: the share seen is {value:g}")

    def likely(n: int) -> bool:
        counts = np.arange(n + 1)
        # k leaves out a value below the share where P(at least k | value) < tail, and likewise above
        out = (
            scipy.stats.binom.sf(counts - 1, n, value) < tail
            if share > value
            else scipy.stats.binom.cdf(counts, n, value) < tail
        )
        return float(scipy.stats.binom.pmf(counts, n, share)[out].sum()) >= power

    return _search(total + 1, likely, total)


def noether_unpaired(
    chance: float, share: float = 0.5, ties: float = 0.0, power: float = POWER, confidence: float = CONFIDENCE
) -> int | None:
    """Replicates in both conditions together for a two-sided Mann–Whitney test; None where `chance` is 1/2.

    chance: P(Y > X) + P(Y = X)/2; share: of the replicates in the first condition; ties: the sum of the cubed probabilities of the
    tied values in both together, which the variance lacks (Zhao, Rahardja and Qu 2008, Statistics in Medicine 27, 462–468).
    """
    _check_chance(chance)
    if not 0 < share < 1:
        raise ValueError(f"share = {share} must lie between 0 and 1: both conditions need replicates")
    if chance == 0.5:
        return None
    return math.ceil(_normal(power, confidence) * (1 - ties) / (12 * share * (1 - share) * (chance - 0.5) ** 2))


def noether_paired(chance: float, zeros: float = 0.0, power: float = POWER, confidence: float = CONFIDENCE) -> int | None:
    """Pairs for a two-sided signed-rank test; None where `chance` is 1/2.

    chance: P(D + D' > 0) + P(D + D' = 0)/2 of two pairs' differences; zeros: the share of pairs that do not differ, whose Pratt ranks
    are missing from the variance of the sum.
    """
    _check_chance(chance)
    if chance == 0.5:
        return None
    return math.ceil(_normal(power, confidence) * (1 - zeros**3) / (3 * (chance - 0.5) ** 2))


def to_settle(
    first: ArrayLike, second: ArrayLike, paired: bool, power: float = POWER, confidence: float = CONFIDENCE
) -> Needed:
    """Replicates of each condition that would show the difference seen between these error rates ([n] and [m], infinity: diverged).

    `more` counts from the smaller condition. `reason` says where the estimate is an even chance, and where few pairs can't reach the level.
    """
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if paired:
        changes = differences(x, y)
        n = changes.size
        if n < 2:
            raise ValueError(f"{n} pairs: a difference between conditions needs at least 2")
        above = float(signed_ranks(changes).sum() - np.sign(changes).sum()) / (n * (n - 1) / 2)  # over pairs of pairs
        total = noether_paired((1 + above) / 2, float((changes == 0).mean()), power, confidence)
    else:
        n = min(x.size, y.size)
        chance, _ = superiority(x, y, confidence)
        _, counts = np.unique(np.concatenate([x, y]), return_counts=True)
        tied = counts[counts > 1] / (x.size + y.size)
        both = noether_unpaired(chance, 0.5, float((tied**3).sum()), power, confidence)
        total = None if both is None else math.ceil(both / 2)
    if total is None:
        return Needed(None, None, CANCEL if paired and np.sign(changes).sum() else EQUAL)
    # the smallest two-sided p of n pairs that all differ is 2/2^n, of n replicates of each condition 2 over the number of splits
    least = 1
    while 2 / (2**least if paired else math.comb(2 * least, least)) > 1 - confidence:
        least += 1
    total = max(total, least)
    return Needed(total, max(0, total - n))


def _normal(power: float, confidence: float) -> float:
    if not (0 < confidence < 1 and 0.5 <= power < 1):
        raise ValueError(f"confidence = {confidence} must lie between 0 and 1, and power = {power} between 0.5 and 1")
    return float(scipy.stats.norm.ppf((1 + confidence) / 2) + scipy.stats.norm.ppf(power)) ** 2


def _search(start: int, holds: Callable[[int], bool], have: int | None = None) -> Needed:
    """The first n from `start` on that `holds`: by doubling steps, then exactly within the last one (saw-teeth may hide a smaller n)."""
    have = start if have is None else have
    low, high = start - 1, start
    while not holds(high):
        low, high = high, 2 * high
        if low > LIMIT:
            return Needed(None, None, f"not settled by {LIMIT:,} replicates")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return Needed(high, high - have)


def _check(zero: int, total: int, confidence: float, power: float = POWER) -> None:
    if not (total > 0 and 0 <= zero <= total):
        raise ValueError(
            f"{zero} of {total} replicates without error: there must be at least one, and 0 to all of them without"
        )
    _normal(power, confidence)


def _check_chance(chance: float) -> None:
    if not 0 <= chance <= 1:
        raise ValueError(f"chance = {chance} must lie in 0 … 1: it is a probability")
