"""Bootstrap intervals of ratios: against scipy's, the exact bootstrap distribution of an order statistic, zeros, ties and infinities."""

import math

import numpy as np
import pytest
from scipy import stats

from results.statistics.bootstrap import quantile_ratio, replicates_to_bound
from results.statistics.intervals import Interval, quantile

VALUES = np.random.default_rng(3).lognormal(-5, 2, 25)


def bootstrap(values, q, confidence=0.95, resamples=9999, seed=0):
    """Of one quantile: over a condition whose quantiles are all 1."""
    return quantile_ratio(np.ones(len(values)), values, q, False, confidence, resamples, seed).interval


def test_the_median_of_25_has_the_exact_bootstrap_distribution():
    """The 13th of 25 is at most the i-th of the sample with P(Binomial(25, i/25) >= 13) (Efron 1979)."""
    ordered = np.sort(VALUES)
    exact = stats.binom.sf(12, 25, np.arange(1, 26) / 25)
    for confidence in (0.8, 0.95):
        tail = (1 - confidence) / 2
        wanted = Interval(*(float(ordered[np.searchsorted(exact, p)]) for p in (tail, 1 - tail)))
        assert bootstrap(VALUES, 0.5, confidence, resamples=100_000) == wanted


@pytest.mark.parametrize("q", [0.3, 0.6, 0.75])
def test_other_quantiles_agree_with_scipy(q):
    def statistic(sample, axis):
        return np.quantile(sample, q, axis=axis)

    ours = bootstrap(VALUES, q, resamples=99_999)
    theirs = stats.bootstrap((VALUES,), statistic, method="percentile", n_resamples=99_999, rng=1).confidence_interval
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs), rel=0.08)


def test_the_same_rows_give_the_same_digits_and_other_seeds_others():
    first, again, other = (bootstrap(VALUES, 0.6, resamples=200, seed=seed) for seed in (0, 0, 1))
    assert first == again != other


def test_zeros_and_infinities():
    assert bootstrap([0.0] * 25, 0.5) == Interval(0.0, 0.0)
    assert bootstrap([math.inf] * 25, 0.5) == Interval(math.inf, math.inf)
    assert bootstrap(np.tile(VALUES, 2), 0.9).high < math.inf
    mixed = [0.0] * 10 + [0.01] * 5 + [math.inf] * 10
    assert bootstrap(mixed, 0.5) == Interval(0.0, math.inf)
    even = bootstrap([0.0] * 12 + [math.inf] * 12, 0.5)  # halves of 0 and infinity are interpolated: infinity
    assert even == Interval(0.0, math.inf)


def test_so_few_values_bound_no_quantile():
    assert replicates_to_bound(0.5) == 6
    assert replicates_to_bound(0.9) == replicates_to_bound(0.1) == 36
    assert 0.9**36 <= 0.025 < 0.9**35
    assert replicates_to_bound(0.5, 0.75) == 3  # (1/2)^3 is the tail itself


def test_pairs_are_resampled_together():
    """A constant factor within pairs is known exactly; without the pairs it is not."""
    assert quantile_ratio(VALUES, 4 * VALUES, 0.5, True).interval == Interval(4.0, 4.0)
    alone = quantile_ratio(VALUES, 4 * VALUES, 0.5, False)
    assert alone.value == 4
    assert alone.interval.low < 2 < 8 < alone.interval.high


def test_unpaired_ratios_agree_with_scipy():
    other = np.random.default_rng(4).lognormal(-4, 2, 31)

    def ratio(x, y, axis):
        return np.median(y, axis=axis) / np.median(x, axis=axis)

    ours = quantile_ratio(VALUES, other, 0.5, False, resamples=20_000)
    theirs = stats.bootstrap((VALUES, other), ratio, method="percentile", n_resamples=20_000, rng=1).confidence_interval
    assert ours.value == pytest.approx(np.median(other) / np.median(VALUES))
    assert (ours.interval.low, ours.interval.high) == pytest.approx(tuple(theirs), rel=0.08)


def test_paired_ratios_agree_with_scipy():
    other = VALUES * np.random.default_rng(4).lognormal(0.5, 1, 25)

    def ratio(x, y, axis):
        return np.quantile(y, 0.6, axis=axis) / np.quantile(x, 0.6, axis=axis)

    ours = quantile_ratio(VALUES, other, 0.6, True, resamples=20_000).interval
    theirs = stats.bootstrap((VALUES, other), ratio, paired=True, method="percentile", n_resamples=20_000, rng=1)
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs.confidence_interval), rel=0.08)


def test_no_ratio_has_a_reason():
    zero, lost = [0.0] * 25, [math.inf] * 25
    found = quantile_ratio(zero, zero, 0.5, True)
    assert (found.value, found.interval, found.reason) == (None, None, "both are without error at this quantile")
    assert quantile_ratio(lost, lost, 0.5, False).reason == "both are diverged at this quantile"
    assert quantile_ratio(zero, VALUES, 0.5, True).value == math.inf
    assert quantile_ratio(VALUES, zero, 0.5, True).interval == Interval(0.0, 0.0)
    few = quantile_ratio(VALUES, 2 * VALUES, 0.9, True)
    assert few.value == pytest.approx(2)
    assert (few.interval, few.reason) == (None, "an interval needs 36 replicates of each")


def test_resamples_without_a_ratio_widen_both_ends():
    """7 of 13 err in both conditions: some resamples have a median of 0 in both."""
    values = [0.0] * 6 + [0.01] * 7
    assert quantile_ratio(values, values, 0.5, True).interval == Interval(0.0, math.inf)


@pytest.mark.parametrize(
    ("values", "q", "message"),
    [([], 0.5, "no replicate with a number"), ([math.nan], 0.5, "NaN or a negative"), ([0.1], 1.5, "q = 1.5 must lie")],
)
def test_what_is_refused(values, q, message):
    with pytest.raises(ValueError, match=message):
        quantile_ratio([0.1, 0.2] if values else [], values, q, False)


def test_pairs_must_match():
    with pytest.raises(ValueError, match="2 and 3 replicates can't be paired"):
        quantile_ratio([0.1, 0.2], [0.1, 0.2, 0.3], 0.5, True)


def test_the_sample_quantile_is_that_of_the_report():
    assert quantile_ratio(VALUES, VALUES + 1, 0.75, False).value == (quantile(VALUES, 0.75) + 1) / quantile(VALUES, 0.75)
