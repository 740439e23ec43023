"""Numbers of any sign over replicates, against scipy, against brute force, and in how often their intervals cover."""

import numpy as np
import pytest
from scipy import stats

from results.statistics.real_values import (
    interquartile_mean,
    interquartile_mean_interval,
    median_difference,
    share_below_largest,
    wants_log_axis,
)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 25])
def test_the_interquartile_mean_is_the_mean_trimmed_by_a_quarter(n):
    values = np.random.default_rng(n).normal(size=n)
    assert interquartile_mean(values) == pytest.approx(stats.trim_mean(values, 0.25), abs=1e-12)


def test_a_diverged_replicate_counts_in_the_middle_half_alone():
    assert interquartile_mean([1, 2, 3, np.inf]) == 2.5
    assert interquartile_mean([1, 2, np.inf, np.inf]) == np.inf


def test_the_interval_of_the_interquartile_mean_covers_it_about_as_often_as_it_says():
    random = np.random.default_rng(0)
    hits = [
        (found := interquartile_mean_interval(random.normal(size=40), seed=trial)).low <= 0 <= found.high
        for trial in range(200)
    ]
    assert 0.89 <= np.mean(hits) <= 0.99


@pytest.mark.parametrize("paired", [True, False])
def test_the_interval_of_a_difference_of_medians_covers_it_at_least_as_often_as_it_says(paired):
    random, hits = np.random.default_rng(1), []
    for _ in range(400):
        shared = random.exponential(size=30) if paired else 0
        first, second = random.normal(size=30) + shared, random.normal(size=30) + shared + 2
        _, interval = median_difference(first, second, paired)
        hits.append(interval.low <= 2 <= interval.high)
    assert np.mean(hits) >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 400)


def test_pairs_that_both_diverged_differ_by_nothing():
    change, interval = median_difference([np.inf] * 6 + [1.0], [np.inf] * 6 + [2.0], paired=True)
    assert (change, interval.low, interval.high) == (0.0, 0.0, 1.0)
    assert median_difference([1.0, 2.0, 3.0], [4.0, 5.0, np.inf], paired=False)[0] == 3.0


def test_an_end_without_a_bound_is_infinite():
    """Of 3 replicates the median has no bound; of 12 that diverged it is infinite itself."""
    change, interval = median_difference([1.0, 2.0, 3.0], [np.inf] * 12, paired=False)
    assert (change, interval.low, interval.high) == (np.inf, -np.inf, np.inf)
    change, interval = median_difference([np.inf] * 12, [1.0, 2.0, 3.0], paired=False)
    assert (change, interval.low, interval.high) == (-np.inf, -np.inf, np.inf)


def test_the_largest_of_n_bounds_the_share_of_seeds_below_it():
    random = np.random.default_rng(2)
    below = random.random((4000, 20)).max(axis=1)  # of uniform values the share below x is x
    assert np.mean(below >= share_below_largest(20)) == pytest.approx(0.95, abs=0.015)
    assert share_below_largest(0) == 0.0


def test_an_axis_is_logarithmic_where_no_value_is_negative_and_they_span_over_a_hundred():
    assert wants_log_axis([0.001, 1.0])
    assert wants_log_axis([0.0, 0.001], [1.0, np.inf])
    assert not wants_log_axis([0.5, 1.0])
    assert not wants_log_axis([-0.001, 1.0, 1000.0])
    assert not wants_log_axis([0.0, 0.0])
