"""The equivalence of two conditions: its verdicts, where few values differ, and from a store."""

import math

import numpy as np
import pyarrow as pa
import pytest

from results.errors import StudyError
from results.rows.summary import Replicate
from results.statistics import equivalence
from results.statistics.equivalence import _errors, compare, main
from results.statistics.intervals import Interval
from results.statistics.unpaired import superiority
from results.store.schema import SCHEMAS
from results.store.tables import commit, open_store
from tests.results import synthetic


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
    with pytest.raises(ValueError, match=r"1 and 400 replicates.* at least 2"):
        compare([1.0], same, 0.1)


def test_samples_without_any_error_are_equivalent_only_where_there_are_enough():
    """All tied: the variance estimate is 0, but two replicates each show nothing."""
    few, many = compare([0.0] * 2, [0.0] * 2, 0.15), compare([0.0] * 30, [0.0] * 30, 0.15)
    assert (few.verdict, many.verdict) == ("not shown", "equivalent")
    assert (many.interval.low, many.interval.high) == pytest.approx(
        (0.5 - (1 - 0.05 ** (1 / 30)) / 2, 0.5 + (1 - 0.05 ** (1 / 30)) / 2)
    )


@pytest.mark.parametrize(("zero", "margin", "n"), [(1.0, 0.1, 25), (1.0, 0.15, 12), (0.98, 0.15, 25), (0.98, 0.2, 8)])
def test_samples_at_the_margin_with_few_errors_are_rarely_called_equivalent(zero, margin, n):
    """With the symmetric t interval 6 to 11 % of them were."""
    random = np.random.default_rng(4)

    def sample(zero):
        return np.where(random.random(n) < zero, 0.0, random.random(n))

    found = [compare(sample(zero), sample(zero - 2 * margin), margin).verdict == "equivalent" for _ in range(1500)]
    assert np.mean(found) <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 1500)


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
    assert "there is no condition 'gru'; conditions: transformer; lstm" in capsys.readouterr().err
    assert main([*words[:2], "lstm", *words[3:]]) == 2
    assert "error: lstm is given twice: give two conditions" in capsys.readouterr().err
    assert main([*words[:5], "spars", "--margin", "0.15"]) == 2
    assert "error: there is no set 'spars'; sets: sparse_online, sparse, dense" in capsys.readouterr().err
    half = tmp_path / "half"
    synthetic.write(open_store(str(half), plan["study"]), plan, ended=3)
    assert main([str(half), *words[1:]]) == 2
    assert "have no number on sparse: finish the study first" in capsys.readouterr().err
    failed = pa.Table.from_pylist([synthetic.failure(row[0]) for row in plan["replicates"]], SCHEMAS["failures"])
    commit(open_store(str(half), plan["study"]), "fd-0000000000000000-1", {"failures": failed})
    assert main([str(half), *words[1:]]) == 2
    assert "have no number on sparse, since they failed: train them with manyseeds retry first" in capsys.readouterr().err
    assert main([str(tmp_path / "none"), *words[1:]]) == 2
    assert "there is no study" in capsys.readouterr().err


def test_the_command_rounds_no_end_onto_the_margin(tmp_path, capsys, monkeypatch):
    plan = synthetic.manifest(8)
    synthetic.write(open_store(str(tmp_path), plan["study"]), plan)
    found = equivalence.Comparison(8, 8, 0.5003, Interval(0.34996, 0.64996), 0.15, "not shown")
    monkeypatch.setattr(equivalence, "compare", lambda *_: found)
    assert main([str(tmp_path), plan["study"], "transformer", "lstm", "--sets", "sparse", "--margin", "0.15"]) == 0
    assert "| 0.5003 | 0.34996 – 0.64996 | 0.5 ± 0.15 |" in capsys.readouterr().out


def test_stages_of_one_condition_are_refused():
    """A seed has a row in each stage, so the rows of all stages together are no sample."""
    staged = [
        Replicate("warm", stage, f"{seed}-{stage}", seed, seed, "finished", 0.1, None, {})
        for stage in (0, 1)
        for seed in (0, 1)
    ]
    with pytest.raises(StudyError, match="warm has the stages 0, 1, and a seed in each is no replicate of its own"):
        _errors(staged, "warm", "sparse")
