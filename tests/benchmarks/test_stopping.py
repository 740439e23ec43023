"""The exact coverage at an adaptive stop: against every sequence of outcomes of a small rule."""

import itertools

import pytest

from benchmarks.stopping import least_covered, zero_error
from results.statistics.adaptive_rules import Rule, interval_size
from results.statistics.intervals import clopper_pearson

SMALL = Rule(2, 6, 2, "dense", 0.35)


@pytest.mark.parametrize("p", [0.0, 0.2, 0.65, 1.0])
def test_the_paths_to_each_stop_are_those_of_all_outcomes(p):
    mean = covered = 0.0
    for outcomes in itertools.product([0.0, 0.5], repeat=SMALL.maximum):
        chance = 1.0
        for error in outcomes:
            chance *= p if error == 0 else 1 - p
        stop = next((n for n in SMALL.looks if interval_size(SMALL, outcomes[:n], ()) <= SMALL.limit), SMALL.maximum)
        interval = clopper_pearson(outcomes[:stop].count(0.0), stop)
        mean += chance * stop
        covered += chance * (interval.low <= p <= interval.high)
    found = zero_error(p, SMALL)
    assert (found.mean, found.stop) == (pytest.approx(mean), pytest.approx(covered))


def test_the_least_coverage_is_below_that_of_a_fine_grid():
    p, found = least_covered(SMALL)
    assert zero_error(p, SMALL).stop == found.stop
    grid = min(zero_error(k / 400, SMALL).stop for k in range(401))
    assert found.stop <= grid < found.stop + 0.02
