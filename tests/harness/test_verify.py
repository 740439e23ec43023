"""Flipped bits: every one shows in `manyseeds verify`, a reader passes none on as data, and a run goes on from what is whole."""

import contextlib
import json
import os
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import harness.training.checkpoint as checkpoint
from harness.training import weights as artifacts
from harness.training.pack_state import Training
from harness.training.train import train
from launch.cli import main
from results.errors import DamagedFile
from results.store.manifest import newest_manifest, write_manifest
from results.store.parquet import read_file, serialise
from results.store.schema import SCHEMAS
from results.store.seal import BLANK
from results.store.tables import Store, commit, open_store, read, write_bytes
from results.store.verify import state_of, verify
from tests.harness.packs import condition, pack
from tests.results.store.sample_rows import commit_pack, manifest, pack_tables

CPU = torch.device("cpu")
KEY = "a" * 32
PLAN = json.dumps(manifest({})).encode()


@pytest.fixture
def full(tmp_path) -> Store:
    """A store with a file of every kind."""
    at = open_store(tmp_path, "study")
    commit_pack(at, "fd-1", [KEY, "b"])
    write_manifest(at, PLAN)
    checkpoint.write(at, "fd-2", 5, {"w": torch.arange(2000.0)}, {"step": 5})
    one = pack(condition(), [(1, 1)])
    weights = artifacts.content(one, Training(one, CPU).model, 0)
    os.makedirs(Path(artifacts.path(at, KEY, 0, 200)).parent)
    Path(artifacts.path(at, KEY, 0, 200)).write_bytes(weights)
    return at


def _paths(at: Store) -> dict[str, Path]:
    found = {
        table: Path(at.path(table, "fd-1.parquet")) for table in ("replicates", "evaluations", "profiles", "curves", "probes")
    }
    found["manifests"] = next(Path(at.path("manifests")).iterdir())
    found["checkpoints"] = Path(at.path("checkpoints/fd-2/5.safetensors"))
    return found | {"artifacts": Path(artifacts.path(at, KEY, 0, 200))}


