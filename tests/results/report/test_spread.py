"""The table of `manyseeds spread`: the split of made-up rows, and of a store that was committed."""

import pytest

from results.report.spread import _cells, show_spread
from results.statistics.variance import effective, icc_interval, split
from results.store.tables import committed, open_store, read
from tests.results.synthetic import SETS, manifest, write


def test_every_condition_and_set_has_the_split_of_its_finished_replicates(tmp_path):
    store, plan = open_store(str(tmp_path), "synthetic"), manifest()
    write(store, plan)
    said = []
    show_spread(store, said.append)
    lines = "\n".join(said).splitlines()[6:]
    assert said[1] == "p: how probable so wide a spread would be if all replicates had the same error probability."
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    rows = read(store, "evaluations").to_pandas()
    ended = committed(store).to_pandas().set_index("key")
    rows = rows[(rows.metric == "read") & (rows.weights == "raw") & (rows.step == rows.key.map(ended.steps))]
    rows = rows[rows.key.map(ended.status) == "finished"].assign(condition=rows.key.map(ended.condition))
    assert {(row[0], row[1]) for row in table} == {(c, s) for c in ("transformer", "lstm") for s in ("sparse", "dense")}
    for condition, name, count, left_out, mean, correlation, *_ in table:
        mine = rows[(rows.condition == condition) & (rows.set == name)]
        counts = effective(*(mine[c] for c in ("errors", "count", "sequences", "errors_sq", "errors_x_count", "count_sq")))
        found, interval = split(*counts), icc_interval(*counts)
        assert (int(count), int(left_out)) == (len(mine), 8 - len(mine))
        assert mean == f"{found.mean:.3g}"
        assert correlation == ("–" if interval is None else f"{found.icc:.3g} [{interval.low:.3g}, {interval.high:.3g}]")


def test_a_store_without_the_study_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"no study 'none' .*: run it first"):
        show_spread(open_store(str(tmp_path), "none"), print)


def test_a_set_of_one_string_has_no_split(tmp_path, monkeypatch):
    monkeypatch.setitem(SETS, "sparse", SETS["sparse"] | {"sequences": 1})
    store, said = open_store(str(tmp_path), "synthetic"), []
    write(store, manifest())
    show_spread(store, said.append)
    assert sum("needs at least 2 strings" in line for line in said) == 2


def test_a_share_of_almost_all_is_not_all():
    counts = [(wrong, 10**6, 10**6, wrong, wrong, 10**6) for wrong in (10**3, 10**5, 3 * 10**5, 5 * 10**5)]
    assert _cells(counts, len(counts), shared=False)[4] == "99.9998 %"


def test_a_probability_that_is_too_small_for_a_number_is_not_0():
    errors = [[10] * 20, [10**6 - 10] * 20]
    counts = [(wrong, 10**6, 10**6, wrong, wrong, 10**6) for seeds in errors for wrong in seeds]
    cells = _cells(counts, len(counts), shared=False)
    assert split(*effective(*map(list, zip(*counts, strict=True)))).p == 0
    assert "below 1e-300" in cells
    assert "0" not in cells[2:]
