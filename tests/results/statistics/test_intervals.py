from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from results.statistics.intervals import (
    clopper_pearson,
    clopper_pearsons,
    clustered_rates,
    quantile,
    quantile_bounds,
    quantile_interval,
    quantile_ranks,
    zero_error_bound,
)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        (0, 10, 0.0, 0.3085),  # published tables of exact 95 % limits
        (1, 10, 0.0025, 0.4450),
        (5, 10, 0.1871, 0.8129),
        (81, 263, 0.2527, 0.3676),  # Newcombe 1998, Statistics in Medicine 17, table I
        (15, 148, 0.0578, 0.1617),
        (0, 20, 0.0, 0.1684),
        (1, 29, 0.0009, 0.1776),
        (100, 100, 0.9638, 1.0),
    ],
)
def test_clopper_pearson_equals_published_limits(successes: int, trials: int, low: float, high: float) -> None:
    found = clopper_pearson(successes, trials)
    assert (found.low, found.high) == pytest.approx((low, high), abs=6e-5)


def test_clopper_pearson_covers_at_25_replicates_what_was_computed() -> None:
    intervals = [clopper_pearson(k, 25) for k in range(26)]
    coverage = [
        sum(stats.binom.pmf(k, 25, p) for k, interval in enumerate(intervals) if interval.low <= p <= interval.high)
        for p in np.linspace(0.05, 0.95, 37)
    ]
    assert min(coverage) >= 0.95


def test_many_clopper_pearsons_are_those_of_each() -> None:
    low, high = clopper_pearsons([0, 3, 10, 0, 11, np.nan], [10, 10, 10, 0, 10, 10])
    each = [clopper_pearson(k, n) for k, n in ((0, 10), (3, 10), (10, 10), (0, 0))]
    assert low[:4] == pytest.approx([one.low for one in each])
    assert high[:4] == pytest.approx([one.high for one in each])
    assert np.isnan([low[4:], high[4:]]).all()


def test_clopper_pearson_without_trials_says_nothing_and_refuses_the_impossible() -> None:
    assert (clopper_pearson(0, 0).low, clopper_pearson(0, 0).high) == (0, 1)
    with pytest.raises(ValueError, match="26 successes in 25 trials"):
        clopper_pearson(26, 25)


def test_zero_errors_in_the_papers_reads_bound_the_rate_by_three_over_n() -> None:
    assert zero_error_bound(353_875) == pytest.approx(8.5e-6, rel=0.01)
    assert (1 - zero_error_bound(30)) ** 30 == pytest.approx(0.05)
    assert zero_error_bound(0) == 1


def sums(errors: np.ndarray, count: np.ndarray) -> list[np.ndarray]:
    """The store's columns from [replicates, sequences]."""
    sequences = np.full(errors.shape[0], errors.shape[1])
    cross = [(errors**2).sum(1), (errors * count).sum(1), (count**2).sum(1)]
    return [errors.sum(1), count.sum(1), sequences, *cross]


def test_single_errors_in_single_read_sequences_have_the_exact_interval() -> None:
    errors = np.zeros((1, 400))
    errors[0, :7] = 1
    found = clustered_rates(*sums(errors, np.ones((1, 400))))
    exact = clopper_pearson(7, 400)
    assert found.value == pytest.approx(7 / 400)
    assert (found.low[0], found.high[0]) == pytest.approx((exact.low, exact.high), rel=0.02)


def test_errors_in_bursts_count_as_one_observation_a_burst() -> None:
    errors = np.zeros((1, 1000))
    errors[0, :12] = 5
    found = clustered_rates(*sums(errors, np.full((1, 1000), 20.0)))
    bursts = clopper_pearson(12, 4000)
    assert (found.low[0], found.high[0]) == pytest.approx((bursts.low, bursts.high), rel=0.03)
    naive = clopper_pearson(60, 20_000)
    assert found.high[0] - found.low[0] > 2 * (naive.high - naive.low)


def test_without_an_error_whole_sequences_are_the_trials() -> None:
    found = clustered_rates(0, 3540, 1000, 0, 0, 14_000)
    assert (found.value[0], found.low[0], found.high[0]) == (0, 0, pytest.approx(1 - 0.025 ** (1 / 1000)))
    wrong = clustered_rates(3540, 3540, 1000, 14_000, 14_000, 14_000)
    assert (wrong.low[0], wrong.high[0]) == (pytest.approx(0.025 ** (1 / 1000)), 1)


def test_one_sequence_bounds_nothing_and_no_reads_give_no_number() -> None:
    alone = clustered_rates(3, 10, 1, 9, 30, 100)
    assert (alone.value[0], alone.low[0], alone.high[0]) == (0.3, 0, 1)
    empty = clustered_rates(0, 0, 10, 0, 0, 0)
    assert np.isnan([empty.value[0], empty.low[0], empty.high[0]]).all()


