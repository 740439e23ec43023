"""Interquartile means and probabilities of improvement over tasks, against rliable 1.2.0 on the scores that its authors published."""

import csv
from pathlib import Path

import numpy as np
import pytest

from results.statistics.intervals import Interval
from results.statistics.real_values import interquartile_mean, interquartile_mean_interval
from results.statistics.strata import mean_superiority

# atari_100k.csv: scores of 100 runs of SPR and DrQ(ε) in 26 games, from gs://rl-benchmark-data/atari_100k, as eloialonso/iris copies them.
# The estimates below are what rliable.metrics computes of them; the papers print 0.337 and 0.280 (Micheli et al. 2023, Table 1).
# The intervals are those of rliable.library.get_interval_estimates with 20,000 resamples (2,000 for the probability).
IQM = {"SPR": (0.33664931949376936, 0.3257922, 0.34793382), "DrQ(eps)": (0.27964692908526456, 0.27113451, 0.28828258)}
IMPROVEMENT = (0.6197999999999999, 0.60684976, 0.63269192)  # of SPR over DrQ(ε)


@pytest.fixture(scope="module")
def scores():
    """{algorithm: [scores of a game, 0 for random play and 1 for a person]}."""
    found = {}
    with open(Path(__file__).with_name("atari_100k.csv"), newline="") as stream:
        for row in csv.DictReader(stream):
            low, high = float(row["random"]), float(row["human"])
            values = (np.array(row["scores"].split(), dtype=np.float64) - low) / (high - low)
            found.setdefault(row["algorithm"], []).append(values)
    return found


@pytest.mark.parametrize("algorithm", IQM)
def test_the_interquartile_mean_of_published_scores_is_rliables(scores, algorithm):
    estimate, low, high = IQM[algorithm]
    interval = interquartile_mean_interval(*scores[algorithm])
    assert interquartile_mean(np.concatenate(scores[algorithm])) == pytest.approx(estimate, abs=1e-12)
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=0.002)


def test_the_probability_of_improvement_of_published_scores_is_rliables(scores):
    costs = {name: [-values for values in games] for name, games in scores.items()}
    estimate, low, high = IMPROVEMENT
    found, interval = mean_superiority(costs["SPR"], costs["DrQ(eps)"])
    assert found == pytest.approx(estimate, abs=1e-12)
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=0.002)


def test_a_resample_keeps_the_replicates_of_each_stratum():
    """Strata that differ by much, each without any spread: nothing is uncertain. A bootstrap of the pooled values would say otherwise."""
    assert interquartile_mean_interval([1.0] * 6, [9.0] * 6) == Interval(5.0, 5.0)
    assert mean_superiority([[1.0] * 6, [9.0] * 6], [[1.0] * 6, [np.inf] * 4]) == (0.75, Interval(0.75, 0.75))


def test_fewer_than_ten_replicates_have_no_interval():
    assert interquartile_mean_interval([1.0] * 4, [9.0] * 5) == Interval(-np.inf, np.inf)
    assert interquartile_mean_interval([1.0]) == Interval(-np.inf, np.inf)
    assert mean_superiority([[1.0] * 5, [9.0] * 5], [[1.0] * 5, [np.inf] * 4]) == (0.75, Interval(0.0, 1.0))


def test_fewer_than_three_replicates_of_a_stratum_have_no_interval():
    """A resample of one replicate is that replicate, so tasks with one seed each would have an interval without any width."""
    assert interquartile_mean_interval(*([float(task)] for task in range(12))) == Interval(-np.inf, np.inf)
    assert interquartile_mean_interval([1.0] * 10, [9.0] * 2) == Interval(-np.inf, np.inf)
    assert mean_superiority([[1.0]] * 12, [[1.0]] * 12) == (0.5, Interval(0.0, 1.0))
    assert mean_superiority([[1.0] * 8, [9.0] * 8], [[1.0] * 8, [np.inf] * 2]) == (0.75, Interval(0.0, 1.0))
