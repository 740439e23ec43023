"""Numbers of replicates against published examples, exact powers and a simulation."""

import numpy as np
import pytest
from scipy import stats

from results.statistics.comparison import sign_flip
from results.statistics.intervals import clopper_pearson
from results.statistics.sample_size import for_halfwidth, noether_paired, noether_unpaired, to_exclude, to_settle
from results.statistics.unpaired import brunner_munzel


def test_noethers_examples_without_ties():
    """R packages statpsych (`size.test.mann(.05, .90, .3)`: 44 a group) and, by hand, P = 0.7 and 0.75 at 80 % power."""
    assert noether_unpaired(0.3, power=0.9) == 88
    assert noether_unpaired(0.7, power=0.9) == 88
    assert noether_unpaired(0.75) == 42  # (1.95996 + 0.84162)^2 / (3 · 0.0625) = 41.86
    assert noether_paired(0.75) == 42  # the same with one 3: Noether's equations for both tests
    assert noether_unpaired(0.75, share=0.2) == 66


def test_the_published_example_with_ties():
    """Zhao, Rahardja and Qu 2008: 8,390 in all for three categories, 53 % of them in the second group."""
    p, q = np.array([0.66, 0.15, 0.19]), np.array([0.61, 0.23, 0.16])
    chance = p[0] * q[1:].sum() + p[1] * q[2] + (p * q).sum() / 2
    ties = ((0.47 * p + 0.53 * q) ** 3).sum()
    assert noether_unpaired(chance, 0.47, ties) == 8390


def test_pratt_zeros_leave_the_variance():
    """Of n pairs a share z is equal: the ranks of the others have squares that sum to n^3 (1 - z^3)/3."""
    changes = np.concatenate([np.zeros(300), np.arange(1.0, 701.0)])
    squares = (stats.rankdata(np.abs(changes))[300:] ** 2).sum()
    assert squares == pytest.approx(1000**3 * (1 - 0.3**3) / 3, rel=0.01)
    assert noether_paired(0.6, 0.9) == pytest.approx(noether_paired(0.6) * (1 - 0.9**3), abs=1)


def test_an_even_chance_is_settled_by_no_number():
    assert noether_unpaired(0.5) is None
    assert noether_paired(0.5) is None
    same = np.arange(20.0)
    for paired in (True, False):
        found = to_settle(same, same, paired)
        assert (found.total, found.more) == (None, None)
        assert found.reason == "not settled by any number: the conditions err equally often"
    apart = to_settle([0.1, 0.2, 0.3, 0.4, 0.5], [0.5, 0.4, 0.3, 0.2, 0.1], False)  # 10 of 25 pairs each way
    assert (apart.more, apart.reason) == (None, found.reason)
    cancelling = to_settle([0.25, 0.25, 0.5], [0.5, 0.375, 0.25], True)  # more in two pairs, and much less in one
    assert cancelling.reason == "not settled by any number: the differences of the pairs cancel out"
    assert to_exclude(10, 20, 0.5).reason == "not settled by any number: the share seen is 0.5"


def test_the_half_width_is_reached_and_not_before():
    found = for_halfwidth(20, 25, 0.1)
    assert found.more == found.total - 25

    def half(n):
        each = [clopper_pearson(k, n) for k in {int(np.floor(0.8 * n)), int(np.ceil(0.8 * n))}]
        return max(one.high - one.low for one in each) / 2

    assert half(found.total) <= 0.1 < half(found.total - 1)
    assert for_halfwidth(0, 400, 0.1).more == 0
    assert for_halfwidth(1, 2, 0.0005).reason == "not settled by 100,000 replicates"


@pytest.mark.parametrize(("zero", "of", "value"), [(20, 25, 0.7), (1, 25, 0.1), (25, 25, 0.9), (0, 10, 0.05)])
def test_the_value_is_excluded_with_the_stated_power(zero, of, value):
    def power(n):
        covers = np.array([clopper_pearson(k, n).low <= value <= clopper_pearson(k, n).high for k in range(n + 1)])
        return stats.binom.pmf(np.arange(n + 1), n, zero / of)[~covers].sum()

    found = to_exclude(zero, of, value)
    assert found.more == found.total - of > 0
    assert power(found.total) >= 0.8 > power(found.total - 1)


def test_a_value_that_is_excluded_already_needs_none():
    assert to_exclude(20, 25, 0.5).more == 0
    assert to_exclude(25, 25, 0.9).total == 36  # 0.9^36 < 0.025 < 0.9^35


@pytest.mark.parametrize("paired", [True, False])
def test_the_number_has_the_stated_power(paired):
    """A large sample stands for the truth; that many replicates find its difference about 8 times in 10."""
    random = np.random.default_rng(0)

    def sample(n):
        x = np.where(random.random(n) < 0.3, 0.0, random.lognormal(-5, 2, n))
        y = np.where(random.random(n) < 0.3, 0.0, random.lognormal(-3.6, 2, n))
        return x, y

    total = to_settle(*sample(4000), paired).total
    test = (lambda x, y: sign_flip(y - x).p) if paired else (lambda x, y: brunner_munzel(x, y).p)
    assert np.mean([test(*sample(total)) <= 0.05 for _ in range(400)]) == pytest.approx(0.8, abs=0.08)


def test_few_pairs_cannot_reach_the_level():
    """All 6 of 6 pairs on one side give p = 2/64, 5 of 5 give 0.0625; 4 and 4 separated replicates 2/70, 3 and 3 give 0.1."""
    assert to_settle([0.1] * 3, [0.2] * 3, True).total >= 6
    assert to_settle([0.0] * 3, [1.0] * 3, False).total == 4
    assert to_settle([0.0] * 3, [1.0] * 3, False, power=0.5).total == 4  # where Noether's formula gives 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: for_halfwidth(3, 2, 0.1), "3 of 2 replicates"),
        (lambda: for_halfwidth(1, 2, 0.7), "halfwidth = 0.7"),
        (lambda: to_exclude(0, 0, 0.5), "0 of 0 replicates"),
        (lambda: to_exclude(1, 2, 1.5), "value = 1.5"),
        (lambda: noether_unpaired(1.2), "chance = 1.2"),
        (lambda: noether_unpaired(0.7, share=1.0), "share = 1.0"),
        (lambda: noether_paired(0.7, power=1.0), "power = 1.0"),
        (lambda: to_settle([0.1], [0.2], True), "1 pairs"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
