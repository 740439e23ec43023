"""Spearman's correlation of many resamples at once."""

import numpy as np
import scipy

from results.statistics.intervals import Floats


def spearman(x: Floats, y: Floats) -> Floats:
    """Spearman's correlation along the last axis, [...]; ties have their mean rank. 0 where one of the two is constant."""
    ranks = [scipy.stats.rankdata(values, axis=-1) for values in (x, y)]
    one, other = (values - values.mean(-1, keepdims=True) for values in ranks)
    size = np.sqrt((one**2).sum(-1) * (other**2).sum(-1))
    return (one * other).sum(-1) / np.where(size > 0, size, 1.0)
