"""Spearman's correlation of several rows at once, against scipy's of one."""

import numpy as np
import pytest
import scipy

from results.statistics.rank_correlation import spearman


def test_each_row_has_the_correlation_that_scipy_finds_ties_included():
    random = np.random.default_rng(0)
    x, y = random.integers(6, size=(4, 20)), random.normal(size=(4, 20))
    wanted = [scipy.stats.spearmanr(one, other).statistic for one, other in zip(x, y, strict=True)]
    assert spearman(x, y) == pytest.approx(wanted)


def test_what_orders_nothing_has_none():
    assert spearman(np.ones(5), np.arange(5.0)) == 0
