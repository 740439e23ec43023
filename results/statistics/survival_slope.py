"""How a time depends on a number where times are only known between two looks, or not to have come yet."""

import numpy as np
import scipy

from results.statistics.intervals import Floats

LEAST_SPREAD = 0.05  # of log times: below it the looks, not the times, would decide the slope


def slope(x: Floats, low: Floats, high: Floats) -> float:
    """b of log T = a + b·x + σ·z, z normal, by maximum likelihood: `fit` of x and times in low < T ≤ high."""
    return fit(x, low, high)[1]


def fit(x: Floats, low: Floats, high: Floats) -> tuple[float, float, float]:
    """a, b and σ of log T = a + b·x + σ·z for times in low < T ≤ high: infinity for one that has not come, 0 for one from the start.

    σ is at least LEAST_SPREAD. ValueError where fewer than three times have come, or those have one x.
    """
    came = np.isfinite(high)
    if came.sum() < 3 or np.ptp(x[came]) == 0:
        raise ValueError(
            f"{int(came.sum())} times have come, at {len(set(x[came]))} values of x: a slope needs 3 at two values at least"
        )
    with np.errstate(divide="ignore"):
        begin, end = np.log(low), np.log(np.maximum(high, 1))
    centre = float(x.mean())
    near = np.where(np.isfinite(begin), begin, end - 1)
    guess = np.where(came, (near + end) / 2, near)
    b, a = np.polyfit(x - centre, guess, 1)
    spread = max(float(np.std(guess - a - b * (x - centre))), 2 * LEAST_SPREAD)

    def cost(at: Floats) -> float:
        middle, scale = at[0] + at[1] * (x - centre), np.exp(at[2])
        return -float(_log_mass((begin - middle) / scale, (end - middle) / scale).sum())

    bounds = [(None, None), (None, None), (np.log(LEAST_SPREAD), None)]
    found = scipy.optimize.minimize(
        cost,
        [a, b, np.log(spread)],
        method="Nelder-Mead",
        bounds=bounds,
        options={"maxiter": 2000, "xatol": 1e-6, "fatol": 1e-9},
    )
    return float(found.x[0] - found.x[1] * centre), float(found.x[1]), float(np.exp(found.x[2]))


def _log_mass(low: Floats, high: Floats) -> Floats:
    """log(Φ(high) - Φ(low)), by the tail that is small."""
    upper = low > 0
    one, other = np.where(upper, -high, low), np.where(upper, -low, high)
    whole = scipy.special.log_ndtr(other)
    return whole + np.log1p(-np.exp(np.minimum(scipy.special.log_ndtr(one) - whole, -1e-12)))
