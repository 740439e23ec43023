"""The last lines of a run: the summary in text, then the answer."""

import pytest

from results.report.first_screen import answer
from results.report.run_ending import MOST_ROWS, run_ending
from results.rows.summary import replicates_of, reported_sets, summarise, to_parquet
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
