"""Two independent samples by ranks: against every split, scipy's tests at both ends of the sizes, published p-values and simulation."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from results.statistics.unpaired import DRAWS, brunner_munzel, superiority


def by_definition(x, y):
    """|T| of Brunner and Munzel (2000) from ranks, the variance at least 1/(2nm)²."""
    n, m = len(x), len(y)
    ranks = stats.rankdata([*x, *y])
    in_x, in_y = ranks[:n] - stats.rankdata(x), ranks[n:] - stats.rankdata(y)
    variance = np.var(in_x, ddof=1) / n / m**2 + np.var(in_y, ddof=1) / m / n**2
    return abs(in_y.mean() / n - 0.5) / math.sqrt(max(variance, 1 / (2 * n * m) ** 2))


@pytest.mark.parametrize(("n", "m", "values"), [(4, 5, 4), (5, 5, 9), (6, 6, 3), (2, 6, 5), (6, 5, 100)])
def test_small_samples_are_compared_with_every_split(n, m, values):
    random = np.random.default_rng([n, m])
    for _ in range(3):
        pooled = random.integers(0, values, n + m).astype(float)
        pooled[pooled == values - 1] = math.inf
        observed = by_definition(pooled[:n], pooled[n:])
        null = []
        for chosen in itertools.combinations(range(n + m), n):
            first = np.zeros(n + m, dtype=bool)
            first[list(chosen)] = True
            null.append(by_definition(pooled[first], pooled[~first]))
        found = brunner_munzel(pooled[:n], pooled[n:])
        assert found.p == pytest.approx(np.mean(np.array(null) >= observed - 1e-9))
        assert found.least == pytest.approx(np.mean(np.array(null) >= max(null) - 1e-9))


def test_scipys_permutation_test_of_its_own_statistic_agrees():
    random = np.random.default_rng(8)
    x, y = random.lognormal(0, 1, 6), random.lognormal(0.7, 2, 6)
    with np.errstate(divide="ignore", invalid="ignore"):  # of the separated splits, whose variance is 0 there
        theirs = stats.permutation_test(
            (x, y),
            lambda a, b: abs(stats.brunnermunzel(a, b, distribution="normal").statistic),
            n_resamples=np.inf,
            alternative="greater",
        )
    assert brunner_munzel(x, y).p == pytest.approx(theirs.pvalue)


def test_five_against_five_by_hand():
    """252 splits: 2 are separated, and 2 more have one inversion."""
    assert brunner_munzel([1, 2, 3, 4, 5], [6, 7, 8, 9, 10])[:2] == (pytest.approx(2 / 252), pytest.approx(2 / 252))
    assert brunner_munzel([1, 2, 3, 4, 6], [5, 7, 8, 9, 10]).p == pytest.approx(4 / 252)
    assert brunner_munzel([6, 7, 8, 9, 10], [1, 2, 3, 4, 5]).p == pytest.approx(2 / 252)


@pytest.mark.parametrize("n", [5, 8, 12, 25, 60])
def test_no_sample_is_more_significant_than_a_separated_one(n):
    low, high = np.arange(n, dtype=float), np.arange(n, dtype=float) + n
    separated = brunner_munzel(low, high)
    assert separated.p == pytest.approx(separated.least)
    last = separated.p
    for steps in range(1, 5):  # the lowest of the second sample sinks into the first
        mixed = high.copy()
        mixed[0] = n - steps - 0.5
        found = brunner_munzel(low, mixed).p
        assert last <= found
        last = found
    assert brunner_munzel([0.0] * n, [0.0] * n)[:2] == (1.0, pytest.approx(1.0))
    assert brunner_munzel([0.0] * n, [0.0] * (n - 1) + [1.0]).p == pytest.approx(1.0)


def test_the_arm_pain_of_brunner_and_munzel():
    """Their table 1: estimate 0.789 [0.595, 0.983], with p 0.0058; the t interval is symmetric, ours is on the logit scale."""
    x = [1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 1, 1]
    y = [3, 3, 4, 3, 1, 2, 3, 1, 1, 5, 4]
    assert stats.brunnermunzel(x, y).pvalue == pytest.approx(0.005786, abs=1e-6)
    assert brunner_munzel(x, y).p == pytest.approx(0.008, abs=0.003)  # permuted, as by the R package brunnermunzel
    estimate, interval = superiority(x, y, 0.95)
    assert estimate == pytest.approx(0.7889610)
    assert 0.53 < interval.low < 0.6
    assert 0.9 < interval.high < 0.95


@pytest.mark.parametrize("ties", [False, True])
def test_large_samples_have_scipys_p(ties):
    random = np.random.default_rng(3)
    for shift in (0.0, 0.15, 0.3):
        x, y = random.normal(0, 1, 200), random.normal(shift, 2, 260)
        if ties:
            x, y = np.maximum(np.round(x, 1), 0), np.maximum(np.round(y, 1), 0)
        p, theirs = brunner_munzel(x, y).p, stats.brunnermunzel(x, y).pvalue
        assert p == pytest.approx(theirs, abs=4 * math.sqrt(theirs * (1 - theirs) / DRAWS) + 0.004)
        assert p == brunner_munzel(x, y).p
    near = np.append(np.arange(199.0) + 500, 0.5)
    assert brunner_munzel(np.arange(200.0), near) == (
        pytest.approx(1 / (DRAWS + 1)),
        pytest.approx(2 / math.comb(400, 200)),
        True,
    )


@pytest.mark.parametrize(("n", "m"), [(200, 200), (30, 25), (12, 9), (9, 12)])
def test_samples_that_do_not_overlap_have_an_exact_p(n, m):
    """It was 1 of 10,000, as for any sample that no random split exceeds, and so less than that of samples that overlap."""
    both, whole = pytest.approx(2 / math.comb(n + m, n)), math.comb(n + m, n)
    assert brunner_munzel(np.arange(n), np.arange(m) + n) == (both, both, False)
    assert brunner_munzel(np.arange(m) + n, np.arange(n)) == (both, both, False)
    zeros = brunner_munzel([0.0] * n, np.arange(m) + 1.0)  # the m lowest can be the second sample unless zeros are tied there
    assert zeros.p == pytest.approx((2 if m >= n else 1) / whole)
    assert not zeros.at_most


def test_drawn_splits_and_those_without_overlap_make_one_valid_p():
    """Neither is counted twice: 10 and 10 values have few enough splits to sum them all."""
    random = np.random.default_rng(5)
    splits = [list(chosen) for chosen in itertools.combinations(range(20), 10)]
    everything = np.arange(20)
    drawn = np.random.default_rng(6).choice(len(splits), 4000, replace=False)
    null = np.array([by_definition(splits[i], np.setdiff1d(everything, splits[i])) for i in drawn])
    found = []
    for shift in (9, 8, 6):
        x, y = everything[:10] + random.normal(0, 1e-3, 10), everything[:10] + shift + random.normal(0, 1e-3, 10)
        ranks = stats.rankdata([*x, *y])
        observed = by_definition(ranks[:10], ranks[10:])
        found.append((brunner_munzel(x, y).p, np.mean(null >= observed - 1e-9)))
    for p, share in found:
        assert p == pytest.approx(share, abs=4 * math.sqrt(max(share, 1e-4) / 4000))
        assert p >= 2 / math.comb(20, 10) + 1 / (DRAWS + 1) - 1e-6


def test_large_samples_with_few_errors_are_counted_exactly():
    """Three errors, all in the second of two conditions: Fisher's test, whose tail is that of a statistic of one count."""
    found = brunner_munzel([0.0] * 100, [0.0] * 97 + [0.5] * 3)
    assert found.p == pytest.approx(stats.fisher_exact([[100, 0], [97, 3]]).pvalue)


