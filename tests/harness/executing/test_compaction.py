"""The end of a run: many small files become one a table, where no other driver works on the study."""

import json
import os
import shutil
import subprocess
import sys
import time

import pytest
import torch
from click.testing import CliRunner

from harness.executing import compaction
from harness.executing.dispatch import Dispatch
from harness.executing.leases import LEASE_S, Leases, _place
from harness.executing.progress import Progress
from harness.local import run_packs
from harness.machine.interrupt import Interrupt
from harness.planning import manifest
from harness.run import run
from harness.study.load import load
from launch.cli import cli
from results.errors import DamagedFile, StoreError
from results.store import merge
from results.store.manifest import manifest_of, write_manifest
from results.store.tables import open_store, table_files, write_bytes
from tests.harness.killed import without_report
from tests.harness.packs import condition, pack
from tests.harness.tiny import tables, write_study


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A study of four packs, with its files as they were committed."""
    folder = tmp_path_factory.mktemp("small")
    with pytest.MonkeyPatch.context() as patch:
        without_report(patch)
        assert run(load(write_study(folder), [f"store={folder / 'runs'}"]), say=lambda text: None) == 0
    return folder


@pytest.fixture
def many(small, tmp_path, monkeypatch):
    """A copy of it, in which four files are many."""
    monkeypatch.setattr(compaction, "MANY", 4)
    shutil.copytree(small / "runs", tmp_path / "runs")
    return open_store(tmp_path / "runs", "tiny")


def _said(store):
    lines = []
    compaction.compact_alone(store, lines.append)
    return lines


def _other(store, holder):
    write_bytes(store, "leases/fd-9.json", json.dumps({"holder": holder, "expires": time.time() + LEASE_S}).encode())


def test_a_small_study_is_left_as_it_is(small):
    at = open_store(small / "runs", "tiny")
    assert len(table_files(at, "replicates")) == 4
    assert _said(at) == []
    assert len(table_files(at, "replicates")) == 4


def test_a_run_ends_with_one_file_a_table_says_so_and_goes_on_from_there(small, tmp_path, monkeypatch):
    without_report(monkeypatch)
    monkeypatch.setattr(compaction, "MANY", 4)
    lines = []
    study = load(write_study(tmp_path), [f"store={tmp_path / 'runs'}"])
    assert run(study, say=lines.append) == 0
    said = [line for line in lines if line.startswith("compacted: ")]
    at = open_store(tmp_path / "runs", "tiny")
    kinds = [table for table in ("replicates", "evaluations", "profiles", "curves", "probes") if table_files(at, table)]
    assert said == [f"compacted: {4 * len(kinds)} files of the tables are now {len(kinds)}"]
    assert [len(table_files(at, table)) for table in kinds] == [1] * len(kinds)
    assert tables(tmp_path / "runs") == tables(small / "runs")
    again = []
    assert run(study, say=again.append) == 0  # nothing is missing, and nothing is compacted a second time
    assert "  to do: nothing" in again
    assert not [line for line in again if "compacted" in line]


def test_a_run_that_can_not_know_of_other_drivers_leaves_the_files(tmp_path, monkeypatch):
    without_report(monkeypatch)
    monkeypatch.setattr(compaction, "MANY", 4)
    study = load(write_study(tmp_path), [f"store={tmp_path / 'runs'}", "leases=off"])
    assert run(study, say=lambda text: None) == 0
    assert len(table_files(open_store(tmp_path / "runs", "tiny"), "replicates")) == 4


def test_a_driver_that_ends_while_another_works_leaves_the_files(many):
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        _other(many, f"{_place()}:{other.pid}:x")
        assert _said(many) == []
        assert len(table_files(many, "replicates")) == 4
    finally:
        other.kill()
        other.wait()
    assert len(_said(many)) == 1  # its process is gone
    assert len(table_files(many, "replicates")) == 1


def test_a_driver_of_another_machine_counts_until_its_lease_expires_and_the_drivers_own_do_not(many):
    _other(many, f"{_place()}:{os.getpid()}:x")
    assert compaction.other_drivers(many) is False
    _other(many, "far:1:7:x")
    assert _said(many) == []
    write_bytes(many, "leases/fd-9.json", b'{"holder": "far:1:7:x", "expires": 1.0}')
    assert len(_said(many)) == 1


def test_a_pack_whose_rows_were_compacted_is_not_trained_by_the_driver_that_waited_for_it(tmp_path, monkeypatch):
    """Two drivers, the first of which ends with the last pack of both."""
    store, mine = open_store(tmp_path, "tiny"), pack(condition("lstm"), [0, 1])
    cpu, progress = torch.device("cpu"), Progress([mine], {mine.id: 1.0}, 0, 2)
    first, never = Leases(store, holder="far:1:7:x"), lambda: False
    second = Dispatch([mine], store, progress, Leases(store), never)
    assert first.take(mine.id)
    assert second.next() is None
    assert [each.status for each in run_packs([mine], store, cpu, progress, Interrupt(), leases=False)] == ["committed"]
    first.close()
    merge.compact(store)
    monkeypatch.setattr("harness.executing.dispatch._LOOK_S", -1.0)
    assert second.next() is None
    assert [outcome.status for outcome in second.outcomes] == ["committed"]
    assert second.packs_left() == 0


def test_a_driver_killed_at_any_moment_of_it_loses_nothing_and_the_next_run_finishes(many, tmp_path, monkeypatch):
    """Raised before every write and every removal of a file."""
    before, died = tables(tmp_path / "runs"), 0
    kinds = sum(bool(table_files(many, table)) for table in ("replicates", "evaluations", "profiles", "curves", "probes"))
    operations = kinds + 4 * kinds
    for survived in range(operations):
        root = tmp_path / str(survived)
        shutil.copytree(tmp_path / "runs", root)
        at, done = open_store(root, "tiny"), []

        def dies(action, done=done, survived=survived):
            def acts(*arguments):
                if len(done) >= survived:
                    raise KeyboardInterrupt
                done.append(None)
                return action(*arguments)

            return acts

        with monkeypatch.context() as patch:
            patch.setattr(merge, "write_bytes", dies(merge.write_bytes))
            patch.setattr(merge, "delete", dies(merge.delete))
            with pytest.raises(KeyboardInterrupt):
                compaction.compact_alone(at, lambda text: None)
        died += 1
        assert tables(root) == before, survived
        compaction.compact_alone(at, lambda text: None)
        assert tables(root) == before, survived
        assert all(len(table_files(at, table)) < 4 for table in ("replicates", "evaluations", "curves")), survived
        shutil.rmtree(root)
    assert died == operations


def test_a_store_that_refuses_to_remove_files_is_told_of_and_the_run_goes_on(many, monkeypatch):
    def refuses(*arguments):
        raise StoreError("permission denied") from PermissionError()

    monkeypatch.setattr(merge, "delete", refuses)
    said = _said(many)
    assert len(said) == 1
    assert said[0].startswith("the tables' files are left as they are")


def test_compacting_moves_signatures_from_packs_to_conditions_and_the_manifest_plans_the_same(many):
    newest = manifest_of(many)
    planned = manifest.plan_of(newest)
    older = json.loads(manifest.to_bytes(newest))
    for pack_fields, of_plan in zip(older["packs"], planned.packs, strict=True):
        pack_fields["signature"] = of_plan.signature
    for entry in older["conditions"]:
        del entry["signature"]
    content = manifest.to_bytes(older)
    write_manifest(many, content)
    assert CliRunner().invoke(cli, ["compact", many.root, many.study]).exit_code == 0
    assert manifest_of(many) == newest
    assert manifest.plan_of(manifest_of(many)) == planned


def test_a_manifest_whose_conditions_have_packs_of_several_signatures_is_left_as_it_is(many):
    older = json.loads(manifest.to_bytes(manifest_of(many)))
    for index, pack_fields in enumerate(older["packs"]):
        pack_fields["signature"] = f"signature {index}"
    content = manifest.to_bytes(older)
    write_manifest(many, content)
    manifest.shorten(many)
    assert manifest_of(many) == older


def test_a_manifest_with_a_pack_of_no_replicate_is_refused(many):
    empty = json.loads(manifest.to_bytes(manifest_of(many)))
    empty["packs"][1]["replicates"] = []
    with pytest.raises(DamagedFile, match=r"packs\[1\] holds no replicate"):
        manifest.read(manifest.to_bytes(empty))
