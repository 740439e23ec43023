"""The survival curve of error: the share of replicates that err more than x, with a band that holds at every x at once.

Times to an event have such curves too: infinity is a replicate without the event. `log_rank` compares two of them.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy
from numpy.typing import ArrayLike

from results.statistics.intervals import CONFIDENCE, Floats, refuse_confidence


@dataclass(frozen=True)
class Survival:
    """P(error > x) as a step function: `share[i]` holds from `x[i]` up to `x[i + 1]`. All fields are [points], x[0] = 0.

    `share` is over the replicates with a number (NaN without any); `least` and `most` are over all planned ones, were the missing
    without error or diverged; `low` … `high` is the simultaneous band around these two.
    """

    x: Floats
    share: Floats
    least: Floats
    most: Floats
    low: Floats
    high: Floats

    def at(self, x: ArrayLike) -> Floats:
        """`share` at error rates x ≥ 0: [...] as x."""
        wanted = np.asarray(x, dtype=np.float64)
        if (wanted < 0).any() or np.isnan(wanted).any():
            raise ValueError("x holds a negative number or NaN: give error rates")
        return self.share[np.searchsorted(self.x, wanted, side="right") - 1]


@cache
def band_halfwidth(n: int, confidence: float = CONFIDENCE) -> float:
    """How far the empirical distribution of n independent values strays from the true one anywhere, with probability `confidence`.

    The exact two-sided Kolmogorov quantile: the band covers with `confidence` for a continuous distribution and with at least that for
    one with atoms. Below the Dvoretzky–Kiefer–Wolfowitz half-width sqrt(log(2/(1 - confidence)) / 2n) (Massart 1990). 1 for no value.
    """
    refuse_confidence(confidence)
    return float(scipy.stats.kstwo.ppf(confidence, n)) if n else 1.0


def survival(values: ArrayLike, missing: int = 0, confidence: float = CONFIDENCE) -> Survival:
    """The curve of error rates (infinity: diverged, so it exceeds every x) of replicates, of which `missing` more were planned.

    The band covers the curve of all planned replicates' population: with missing ones it is that of n + missing values around both
    extremes of what they may turn out to be.
    """
    errors = np.sort(np.asarray(values, dtype=np.float64).ravel())
    if np.isnan(errors).any() or (errors < 0).any():
        raise ValueError(
            "a value is NaN or negative: give error rates, diverged replicates as infinity, and count missing ones"
        )
    if missing < 0:
        raise ValueError(f"missing = {missing} must be 0 or more: it counts replicates without a number")
    n, planned = errors.size, errors.size + missing
    x = np.unique(np.concatenate([[0.0], errors[np.isfinite(errors)]]))
    above = n - np.searchsorted(errors, x, side="right")
    share = above / n if n else np.full(x.size, math.nan)
    least, most = (above / planned, (above + missing) / planned) if planned else (np.zeros(x.size), np.ones(x.size))
    reach = band_halfwidth(planned, confidence)
    return Survival(x, share, least, most, np.maximum(least - reach, 0.0), np.minimum(most + reach, 1.0))


def log_rank(first: ArrayLike, second: ArrayLike, followed: tuple[float, float]) -> float:
    """Two-sided p-value of the log-rank test of the times to an event, [n] and [m], of two groups of replicates that share nothing.

    followed: until when each group was; infinity in it is a replicate without the event until then.
    """
    groups, events = [], 0
    for times, until in zip((first, second), followed, strict=True):
        values = np.asarray(times, dtype=np.float64).ravel()
        if np.isnan(values).any() or (np.isfinite(values) & (values > until)).any():
            raise ValueError(f"a time is NaN or beyond {until:g}, until when its group was followed")
        there = np.isfinite(values)
        events += int(there.sum())
        groups.append(scipy.stats.CensoredData(uncensored=values[there], right=np.full(int((~there).sum()), until)))
    if not events:
        return 1.0
    with np.errstate(invalid="ignore"):  # 0/0 where all have the event at one time, in both groups
        p = float(scipy.stats.logrank(*groups).pvalue)
    return 1.0 if math.isnan(p) else p
