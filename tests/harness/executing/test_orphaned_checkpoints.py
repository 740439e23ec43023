"""Checkpoints that a finished study leaves behind, where its packs became others on the way."""

import pytest

from harness.executing.leases import Leases
from harness.executing.orphaned_checkpoints import remove_orphans
from harness.prepare import executor_of, planned_manifest, prepare
from harness.run import run
from harness.study.load import load
from results.progress.snapshot import take
from results.store.manifest import newest_manifest
from results.store.tables import list_names, open_store, write_bytes
from tests.harness.killed import without_report
from tests.harness.tiny import STUDY, write_study


@pytest.fixture
def begun(tmp_path, monkeypatch):
    """A study in whose store two packs have a checkpoint, a function that runs it, and the ids of these packs."""
    without_report(monkeypatch)
    path = write_study(tmp_path)

    def study(*overrides):
        return load(path, [f"store={tmp_path / 'runs'}", "replicates=2", *overrides])

    prepared = prepare(study(), executor_of(study()))
    store = open_store(tmp_path / "runs", "tiny")
    write_bytes(store, "manifests/00.yaml", planned_manifest(prepared))
    ids = [pack.id for pack in prepared.plan.packs]
    for name in ids:
        write_bytes(store, f"checkpoints/{name}/0.safetensors", b"no state")
    return store, lambda *overrides: run(study(*overrides), say=lambda text: None), ids


def test_they_are_removed_once_other_packs_have_committed_their_replicates(begun):
    """Status went on calling them packs that run or wait."""
    store, start, (transformer, _) = begun
    assert start("pack.size=1", "only=[lstm]") == 0
    assert list_names(store, "checkpoints") == [transformer]  # its replicates are to come
    assert start("pack.size=1") == 0
    assert list_names(store, "checkpoints") == []


def test_they_stay_while_another_driver_works(begun):
    store, start, ids = begun
    other = Leases(store, holder="elsewhere:-:1:0")
    assert other.take("fd-0")
    assert start("pack.size=1") == 0
    assert sorted(list_names(store, "checkpoints")) == sorted(ids)
    assert take(store, newest_manifest(store)[1]).packs.in_flight == 0


def test_a_pack_that_scores_one_set_more_is_not_finished_by_rows_of_fewer(begun, tmp_path):
    store, _, ids = begun
    path = tmp_path / "fewer_sets.yaml"
    path.write_text("\n".join(line for line in STUDY.splitlines() if "dense" not in line))
    assert run(load(path, [f"store={tmp_path / 'runs'}", "replicates=2", "pack.size=1"]), say=lambda text: None) == 0
    assert sorted(list_names(store, "checkpoints")) == sorted(ids)
    said = []
    remove_orphans(store, said.append)
    assert (sorted(list_names(store, "checkpoints")), said) == (sorted(ids), [])