def covered(wrong: float, burst: int, sequences: int, replicates: int, rng: np.random.Generator) -> tuple[float, float]:
    """Share of clustered and of binomial intervals that hold the true rate, where `wrong` sequences are expected to err."""
    count = np.full((replicates, sequences), 20.0)
    errors = burst * (rng.random((replicates, sequences)) < wrong / sequences).astype(float)
    truth = wrong / sequences * burst / 20
    found = clustered_rates(*sums(errors, count))
    binomial = [clopper_pearson(int(e), 20 * sequences) for e in errors.sum(1)]
    held = [interval.low <= truth <= interval.high for interval in binomial]
    return float(((found.low <= truth) & (truth <= found.high)).mean()), float(np.mean(held))


@pytest.mark.parametrize("burst", [2, 5])
def test_the_clustered_interval_covers_where_a_binomial_one_does_not(burst: int) -> None:
    clustered, binomial = covered(wrong=30, burst=burst, sequences=500, replicates=1500, rng=np.random.default_rng(burst))
    assert 0.93 <= clustered <= 0.98
    assert binomial < (0.87 if burst == 2 else 0.67)


@pytest.mark.slow
@pytest.mark.parametrize("burst", [1, 2, 5])
@pytest.mark.parametrize("wrong", [0.5, 1, 3, 10, 30, 100])
def test_the_clustered_interval_covers_at_every_rate(wrong: float, burst: int) -> None:
    clustered, _ = covered(wrong, burst, sequences=1000, replicates=5000, rng=np.random.default_rng(1))
    assert clustered >= 0.94


def test_quantiles_are_numpys_until_a_diverged_replicate_has_weight() -> None:
    values = np.random.default_rng(0).lognormal(size=24)
    for q in (0, 0.1, 0.25, 0.5, 0.75, 1):
        assert quantile(values, q) == pytest.approx(np.quantile(values, q))
    with_diverged = [*values, np.inf]
    assert quantile(with_diverged, 1) == np.inf
    assert quantile(with_diverged, 0.5) == np.sort(values)[12]
    assert quantile([0.1, np.inf], 0.5) == np.inf
    assert quantile([0.1, 0.2, np.inf], 0.5) == 0.2
    assert np.isnan(quantile([], 0.5))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: clopper_pearson(3, 5, 95), "confidence = 95 must lie between 0 and 1, such as 0.95"),
        (lambda: zero_error_bound(10, 95), "confidence = 95 must lie"),
        (lambda: zero_error_bound(-3), "trials = -3 must be 0 or more"),
        (lambda: quantile_interval(range(20), 0.5, 95), "confidence = 95 must lie"),
        (lambda: quantile_interval(range(20), 50), "q = 50 must lie in 0 … 1"),
        (lambda: quantile([1, 2, 3], -1), "q = -1 must lie in 0 … 1"),
        (lambda: quantile_bounds([1, 2], -1, 0.5), "missing = -1 must be 0 or more"),
    ],
)
def test_a_percentage_or_a_negative_count_is_refused(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        call()


def test_a_nan_is_refused_with_what_to_give_instead() -> None:
    with pytest.raises(ValueError, match="diverged replicates as infinity"):
        quantile([0.1, float("nan")], 0.5)


@pytest.mark.parametrize(
    ("n", "ranks"), [(6, (1, 6)), (10, (2, 9)), (20, (6, 15)), (25, (8, 18)), (50, (18, 33)), (100, (40, 61))]
)
def test_ranks_of_the_medians_interval_equal_published_tables(n: int, ranks: tuple[int, int]) -> None:
    assert quantile_ranks(n, 0.5) == ranks


@pytest.mark.parametrize("q", [0.1, 0.25, 0.5, 0.75])
@pytest.mark.parametrize("n", [5, 25, 100, 500])
def test_order_statistic_intervals_cover_at_least_what_they_claim(n: int, q: float) -> None:
    lower, upper = quantile_ranks(n, q)
    # exact: the quantile lies between x_(lower) and x_(upper) when lower <= number of values below it < upper
    assert stats.binom.cdf(upper - 1, n, q) - stats.binom.cdf(lower - 1, n, q) >= 0.95


def test_too_few_replicates_bound_no_median() -> None:
    found = quantile_interval([0.1, 0.2, 0.3, 0.4, 0.5], 0.5)
    assert (found.low, found.high) == (0, np.inf)
    enough = quantile_interval(np.arange(1, 26) / 100, 0.5)
    assert (enough.low, enough.high) == (0.08, 0.18)


def test_missing_replicates_bound_a_quantile_by_their_best_and_worst() -> None:
    found = quantile_bounds([0.1, 0.2, 0.3], 2, 0.5)
    assert (found.low, found.high) == (0.1, 0.3)
    assert quantile_bounds([0.1], 2, 0.5).high == np.inf
    assert quantile_bounds([0.1, 0.2, 0.3], 0, 0.5) == quantile_bounds([0.3, 0.2, 0.1], 0, 0.5)
