"""Regression of a time on a number, where a time is only known to lie between two looks, or not to have come yet."""

from collections.abc import Callable, Sequence

import numpy as np
import scipy

from results.statistics.intervals import Floats

LEAST_SPREAD = 0.05  # of log times: below it the looks, not the times, would decide the slope
ONSETS = (1e-6, 0.3, 0.9)  # where searches for an onset start, in parts of the first time


def slope(x: Floats, low: Floats, high: Floats) -> float:
    """The slope b of log T = a + b·x + σ·z, z normal, by maximum likelihood (`fit`), from x and times in low < T ≤ high."""
    return fit(x, low, high)[1]


def fit(x: Floats, low: Floats, high: Floats) -> tuple[float, float, float]:
    """Fit a, b and σ of log T = a + b·x + σ·z to times in low < T ≤ high; high is infinity for a time that has not come.

    low is 0 for a time that had come by the first look. σ is at least LEAST_SPREAD. Raises ValueError where fewer than three times have
    come, or those that have share one x.
    """
    centre = float(x.mean())
    begun = _begun(x, low, high)
    numbers, _ = _most_likely(lambda at: at[0] + at[1] * (x - centre), begun[:2], begun[2], low, high)
    return float(numbers[0] - numbers[1] * centre), float(numbers[1]), float(np.exp(numbers[2]))


def beyond_onset(x: Floats, low: Floats, high: Floats) -> tuple[float, float]:
    """Fit t₀ ≥ 0 and b of log T = log(t₀ + c·exp(b·x)) + σ·z, z normal, by maximum likelihood; times and errors as in `fit`.

    An onset that all times share bends a power law as another exponent would, so both are fitted together.
    """
    centre = float(x.mean())
    middle, steepness, spread = _begun(x, low, high)
    first = float(np.min(high[np.isfinite(high)]))
    starts = [(np.log(part * first), np.log(max(np.exp(middle) - part * first, 1.0)), steepness) for part in ONSETS]
    fits = [
        _most_likely(lambda at: np.logaddexp(at[0], at[1] + at[2] * (x - centre)), start, spread, low, high) for start in starts
    ]
    numbers, _ = max(fits, key=lambda found: found[1])
    return float(np.exp(numbers[0])), float(numbers[2])


def _begun(x: Floats, low: Floats, high: Floats) -> tuple[float, float, float]:
    """Where a search starts: intercept at the mean of x, slope and spread, with each time in the middle between its two looks."""
    came = np.isfinite(high)
    if came.sum() < 3 or np.ptp(x[came]) == 0:
        raise ValueError(
            f"{int(came.sum())} times have come, at {len(set(x[came]))} values of x: a slope needs 3 at two values at least"
        )
    with np.errstate(divide="ignore"):
        begin, end = np.log(low), np.log(np.maximum(high, 1))
    near = np.where(np.isfinite(begin), begin, end - 1)
    guess = np.where(came, (near + end) / 2, near)
    b, a = np.polyfit(x - x.mean(), guess, 1)
    return float(a), float(b), max(float(np.std(guess - a - b * (x - x.mean()))), 2 * LEAST_SPREAD)


def _most_likely(
    middle: Callable[[Floats], Floats], start: Sequence[float], spread: float, low: Floats, high: Floats
) -> tuple[Floats, float]:
    """The numbers of `middle`, the mean of log T, with the log of its spread, and their log-likelihood."""
    with np.errstate(divide="ignore"):
        begin, end = np.log(low), np.log(np.maximum(high, 1))

    def cost(at: Floats) -> float:
        mean, scale = middle(at), np.exp(at[-1])
        return -float(_log_mass((begin - mean) / scale, (end - mean) / scale).sum())

    bounds = [*((None, None) for _ in start), (np.log(LEAST_SPREAD), None)]
    best = scipy.optimize.minimize(
        cost,
        [*start, np.log(spread)],
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": 500, "ftol": 1e-12, "gtol": 1e-7},
    )
    return best.x, -float(best.fun)


def _log_mass(low: Floats, high: Floats) -> Floats:
    """log(Φ(high) - Φ(low)), by the tail that is small."""
    upper = low > 0
    one, other = np.where(upper, -high, low), np.where(upper, -low, high)
    whole = scipy.special.log_ndtr(other)
    return whole + np.log1p(-np.exp(np.minimum(scipy.special.log_ndtr(one) - whole, -1e-12)))
