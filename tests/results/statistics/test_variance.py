"""The beta-binomial split against scipy's likelihood, data of known parameters, and data at the ends of the model."""

import numpy as np
import pytest
from scipy import optimize, stats

from results.statistics.variance import effective, icc_interval, split


@pytest.mark.parametrize(("a", "b", "count"), [(0.3, 8.0, 1000), (2.0, 50.0, 3540), (5.0, 5.0, 10)])
def test_the_maximum_is_that_of_scipys_likelihood(a, b, count):
    errors = stats.betabinom.rvs(count, a, b, size=120, random_state=np.random.default_rng(1))
    found = split(errors, np.full(120, count))

    def worse(x):
        return -stats.betabinom.logpmf(errors, count, *np.exp(x)).sum()

    best = optimize.minimize(worse, np.log([a, b]), method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-9})
    assert found.outcome == "fitted"
    assert (found.a, found.b) == pytest.approx(tuple(np.exp(best.x)), rel=1e-3)
    assert found.icc == pytest.approx(1 / (found.a + found.b + 1))
    assert found.mean == pytest.approx(found.a / (found.a + found.b))
    assert found.between == pytest.approx(stats.beta.var(found.a, found.b))
    assert found.between + found.within == pytest.approx(stats.betabinom.var(count, found.a, found.b) / count**2)
    alone = stats.binom.logpmf(errors, count, errors.mean() / count).sum()
    assert found.p == pytest.approx(stats.chi2.sf(2 * (-best.fun - alone), 1) / 2, rel=1e-3)


def test_known_parameters_come_back():
    random = np.random.default_rng(2)
    count = random.integers(2000, 4000, 3000)
    found = split(random.binomial(count, random.beta(0.5, 20, 3000)), count)
    assert (found.a, found.b) == pytest.approx((0.5, 20), rel=0.1)
    assert found.icc == pytest.approx(1 / 21.5, rel=0.1)


def test_the_ends_of_the_model_are_named():
    ten = [10] * 20
    assert split([0] * 20, ten).outcome == "no error"
    assert split(ten, ten).outcome == "all wrong"
    assert split([0] * 20, ten).icc is None
    same = split([3] * 20, ten)  # less spread than binomial
    assert (same.outcome, same.icc, same.between, same.a, same.p) == ("no overdispersion", 0.0, 0.0, None, 1.0)
    assert same.within == pytest.approx(0.3 * 0.7 / 10)
    coin = split([0, 10] * 10, ten)
    assert (coin.outcome, coin.icc, coin.mean, coin.within) == ("all or nothing", 1.0, 0.5, 0.0)
    assert coin.between == 0.25


def test_binomial_data_seem_overdispersed_half_of_the_time_and_at_five_per_cent_rarely():
    random = np.random.default_rng(3)
    found = [split(random.binomial(200, 0.1, 50), np.full(50, 200)) for _ in range(150)]
    assert 0.35 < np.mean([each.outcome == "no overdispersion" for each in found]) < 0.68
    assert np.mean([each.p <= 0.05 for each in found]) < 0.11


def test_errors_in_bursts_are_no_spread_between_replicates():
    """Every replicate has the same chance of a wrong sequence of 5 reads: only the effective counts show it."""
    random = np.random.default_rng(4)
    wrong = random.binomial(1000, 0.01, 200)
    whole = np.ones(200)
    e, c = effective(5 * wrong, 5000 * whole, 1000 * whole, 25 * wrong, 25 * wrong, 25_000 * whole)
    assert c == pytest.approx(1000, rel=0.01)
    assert e == pytest.approx(wrong, rel=0.01)
    burst, alone = split(5 * wrong, 5000 * whole), split(e, c)
    assert burst.p < 1e-6
    assert burst.icc == pytest.approx(4 / 5000, rel=0.2)  # variance 5 times the binomial one: 1 + 4999 icc
    assert alone.icc < burst.icc / 2
    assert alone.p > 0.01


def test_reads_that_err_alone_keep_their_number():
    wrong, whole = np.array([0, 3, 5]), np.ones(3)
    _, c = effective(wrong, 5000 * whole, 1000 * whole, wrong, 5 * wrong, 25_000 * whole)
    assert c == pytest.approx(5000, rel=0.005)
    assert effective([0, 0], [10, 10], [5, 5], [0, 0], [0, 0], [20, 20])[1].tolist() == [10, 10]


@pytest.mark.parametrize(
    ("errors", "count", "message"),
    [
        ([1], [2], "at least 2 replicates"),
        ([3, 1], [2, 2], "0 to that many"),
        ([0, 1], [1, 1], "one read"),
        ([1, 1], [2], "both of"),
    ],
)
def test_what_is_refused(errors, count, message):
    with pytest.raises(ValueError, match=message):
        split(errors, count)


def test_effective_needs_sequences():
    with pytest.raises(ValueError, match="at least 2 sequences"):
        effective([1, 1], [5, 5], [1, 1], [1, 1], [5, 5], [25, 25])


@pytest.mark.parametrize(("a", "b", "count"), [(0.3, 8.0, 1000), (2.0, 50.0, 3540)])
def test_the_ends_of_the_interval_have_the_likelihood_that_they_must(a, b, count):
    """Against scipy's likelihood: at each end the best mean loses half of the quantile of F(1, n - 1)."""
    errors = stats.betabinom.rvs(count, a, b, size=25, random_state=np.random.default_rng(6))
    found, interval = split(errors, np.full(25, count)), icc_interval(errors, np.full(25, count))

    def best(icc):
        def worse(x):
            mean, size = 1 / (1 + np.exp(-x)), (1 - icc) / icc
            return -stats.betabinom.logpmf(errors, count, mean * size, (1 - mean) * size).sum()

        return -optimize.minimize_scalar(worse, bounds=(-12, 4), method="bounded", options={"xatol": 1e-6}).fun

    assert 0 < interval.low < found.icc < interval.high < 1
    for end in (interval.low, interval.high):
        assert best(found.icc) - best(end) == pytest.approx(stats.f.ppf(0.95, 1, 24) / 2, abs=0.01)
    narrow = icc_interval(errors, np.full(25, count), 0.8)
    assert interval.low < narrow.low < narrow.high < interval.high


def test_the_interval_reaches_the_ends_of_the_model():
    ten = [10] * 20
    assert icc_interval([0] * 20, ten) is icc_interval(ten, ten) is None
    same = icc_interval([3] * 20, ten)
    assert same.low == 0 < same.high < 0.2
    coin = icc_interval([0, 10] * 10, ten)
    assert coin.high == 1 > coin.low > 0.5
    little = icc_interval([3, 2, 4, 3, 5, 1, 3, 2, 4, 6], [10] * 10)  # less, or hardly more, than binomial
    assert little.low == 0 < little.high


def test_strings_that_are_all_right_or_all_wrong_are_fitted():
    """a and b are far below 1 then, and b is lost beside the counts unless these are subtracted first."""
    errors, counts = [1000, 0, 500, 1000], [1000] * 4
    found = split(errors, counts)

    def likelihood(icc):
        size = (1 - icc) / icc
        means = np.linspace(0.3, 0.95, 651)[:, None]
        return stats.betabinom.logpmf(errors, counts, means * size, (1 - means) * size).sum(axis=1).max()

    grid = np.linspace(0.5, 0.99, 4901)
    assert found.icc == pytest.approx(grid[np.argmax([likelihood(icc) for icc in grid])], abs=1e-3)
    interval = icc_interval([1000, 0, 0, 0, 655, 1000], [1000] * 6)
    assert 0 < interval.low < interval.high <= 1
