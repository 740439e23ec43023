"""What commands say of a condition that was renamed after its replicates were trained: its name in the newest plan."""

import shutil
from pathlib import Path

import pytest

import results
from harness.probes.flipflop.wrong_reads import row_of
from harness.replicates.rerun import rerun
from harness.run import run
from harness.study.load import load as load_study
from harness.tracing.flipflop.replicate import rows_of as rows_of_all
from harness.training.weights import stages_of
from launch.cli import main
from models.custom import custom
from results.store.tables import committed, open_store
from tests.harness.experiments import own_functions
from tests.harness.replicates.rescoring import EXPERIMENT, evaluate, rows_of
from tests.harness.tiny import STUDY

SHORT = ["train.steps=20", "device=cpu"]
OLD, SWAPPED = "{transformer: {}, lstm: {", "{lstm: {}, transformer: {"  # names; what is trained stays


def train(study, store, *words):
    path = Path(store).parent / "study.yaml"
    path.write_text(study)
    assert run(load_study(path, [f"store={store}", *words]), say=lambda line: None) == 0
    return open_store(store, "tiny")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("renamed")
    store = train(STUDY, folder / "runs", *SHORT, "replicates=2", "keep=all")
    return folder, [row["key"] for row in committed(store).to_pylist() if row["condition"] == "transformer"]


@pytest.fixture
def swapped(trained, tmp_path):
    """A copy of the store in which the two conditions have exchanged their names; the keys of the transformers, now lstm."""
    folder, keys = trained
    shutil.copytree(folder / "runs", tmp_path / "runs")
    main(["evaluate", str(tmp_path / "runs"), keys[0], "--set", "p_ignore=0.5 sequences=9", "--name", "half", "--write"])
    return train(STUDY.replace(OLD, SWAPPED), tmp_path / "runs", *SHORT, "replicates=2", "keep=all"), keys


def test_a_set_that_is_scored_later_has_the_new_names(swapped, capsys):
    store, keys = swapped
    capsys.readouterr()
    evaluate(store, keys[1], "p_ignore=0.5 sequences=9", "--name", "half", "--write")
    assert "  lstm, seeds " in capsys.readouterr().out
    assert {(row["key"], row["condition"]) for row in rows_of(store, "half")} == {(key, "lstm") for key in keys}


def test_a_replicate_that_is_trained_again_is_told_by_its_new_name(swapped):
    store, (key, _) = swapped
    told = []
    assert rerun(store, key, say=told.append).agrees
    assert told[0].startswith(f"{key} (lstm, seeds ")


def test_a_replicate_that_is_looked_up_has_its_new_name(swapped):
    store, (key, _) = swapped
    assert row_of([store], key)[1]["condition"] == "lstm"
    assert {row["condition"] for _, row in rows_of_all([store], "all") if row["key"] == key} == {"lstm"}


def test_the_worst_are_kept_of_a_condition_that_was_renamed_half_way(trained, tmp_path):
    """Rows before the renaming have another name than those after it, and are of one condition."""
    folder, _ = trained
    shutil.copytree(folder / "runs", tmp_path / "runs")
    store = train(STUDY.replace("transformer: {}", "other: {}"), tmp_path / "runs", *SHORT, "replicates=3", "keep=tail(1)")
    rows = committed(store).to_pylist()
    assert {row["condition"] for row in rows} == {"transformer", "other", "lstm"}
    assert len([row for row in rows if stages_of(store, row["key"])]) == 2  # one of each of two conditions


def test_arrays_have_the_new_name_of_their_condition(tmp_path, monkeypatch):
    monkeypatch.setattr(custom, "_allowed", {own_functions.__name__})
    named = EXPERIMENT + "conditions: {%s: {}}\n"
    for name in ("before", "after"):
        (tmp_path / "arrays.yaml").write_text(named % name)
        assert run(load_study(tmp_path / "arrays.yaml", [f"store={tmp_path / 'runs'}"]), say=lambda line: None) == 0
    assert [row["condition"] for row in committed(open_store(tmp_path / "runs", "arrays")).to_pylist()] == ["before"]
    assert {array.condition for array in results.arrays(tmp_path / "runs", "arrays")} == {"after"}
