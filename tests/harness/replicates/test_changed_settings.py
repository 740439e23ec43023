"""A study that is run again after a setting was changed: what its store holds of the old one is said, and counts nowhere."""

import pyarrow.parquet as pq
import pytest

import results
from harness.run import run
from harness.study.load import load as load_study
from launch.cli import main
from models.custom import custom
from results.progress.status import show_status
from results.store.tables import open_store
from tests.harness.experiments import own_functions
from tests.harness.replicates.rescoring import EXPERIMENT
from tests.harness.tiny import write_study

OTHERS = "2 other replicates in the store are not of this plan, and left out of reports"


def _run(path, store, *words):
    said = []
    assert run(load_study(path, [f"store={store}", "device=cpu", *words]), say=said.append) == 0
    return said


def test_replicates_of_a_changed_setting_are_counted_and_left_out(tmp_path, capsys):
    path, store = write_study(tmp_path), tmp_path / "runs"
    before = _run(path, store, "replicates=1", "train.steps=20")
    assert not any("other replicate" in line for line in before)
    assert any(line.strip() == OTHERS for line in _run(path, store, "replicates=1", "train.steps=21"))
    status = []
    show_status(open_store(store, "tiny"), status.append)
    assert status[0] == f"tiny: 2 of 2 replicates committed; {OTHERS}"
    for words in (("compare", "--baseline", "lstm"), ("spread",), ("report",)):
        main([words[0], str(store), *words[1:]])
        assert capsys.readouterr().out.splitlines()[-1] == f"tiny: {OTHERS}"
    with pytest.warns(UserWarning, match="2 replicates of tiny are not in its newest plan"):
        rows = results.load(store, table="replicates")
    assert rows["steps"].to_pylist() == [21, 21]
    for table in ("replicates", "evaluations", "curves"):
        copied = pq.read_table(store / "tiny" / "report" / "tables" / f"{table}.parquet")
        assert set(copied["key"].to_pylist()) == set(rows["key"].to_pylist()), table
    # the setting is changed back: all that is left out now is what the change has trained
    assert any(line.strip() == OTHERS for line in _run(path, store, "replicates=1", "train.steps=20"))
    with pytest.warns(UserWarning, match="newest plan"):
        assert results.load(store, table="replicates")["steps"].to_pylist() == [20, 20]
    assert sorted(results.load(store, table="replicates", planned=False)["steps"].to_pylist()) == [20, 20, 21, 21]


def test_arrays_and_tables_of_experiments_are_those_of_the_newest_plan(tmp_path, monkeypatch):
    monkeypatch.setattr(custom, "_allowed", {own_functions.__name__})
    path, store = tmp_path / "arrays.yaml", tmp_path / "runs"
    for size in (1, 2):
        path.write_text(EXPERIMENT.replace('array_once"', f'array_once", size: {size}'))
        _run(path, store)
    with pytest.warns(UserWarning, match="newest plan"):
        (own,) = results.load(store, table="replicates")["key"].to_pylist()
    (other,) = set(results.load(store, table="replicates", planned=False)["key"].to_pylist()) - {own}
    assert {array.key for array in results.arrays(store)} == {own}
    assert {array.key for array in results.arrays(store, key=other)} == {other}
    for table in ("replicates", "evaluations"):
        copied = pq.read_table(store / "arrays" / "report" / "tables" / f"{table}.parquet")
        assert set(copied["key"].to_pylist()) == {own}, table
