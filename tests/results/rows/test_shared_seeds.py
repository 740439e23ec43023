"""Crossed seeds: what counts as crossed, and that every place with an interval over replicates says so."""

import itertools

import pytest

from harness.exchange.finished_runs import Columns, import_runs
from results.report.report import write_report
from results.report.run_ending import run_ending
from results.report.spread import show_spread
from results.report.values_report import values_report
from results.rows.shared_seeds import caution, share_seeds
from results.statistics.equivalence import main
from results.store.manifest import manifest_of
from results.store.tables import open_store
from tests.results.synthetic import manifest, write

SENTENCE = "Replicates share initialisation or data seeds, so they are no independent sample"


def test_seeds_are_crossed_where_several_are_each_in_several_replicates():
    assert share_seeds(list(itertools.product(range(3), range(3))))
    assert share_seeds([(0, 0), (0, 1), (1, 2)])
    assert not share_seeds([(seed, seed) for seed in range(9)])
    assert not share_seeds([(seed, 0) for seed in range(9)])
    assert not share_seeds([(0, 0)])


@pytest.mark.parametrize("crossed", [True, False])
def test_intervals_over_replicates_that_share_seeds_are_said_to_be_too_narrow(tmp_path, crossed, capsys):
    plan = manifest(9)
    if crossed:
        for row, (init, data) in zip(plan["replicates"], 2 * list(itertools.product(range(3), range(3))), strict=True):
            row[2:] = [init, data]
    store = open_store(str(tmp_path), plan["study"])
    write(store, plan)
    assert caution(plan).startswith(SENTENCE) == crossed
    page = write_report(store)
    assert (SENTENCE in page.read_text()) == crossed
    assert ("seeds, for which these intervals are too narrow" in page.read_text()) == crossed
    assert (SENTENCE in "".join(run_ending(store, page))) == crossed
    said = []
    show_spread(store, said.append)
    assert ("replicates share seeds" in "\n".join(said)) == crossed
    words = [str(tmp_path), plan["study"], "transformer", "lstm", "--sets", "sparse", "--margin", "0.15"]
    assert main(words) == (2 if crossed else 0)
    assert ("replicates of transformer share seeds" in capsys.readouterr().err) == crossed


def test_experiments_are_compared_by_which_is_worse(tmp_path, capsys):
    """The second condition has the higher scores, of which higher ones are better, so it is never the worse one."""
    path, store = tmp_path / "scores.csv", open_store(str(tmp_path / "runs"), "scores")
    rows = [f"{name},{seed},{seed + (name == 'fast') * 10}" for name in ("slow", "fast") for seed in range(8)]
    path.write_text("\n".join(("condition,seed,score", *rows)))
    import_runs(store, path, Columns("seed", ("condition",), {"score": "higher"}), "q", lambda text: None)
    assert (
        main([str(tmp_path / "runs"), "scores", "condition=slow", "condition=fast", "--sets", "score", "--margin", "0.15"]) == 0
    )
    head, _, line = capsys.readouterr().out.splitlines()
    assert head.split(" | ")[2] == "P(second is worse)"
    assert line.split(" | ")[2] == "0.000"
    assert line.endswith("different |")


@pytest.mark.parametrize("crossed", [True, False])
def test_the_report_of_experiments_says_so_too(tmp_path, crossed):
    path, store = tmp_path / "scores.csv", open_store(str(tmp_path / "runs"), "scores")
    path.write_text("condition,seed,score\n" + "".join(f"slow,{seed},{seed}\n" for seed in range(4)))
    import_runs(store, path, Columns("seed", ("condition",), {"score": "higher"}), "q", lambda text: None)
    plan = manifest_of(store)
    if crossed:
        plan["replicates"] = [[key, index, init // 2, data % 2] for key, index, init, data in plan["replicates"]]
    assert (SENTENCE in values_report(store, plan, ())["index.html"].decode()) == crossed
