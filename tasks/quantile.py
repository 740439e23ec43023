"""Quantiles of laws over 0, 1, 2, …, by which a task bounds how many positions of a string are scored."""

import numpy as np


def quantile(law: np.ndarray, part: float) -> int:
    """The smallest n with P(at most n) ≥ part."""
    return int(np.searchsorted(law.cumsum(), part - 1e-12))