@pytest.mark.parametrize(("zeros", "shift", "n"), [(0.0, 4.0, 8), (0.5, 0.5, 12), (0.8, 0.0, 25), (0.2, 2.0, 30)])
def test_the_interval_covers_with_zeros_heavy_tails_and_near_separation(zeros, shift, n):
    random = np.random.default_rng(1)

    def sample(size, zeros=zeros, shift=0.0):
        return np.where(random.random(size) < zeros, 0.0, random.lognormal(shift, 2, size))

    truth = superiority(sample(20_000), sample(20_000, zeros / 2, shift), 0.9)[0]
    hits = 0
    for _ in range(800):
        _, interval = superiority(sample(n), sample(n, zeros / 2, shift), 0.9)
        hits += interval.low <= truth <= interval.high
    assert hits / 800 >= 0.9 - 3 * math.sqrt(0.9 * 0.1 / 800)


def test_the_interval_turns_with_the_samples_and_is_exact_without_overlap():
    random = np.random.default_rng(2)
    x, y = np.round(random.lognormal(size=25), 1), np.round(random.lognormal(0.4, 1.5, size=31), 1)
    estimate, interval = superiority(x, y, 0.95)
    back, turned = superiority(y, x, 0.95)
    assert estimate == pytest.approx(np.mean((y[:, None] > x) + (y[:, None] == x) / 2)) == pytest.approx(1 - back)
    assert (interval.low, interval.high) == (pytest.approx(1 - turned.high), pytest.approx(1 - turned.low))
    assert superiority(x, x + 100, 0.95)[1].low == pytest.approx(0.025 ** (1 / 25))
    tied = superiority([0.0] * 9, [0.0] * 7, 0.95)[1]
    assert (tied.low, tied.high) == (pytest.approx(0.025 ** (1 / 7) / 2), pytest.approx(1 - 0.025 ** (1 / 7) / 2))
    with pytest.raises(ValueError, match=r"1 and 2 replicates: an interval .*at least 2"):
        superiority([1.0], [1.0, 2.0], 0.9)
    with pytest.raises(ValueError, match=r"1 and 2 replicates: a comparison .*at least 2"):
        brunner_munzel([1.0], [1.0, 2.0])
    for call in (lambda: superiority([1.0, math.nan], [1.0, 2.0], 0.9), lambda: brunner_munzel([1.0, 2.0], [math.nan, 2.0])):
        with pytest.raises(ValueError, match="a value is NaN: give diverged replicates as infinity"):
            call()
    with pytest.raises(ValueError, match="confidence = 95 must lie between 0 and 1"):
        superiority([1.0, 2.0], [1.0, 2.0], 95)
