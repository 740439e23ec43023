"""The survival curve and its band, against scipy's empirical distribution, published Kolmogorov quantiles and a simulation."""

import math

import numpy as np
import pytest
from scipy import stats

from results.statistics.survival import band_halfwidth, log_rank, survival


def test_published_quantiles_of_kolmogorov():
    """Massey 1951, table 1: 5 % points of the largest deviation for n = 5, 10, 20 and 25."""
    for n, published in ((5, 0.565), (10, 0.410), (20, 0.294), (25, 0.27)):
        assert band_halfwidth(n) == pytest.approx(published, abs=0.008)
    for n in (5, 25, 500):
        assert band_halfwidth(n) < math.sqrt(math.log(2 / 0.05) / (2 * n))  # Dvoretzky, Kiefer, Wolfowitz and Massart
    assert band_halfwidth(0) == 1.0


def test_the_curve_is_scipys():
    values = np.round(np.random.default_rng(0).lognormal(-3, 1, 40), 2) + 0.01
    found, theirs = survival(values), stats.ecdf(values).sf
    assert found.x.tolist() == [0.0, *theirs.quantiles]
    assert found.share == pytest.approx([1.0, *theirs.probabilities])
    assert np.array_equal(found.least, found.share)
    assert np.array_equal(found.most, found.share)
    reach = band_halfwidth(40)
    assert found.high == pytest.approx(np.minimum(found.share + reach, 1))
    assert found.low == pytest.approx(np.maximum(found.share - reach, 0))


def test_zeros_divergence_and_missing_replicates():
    found = survival([0.0, 0.0, 0.1, math.inf], missing=1)
    assert found.x.tolist() == [0.0, 0.1]
    assert found.share.tolist() == [0.5, 0.25]
    assert found.least.tolist() == [0.4, 0.2]
    assert found.most.tolist() == [0.6, 0.4]
    assert found.at([0.0, 0.05, 0.1, 5.0]).tolist() == [0.5, 0.5, 0.25, 0.25]
    empty = survival([], missing=3)
    assert (math.isnan(empty.share[0]), empty.low[0], empty.high[0]) == (True, 0.0, 1.0)


def test_missing_replicates_widen_the_band_on_both_sides():
    values = np.linspace(0.01, 0.5, 100)
    whole, part = survival(values), survival(values[::2], missing=50)
    for x in (0.05, 0.25, 0.4):
        one, other = (np.searchsorted(each.x, x, side="right") - 1 for each in (whole, part))
        assert part.low[other] < whole.low[one] < whole.high[one] <= part.high[other]


@pytest.mark.parametrize("zero", [0.0, 0.6])
def test_the_band_holds_everywhere_at_once(zero):
    """Exactly 95 % for continuous errors, more with an atom."""
    random = np.random.default_rng(5)
    held = 0
    for _ in range(1500):
        u = random.random(25)
        found = survival(np.where(u < zero, 0.0, u))  # P(error > x) = 1 - max(x, zero)
        starts, ends = 1 - np.maximum(found.x, zero), 1 - np.maximum(np.append(found.x[1:], 1.0), zero)
        if zero == 0:
            starts[0] = 1.0
        held += ((starts <= found.high) & (ends >= found.low) & (starts >= found.low) & (ends <= found.high)).all()
    assert held / 1500 == pytest.approx(0.95, abs=0.02) if zero == 0 else held / 1500 > 0.95


def test_what_is_refused():
    with pytest.raises(ValueError, match="NaN or negative"):
        survival([0.1, math.nan])
    with pytest.raises(ValueError, match="missing = -1"):
        survival([0.1], missing=-1)
    with pytest.raises(ValueError, match="give error rates"):
        survival([0.1]).at(-0.1)


def test_the_log_rank_test_is_that_of_the_textbook():
    """Weeks of remission of Freireich et al. 1963, with 6-MP and with a placebo (Cox and Oakes 1984), against the sums written out.

    The twelve of 6-MP without a relapse are followed to week 35 here.
    """
    treated = [6, 6, 6, 7, 10, 13, 16, 22, 23] + [math.inf] * 12
    placebo = [1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23]
    observed, expected, variance = 0.0, 0.0, 0.0
    for time in sorted({each for each in treated + placebo if math.isfinite(each)}):
        here, there = (sum(each >= time for each in group) for group in (treated, placebo))
        events, both = sum(each == time for each in treated + placebo), here + there
        observed += sum(each == time for each in treated)
        expected += events * here / both
        variance += events * here * there * (both - events) / (both**2 * (both - 1)) if both > 1 else 0.0
    wanted = stats.chi2.sf((observed - expected) ** 2 / variance, 1)
    assert log_rank(treated, placebo, (35, 35)) == pytest.approx(wanted, rel=1e-9)
    assert log_rank(placebo, treated, (23, 35)) == pytest.approx(wanted, rel=1e-9)
    assert log_rank(treated, treated, (35, 35)) == pytest.approx(1)
    assert log_rank([math.inf] * 3, [math.inf] * 4, (10, 10)) == 1
    assert log_rank([5, 5], [5, 5, 5], (10, 10)) == 1
    for times in ([math.nan, 2], [11, 2]):
        with pytest.raises(ValueError, match="NaN or beyond 10"):
            log_rank(times, [1, 2], (10, 10))


def test_the_log_rank_test_rejects_no_more_than_it_says():
    """Of 400 pairs of 20 exponential times, followed to their median."""
    rng = np.random.default_rng(1)
    found = [
        log_rank(*(np.where(own < 0.7, own, math.inf) for own in rng.exponential(1, (2, 20))), (0.7, 0.7)) for _ in range(400)
    ]
    assert stats.binomtest(sum(p < 0.05 for p in found), 400, 0.05).pvalue > 0.001
