"""Quantiles of laws over 0, 1, 2, …: a task bounds with them how many positions of a string are scored."""

import numpy as np


def quantile(law: np.ndarray, part: float) -> int:
    """The smallest n with P(at most n) ≥ part."""
    return int(np.searchsorted(law.cumsum(), part - 1e-12))
