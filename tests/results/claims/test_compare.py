"""Comparisons that claims share, on zeros and infinities, and against the paper's own uncertainty."""

import numpy as np
import pytest

from results.claims.compare import exceeds, percent, probability, share_below
from results.statistics.intervals import Interval

INF = np.inf


def test_factors_are_compared_by_rank_with_zeros_and_diverged_ones() -> None:
    some, none = [0.1] * 20, [0.0] * 20
    assert exceeds(some, none, 10).interval.low > 0.5
    assert exceeds(some, [0.011] * 20, 10).interval.high < 0.5
    assert exceeds([INF] * 20, some, 10).interval.low > 0.5
    assert exceeds(none, none, 10).chance == 0.5
    assert exceeds([*some, INF], [*none, INF], 10).chance == pytest.approx((20 * 21 + 0.5) / 21**2)


def test_an_interval_of_one_or_all_but_one_does_not_end_at_none_or_all() -> None:
    assert (percent(1, 100), percent(99, 100)) == ("1 of 100 [0.03%, 5.4%]", "99 of 100 [94.6%, 99.97%]")
    assert percent(0, 10) == "0 of 10 [0.0%, 30.8%]"


def test_the_interval_of_a_share_is_the_one_that_is_judged() -> None:
    """Of two conditions each is judged at 97.5 %, where 15 of 15 are not shown to exceed three quarters."""
    assert percent(15, 15) == "15 of 15 [78.2%, 100.0%]"
    assert percent(15, 15, 0.975) == "15 of 15 [74.7%, 100.0%]"


def test_a_share_is_held_against_the_papers_with_the_papers_own_uncertainty() -> None:
    assert share_below(0, 25, 0.24, 25) == pytest.approx(0.0111, abs=3e-4)
    assert share_below(0, 25, 0.24, None) == pytest.approx(0.76**25)
    assert share_below(9, 25, 0.24, 25) > 0.5


@pytest.mark.parametrize(
    ("chance", "low", "high", "said"),
    [
        (0.0012, 0.0, 0.01, "P < 0.005 [0, 0.01]"),
        (0.0, 0.0, 0.01, "P < 0.005 [0, 0.01]"),
        (0.04, 0.0, 0.01, "P = 0.04 [0, 0.01]"),
        (0.3, 0.1569, 0.49961, "P = 0.30 [0.157, 0.4996]"),
        (0.5, 0.4, 0.6, "P = 0.50 [0.4, 0.6]"),
        (0.9975, 0.9167, 0.99972, "P = 0.998 [0.917, 0.9997]"),
        (1.0, 0.9, 1.0, "P = 1.00 [0.9, 1]"),
    ],
)
def test_no_chance_is_written_as_never_even_or_always_which_it_is_not(
    chance: float, low: float, high: float, said: str
) -> None:
    assert probability(chance, Interval(low, high)) == said