def _flipped(data: bytes, bit: int) -> bytes:
    changed = np.frombuffer(data, np.uint8).copy()
    changed[bit // 8] ^= 1 << bit % 8
    return changed.tobytes()


def test_of_two_thousand_flips_in_each_kind_of_file_and_all_in_its_digest_none_is_unnoticed(full):
    rng = random.Random(0)
    for kind, path in _paths(full).items():
        data = path.read_bytes()
        assert state_of(kind, path.name, data) == "whole"
        bits = [rng.randrange(8 * len(data)) for _ in range(2000)]
        start = data.find(BLANK[:17].encode())
        bits += range(8 * start, 8 * (start + len(BLANK))) if start >= 0 else ()
        assert [bit for bit in bits if state_of(kind, path.name, _flipped(data, bit)) != "damaged"] == [], kind


def test_no_flip_in_a_table_is_read_as_data(full):
    rng, path = random.Random(1), _paths(full)["evaluations"]
    data, whole = path.read_bytes(), read(full, "evaluations")
    unharmed = 0
    for _ in range(200):
        path.write_bytes(_flipped(data, rng.randrange(8 * len(data))))
        with contextlib.suppress(DamagedFile):  # a file holds its rows twice, and readers need one of the two
            assert read(full, "evaluations").equals(whole)
            unharmed += 1
    assert 0 < unharmed < 200


def test_pages_of_a_file_too_large_to_check_whole_are_checked(tmp_path, monkeypatch):
    monkeypatch.setattr("results.store.parquet._WHOLE", 0)
    at, rng = open_store(tmp_path, "study"), random.Random(2)
    row = {"key": "a", "stage": 0, "pack": "fd-1", "metric": "loss"}
    rows = pa.Table.from_pylist([row | {"step": step, "value": rng.random()} for step in range(5000)], SCHEMAS["curves"])
    data, where = serialise(rows), at.path("curves/fd-1.parquet")
    column = pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(0).column(rows.column_names.index("value"))
    write_bytes(at, "curves/fd-1.parquet", data)
    assert read_file(at.filesystem, where, "curves", rows.column_names).cast(rows.schema).equals(rows)
    first = column.dictionary_page_offset + 100  # beyond the header of the first page, which no checksum covers
    for _ in range(200):
        Path(where).write_bytes(_flipped(data, rng.randrange(8 * first, 8 * (first + 20_000))))
        with pytest.raises(DamagedFile, match="can't be read"):
            read_file(at.filesystem, where, "curves", rows.column_names)


@pytest.mark.parametrize("kind", ["evaluations", "probes", "manifests", "checkpoints", "artifacts"])
def test_verify_names_the_damaged_file_with_what_to_do(full, kind, capsys):
    arguments = ["verify", full.root, full.study]
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 0
    assert "study: 9 files, nothing damaged" in capsys.readouterr().out
    path = _paths(full)[kind]
    path.write_bytes(_flipped(path.read_bytes(), 99))
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    said = capsys.readouterr().out
    assert ended.value.code == 1
    assert f"{path} is damaged: delete it" in said
    if kind == "evaluations":
        assert "delete it and replicates/fd-1.parquet, and run the study again" in said


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")])
@pytest.mark.parametrize("kind", ["evaluations", "manifests"])
def test_a_pipe_a_device_and_a_folder_are_no_files_of_a_store(full, kind, make):
    path = _paths(full)["evaluations"] if kind == "evaluations" else next(Path(full.path("manifests")).glob("*.yaml"))
    path.unlink()
    make(path)
    with pytest.raises(DamagedFile, match="move it out of the store"):
        read(full, "evaluations") if kind == "evaluations" else newest_manifest(full)
    assert [what for what, _ in verify(full).damage if "is damaged" in what] == [f"{path} is damaged"]


def test_verify_ends_with_2_where_there_is_no_store(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["verify", str(tmp_path / "none")])
    assert ended.value.code == 2
    assert "there is no study" in capsys.readouterr().err


def test_files_of_an_older_version_are_read_and_said_to_have_no_digest(full):
    path = _paths(full)["curves"]
    before = read(full, "curves")
    data = path.read_bytes().replace(b"manyseeds-sha256=", b"=" * 17).replace(b"=sha256-manyseeds", b"=" * 17)
    path.write_bytes(data)
    assert read(full, "curves").equals(before)
    found = verify(full)
    assert (found.unsealed, found.damage) == (1, [])
    assert found.example == str(path)
    path.write_bytes(data[: len(data) // 2])
    assert [what for what, _ in verify(full).damage] == [f"{path} is damaged"]


def test_evaluations_that_are_gone_are_told(full):
    _paths(full)["evaluations"].unlink()
    [(what, cure)] = verify(full).damage
    assert "2 committed replicates lack rows of evaluation sets, such as aaaa" in what
    assert cure == "run the study again, which trains them anew"


def test_damaged_weights_are_refused_by_their_readers(full):
    path = _paths(full)["artifacts"]
    path.write_bytes(_flipped(path.read_bytes(), 8 * path.stat().st_size - 1))
    with pytest.raises(
        DamagedFile,
        match=rf"200\.safetensors is damaged: delete it, and manyseeds rerun {full.shell_word} aaaaaaaaaaaa --keep weights",
    ):
        artifacts.data(full, KEY, 0, 200)


# resuming


def _numbers(tables):
    return {name: sorted(map(repr, tables[name].to_pylist())) for name in ("evaluations", "profiles", "curves")}


def _saved(one, at, steps):
    state = Training(one, CPU)
    while state.step < max(steps):
        state.advance()
        state.record()
        if state.step in steps:
            state.save(at)


def test_a_damaged_checkpoint_is_passed_over_for_the_one_before_and_said(tmp_path):
    one, at = pack(condition(), [(1, 1), (2, 2)]), open_store(tmp_path, "study")
    expected = _numbers(train(one, open_store(tmp_path / "undisturbed", "study"), CPU))
    _saved(one, at, (2, 4, 6))
    assert checkpoint.steps(at, one.id) == [4, 6]
    newest = Path(at.path(f"checkpoints/{one.id}/6.safetensors"))
    newest.write_bytes(_flipped(newest.read_bytes(), 8 * newest.stat().st_size - 3))  # a number, not the header
    reached, said = [], []
    assert _numbers(train(one, at, CPU, reached.append, say=said.append)) == expected
    assert reached[0] == 5
    assert said == [
        f"the checkpoint of step 6 of pack {one.id} is removed: it is damaged, or another version wrote it; "
        "training goes on from an earlier step"
    ]


@pytest.mark.parametrize("other", ["replicates", "shapes"])
def test_a_whole_checkpoint_of_another_pack_is_passed_over(tmp_path, other):
    at = open_store(tmp_path, "study")
    one = pack(condition(), [(1, 1), (2, 2)])
    stranger = pack(condition(), [(3, 3), (4, 4)]) if other == "replicates" else pack(condition("lstm"), [(1, 1)])
    _saved(one, at, (4,))
    _saved(stranger, at, (8,))
    os.rename(at.path(f"checkpoints/{stranger.id}/8.safetensors"), at.path(f"checkpoints/{one.id}/8.safetensors"))
    reached, said = [], []
    train(one, at, CPU, reached.append, say=said.append)
    assert reached[0] == 5
    assert "is removed: it is of other replicates" in said[0]
    assert not read(at, "failures").num_rows


def test_tables_that_are_committed_carry_a_digest_after_compaction_and_merge_too(full, tmp_path):
    from results.store.merge import compact, merge

    compact(full)
    other = open_store(tmp_path / "other", "study")
    merge(other, [full])
    commit(other, "fd-9", pack_tables("fd-9", ["x"]))
    for at in (full, other):
        assert (verify(at).unsealed, verify(at).damage) == (0, [])
