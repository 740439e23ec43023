"""The equivalence of two conditions: against scipy's Brunner–Munzel test, by simulation, and from a store."""

import math

import numpy as np
import pytest
from scipy import stats

from results.equivalence import compare, main, superiority
from results.store import open_store
from tests.results import synthetic


@pytest.mark.parametrize("seed", range(6))
def test_the_interval_holds_one_half_exactly_where_brunner_and_munzel_do_not_reject(seed):
    random = np.random.default_rng(seed)
    x, y = np.round(random.lognormal(size=25), 1), np.round(random.lognormal(0.4, 1.5, size=31), 1)
    p = stats.brunnermunzel(x, y).pvalue
    for step in (-1e-6, 1e-6):
        _, interval = superiority(x, y, 1 - p - step)
        assert (interval.low <= 0.5 <= interval.high) == (step < 0)
    estimate, _ = superiority(x, y, 0.9)
    assert estimate == pytest.approx(np.mean((y[:, None] > x) + (y[:, None] == x) / 2))
    back, interval = superiority(y, x, 0.9)
    assert back == pytest.approx(1 - estimate)


@pytest.mark.parametrize(("zeros", "spread"), [(0.0, 1.0), (0.5, 2.0), (0.2, 3.0)])
def test_the_interval_covers_at_30_replicates_with_zeros_and_heavy_tails(zeros, spread):
    random = np.random.default_rng(1)

    def sample(size, shift=0.0):
        return np.where(random.random(size) < zeros, 0.0, random.lognormal(shift, spread, size))

    truth = superiority(sample(4000), sample(4000, 0.5), 0.9)[0]
    hits = 0
    for _ in range(1500):
        _, interval = superiority(sample(30), sample(30, 0.5), 0.9)
        hits += interval.low <= truth <= interval.high
    assert 0.87 <= hits / 1500 <= 0.93


def test_verdicts():
    same = np.arange(400.0)
    assert compare(same, same + 0.5, 0.1).verdict == "equivalent"
    assert compare(same[:30], same[:30] + 0.5, 0.05).verdict == "not shown"
    assert compare(same, same + 200, 0.1).verdict == "different"
    apart = compare(same[:10], same[:10] + 100, 0.1)
    assert (apart.superiority, apart.verdict) == (1.0, "different")
    assert (apart.interval.low, apart.interval.high) == (pytest.approx(0.05 ** (1 / 10)), 1.0)
    with pytest.raises(ValueError, match=r"margin = 0\.5 must be between 0 and 0.5"):
        compare(same, same, 0.5)
    with pytest.raises(ValueError, match="1 and 400 replicates: an interval needs at least 2"):
        compare([1.0], same, 0.1)


def test_samples_without_any_error_are_equivalent_only_where_there_are_enough():
    """All tied: the variance estimate is 0, but two replicates each show nothing."""
    few, many = compare([0.0] * 2, [0.0] * 2, 0.15), compare([0.0] * 30, [0.0] * 30, 0.15)
    assert (few.verdict, many.verdict) == ("not shown", "equivalent")
    assert (many.interval.low, many.interval.high) == pytest.approx(
        (0.5 - (1 - 0.05 ** (1 / 30)) / 2, 0.5 + (1 - 0.05 ** (1 / 30)) / 2)
    )


def test_a_diverged_replicate_errs_most():
    estimate, _ = superiority([0.1, 0.2, 0.3], [math.inf, 0.0, 0.0], 0.9)
    assert estimate == pytest.approx(1 / 3)


def test_the_command_prints_a_verdict_a_set_and_refuses_what_is_unfinished(tmp_path, capsys):
    plan = synthetic.manifest(8)
    synthetic.write(open_store(str(tmp_path), plan["study"]), plan)
    words = [str(tmp_path), plan["study"], "transformer", "lstm", "--sets", "sparse", "dense", "--margin", "0.15"]
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" | ")[0] for line in lines[2:]] == ["| sparse", "| dense"]
    assert all("8, 8" in line and line.endswith(("different |", "not shown |")) for line in lines[2:])
    assert main([*words[:3], "gru", *words[4:]]) == 2
    assert "there is no condition 'gru'; conditions: transformer, lstm" in capsys.readouterr().err
    half = tmp_path / "half"
    synthetic.write(open_store(str(half), plan["study"]), plan, ended=3)
    assert main([str(half), *words[1:]]) == 2
    assert "have no number on sparse: finish the study first" in capsys.readouterr().err
    assert main([str(tmp_path / "none"), *words[1:]]) == 2
    assert "holds no study" in capsys.readouterr().err
