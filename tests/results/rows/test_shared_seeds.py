"""Crossed seeds: what counts as crossed, and that every place with an interval over replicates says so."""

import itertools

import pytest

from results.report.report import write_report
from results.report.run_ending import run_ending
from results.report.spread import show_spread
from results.rows.shared_seeds import caution, share_seeds
from results.statistics.equivalence import main
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
    assert (SENTENCE in "".join(run_ending(store, page))) == crossed
    said = []
    show_spread(store, said.append)
    assert ("replicates share seeds" in "\n".join(said)) == crossed
    words = [str(tmp_path), plan["study"], "transformer", "lstm", "--sets", "sparse", "--margin", "0.15"]
    assert main(words) == (2 if crossed else 0)
    assert ("replicates of transformer share seeds" in capsys.readouterr().err) == crossed
