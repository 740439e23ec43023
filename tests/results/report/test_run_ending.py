"""The last lines of a run: the summary in text, then the answer."""

import math

import pytest

from results.report.first_screen import answer
from results.report.run_ending import MOST_ROWS, run_ending
from results.rows.measures import Measure
from results.rows.shared_seeds import caution
from results.rows.summary import Replicate, Score, replicates_of, reported_sets, summarise, to_parquet
from results.rows.value_summary import summarise_values
from results.store.tables import committed, open_store, read
from tests.results.synthetic import manifest, write


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    store = open_store(str(tmp_path_factory.mktemp("store")), "synthetic")
    plan = manifest(8)
    write(store, plan)
    known = replicates_of(plan, committed(store), read(store, "evaluations"), read(store, "failures"))
    folder = tmp_path_factory.mktemp("report")
    (folder / "summary.parquet").write_bytes(to_parquet(summarise(plan, known)))
    return store, summarise(plan, known), plan, folder / "index.html"


def test_each_condition_and_reported_set_has_a_line_and_the_answer_is_last(ended):
    store, summary, plan, page = ended
    heading, *rows, last = run_ending(store, page)
    assert last == answer(summary, reported_sets(plan))
    wanted = {(row["condition"], row["set"]): row for row in summary.to_pylist() if row["set"] != "sparse_online"}
    assert len(rows) == len(wanted) == 4
    assert {len(line) for line in rows} == {len(heading)} or heading.endswith("max")
    for line in rows:
        condition, name, finished, diverged, zero, _, median, worst = line.split()
        row = wanted[condition, name]
        assert (finished, diverged) == (f"{row['finished']}/8", str(row["diverged"]))
        assert zero == f"{row['zero_error']}/{row['zero_error_of']}"
        assert median == "0" if row["error_median"] == 0 else float(median.replace("×10", "e").translate(DIGITS)) > 0
        assert (worst == "diverged") == (row["diverged"] > 0)


DIGITS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def test_a_long_summary_is_cut(ended, monkeypatch):
    store, _, _, page = ended
    assert MOST_ROWS == 24
    monkeypatch.setattr("results.report.run_ending.MOST_ROWS", 3)
    assert run_ending(store, page)[-2] == "  and 1 more row in the report"


def test_experiments_end_with_their_values(tmp_path, monkeypatch):
    measures = [Measure("result", "accuracy", "higher", True, "number"), Measure("result", "solved", "higher", True, "flag")]

    def replicate(condition, seed, accuracy, status="finished"):
        scores = {"accuracy": -accuracy, "solved": -float(accuracy > 0.5)}
        known = {name: Score(0, 0, 0, cost, math.nan, math.nan) for name, cost in scores.items()}
        return Replicate(
            condition, 0, f"{condition}{seed}", seed, seed, status, None, None, known if status == "finished" else {}
        )

    known = [replicate(name, seed, low + seed / 100) for name, low in (("deep", 0.6), ("flat", 0.2)) for seed in range(11)]
    known.append(replicate("flat", 11, 0.0, "diverged"))
    (tmp_path / "summary.parquet").write_bytes(to_parquet(summarise_values(known, measures)))
    plan = {"conditions": [{"config": {"experiment": {}}}], "replicates": [["k", 0, seed, seed] for seed in range(4)]}
    monkeypatch.setattr("results.report.run_ending.newest_manifest", lambda store: ("", plan))
    heading, *rows, last = run_ending(None, tmp_path / "index.html")
    assert heading.split() == "condition metric finished diverged true min median max".split()
    assert [row.split() for row in rows] == [
        ["deep", "accuracy", "11/11", "0", "–", "0.6", "0.65", "0.7"],
        ["deep", "solved", "11/11", "0", "11/11", "–", "–", "–"],
        ["flat", "accuracy", "11/12", "1", "–", "-∞", "0.245", "0.3"],
        ["flat", "solved", "11/12", "1", "0/12", "–", "–", "–"],
    ]
    assert last == (
        "The median accuracy is highest, 0.65 (95 %: 0.61 to 0.69), for deep, and lowest, 0.245 (95 %: 0.21 to 0.28), for flat."
    )
    plan["replicates"] = [["k", 0, init, data] for init in range(2) for data in range(2)]
    assert run_ending(None, tmp_path / "index.html")[-2:] == [last, caution(plan)]
