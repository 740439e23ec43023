"""Two conditions compared over several tasks at once: the tasks are strata, and each keeps its own replicates.

The probability of improvement and its stratified bootstrap are those of Agarwal et al. 2021, "Deep reinforcement learning at the edge of
the statistical precipice". Values are costs, of which lower ones are better; a diverged replicate is infinity.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from results.statistics.bootstrap import percentiles
from results.statistics.intervals import CONFIDENCE, Interval
from results.statistics.real_values import RESAMPLES, enough


def mean_superiority(
    first: Sequence[ArrayLike], second: Sequence[ArrayLike], confidence: float = CONFIDENCE, seed: int = 0
) -> tuple[float, Interval]:
    """P(second costs more) + P(they are equal)/2, averaged over strata, with its interval; first[i] and second[i] are one stratum.

    The interval is a percentile bootstrap that resamples each condition of each stratum by itself. Where the replicates of one are
    not `enough`, it is 0 … 1.
    """
    random = np.random.default_rng(seed)
    estimates, drawn = [], np.zeros(RESAMPLES)
    for one, other in zip(first, second, strict=True):
        x, y = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
        wins = (y > x[:, None]) + (y == x[:, None]) / 2  # [n, m]
        estimates.append(wins.mean())
        times_x, times_y = (random.multinomial(n, np.full(n, 1 / n), RESAMPLES) for n in (x.size, y.size))
        drawn += np.einsum("rn,rn->r", times_x, times_y @ wins.T) / wins.size
    means = drawn / len(estimates)
    interval = percentiles(means, means, confidence) if enough(*first) and enough(*second) else Interval(0.0, 1.0)
    return float(np.mean(estimates)), interval
