"""A committed replicate trained again: equal bit for bit, or a named difference and exit status 1; what is committed stays."""

import dataclasses
import sys

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
import pytest
import torch

from harness.exchange import export, load
from harness.replicates.compare_rows import disagreement
from harness.replicates.rerun import _differing, _equal, rerun
from harness.run import run
from harness.study.load import load as load_study
from harness.training import weights as artifacts
from launch.cli import main
from models.custom.custom import Custom
from models.lstm import Recurrent
from results.errors import StudyError
from results.store.schema import SCHEMAS
from results.store.tables import committed, open_store, read
from tests.harness.tiny import files, write_study

torch.set_num_threads(1)


def trained(folder, *overrides):
    words = [f"store={folder / 'runs'}", "train.steps=20", "device=cpu", *overrides]
    words += [] if "replicates=1" in overrides else ["replicates=2"]
    study = load_study(write_study(folder), words)
    assert run(study, say=lambda line: None) == 0
    return open_store(folder / "runs", "tiny")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("rerun"))


def status(*words):
    with pytest.raises(SystemExit) as raised:
        main([str(word) for word in words])
    return raised.value.code


@pytest.mark.parametrize("slot", [0, 1, 2, 3])
def test_a_replicate_of_a_pack_agrees_with_its_rows_alone(store, slot):
    key = sorted(committed(store)["key"].to_pylist())[slot]
    before = files(store.root)
    found = rerun(store, key[:10], device="cpu")
    assert found.agrees, found.message
    assert not found.differing
    assert found.kept is None
    assert "bit for bit" in found.message
    assert files(store.root) == before


def test_its_weights_are_those_that_the_study_would_have_kept(store, tmp_path, capsys):
    kept = trained(tmp_path, "keep=all")
    key = next(row["key"] for row in committed(store).to_pylist() if row["condition"] == "transformer")
    before = files(store.root)
    assert status("rerun", store.root, key[:12], "--keep", "weights", "--device", "cpu") == 0
    assert "weights are in" in capsys.readouterr().out
    with (
        kept.filesystem.open_input_stream(artifacts.path(kept, key, 0, 20)) as one,
        store.filesystem.open_input_stream(artifacts.path(store, key, 0, 20)) as other,
    ):
        assert _equal(one.read(), other.read(), key)
    assert files(store.root) == before
    export(store, key, "safetensors", tmp_path / "plain")
    assert load(tmp_path / "plain")[2]["key"] == key
    again = rerun(store, key, keep=True, device="cpu")
    assert again.agrees
    assert "are the same" in again.message


@pytest.mark.parametrize(
    ("sealed", "says"), [(True, "kept before are damaged: delete them"), (False, "kept before are others")]
)
def test_weights_that_were_changed_are_reported_and_left(tmp_path, sealed, says):
    store = trained(tmp_path, "keep=all", "replicates=1")
    key = committed(store)["key"][0].as_py()
    path = tmp_path / "runs" / "artifacts" / key / "0" / "20.safetensors"
    changed = path.read_bytes()[:-4] + b"\0\0\0\0"
    if not sealed:  # as of a version that wrote no digest
        changed = changed.replace(b"manyseeds-sha256=", b"=" * 17).replace(b"=sha256-manyseeds", b"=" * 17)
    path.write_bytes(changed)
    found = rerun(store, key, keep=True, device="cpu")
    assert not found.agrees
    assert says in found.message
    assert path.read_bytes() == changed


@pytest.mark.parametrize(
    ("table", "column", "change"),
    [("replicates", "loss", 1e-12), ("curves", "value", 1e-12), ("evaluations", "errors", 1), ("profiles", "errors", 1)],
)
def test_a_tampered_row_is_a_mismatch(tmp_path, capsys, table, column, change):
    store = trained(tmp_path, "replicates=1")
    key = next(row["key"] for row in committed(store).to_pylist() if row["condition"] == "lstm")
    for path in (tmp_path / "runs" / "tiny" / table).glob("*.parquet"):
        rows = pyarrow.parquet.read_table(path).to_pylist()
        if rows[0]["key"] == key:
            rows[-1][column] += change
            pyarrow.parquet.write_table(pa.Table.from_pylist(rows, SCHEMAS[table]), path)
    assert status("rerun", store.root, key, "--keep", "weights", "--device", "cpu") == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert f"does not agree with its rows: {table}.{column} differs in 1 of" in error
    assert not (tmp_path / "runs" / "artifacts").exists()


def test_other_numerics_are_named_and_have_a_tolerance(store):
    row = next(each for each in committed(store).to_pylist() if each["pack_size"] == 2)
    plan = load_study(store.root.rsplit("/", 1)[0] + "/tiny.yaml").conditions[0]
    ours = {"device": "cpu", "precision": "bf16", "torch": "1"}
    assert _differing(ours | {"torch": "0"}, ours, row, plan) == (
        "torch is '1' and was '0'",
        "pack_size is 1 and was 2, in bf16 on cpu",
    )
    fp32 = ours | {"precision": "fp32"}
    assert _differing(fp32, fp32, row, plan) == ()
    (word,) = _differing(fp32, fp32, row, dataclasses.replace(plan, model=Custom("my_models:Net")))
    assert word == "a module of your own is alone and was in a pack of 2"
    (word,) = _differing(fp32 | {"device": "cuda"}, fp32 | {"device": "cuda"}, row | {"pack_size": 1}, plan)
    assert word == "no two trainings on cuda are known to be equal bit for bit"


def test_a_model_that_calls_sys_exit_is_told_of(store, monkeypatch):
    monkeypatch.setattr(Recurrent, "_logits", lambda *arguments: sys.exit(3))
    key = next(row["key"] for row in committed(store).to_pylist() if row["condition"] == "lstm")
    with pytest.raises(StudyError, match=r"^the training called sys.exit\(3\): raise an error instead"):
        rerun(store, key, device="cpu")


def test_a_tolerance_forgives_values_and_never_what_a_row_is(store):
    key = committed(store)["key"][0].as_py()
    rows = {
        name: read(store, name, filter=pc.field("key") == key) for name in ("replicates", "curves", "evaluations", "profiles")
    }
    assert disagreement(rows, rows, 0.0) == ""

    def changed(table, column, change):
        new = rows[table].to_pylist()
        new[0][column] = change(new[0][column])
        return rows | {table: pa.Table.from_pylist(new, SCHEMAS[table])}

    near = changed("replicates", "loss", lambda value: value * 1.005)
    assert "replicates.loss" in disagreement(rows, near, 0.0)
    assert disagreement(rows, near, 0.01) == ""
    assert "replicates.loss" in disagreement(rows, changed("replicates", "loss", lambda value: value * 1.02), 0.01)
    assert "evaluations.count" in disagreement(rows, changed("evaluations", "count", lambda value: value + 1), 0.01)
    assert "evaluations.errors" in disagreement(rows, changed("evaluations", "errors", lambda value: 0), 0.01)

    def errs(committed, again, reads):
        old = changed("evaluations", "errors", lambda value: committed)["evaluations"].to_pylist()
        new = changed("evaluations", "errors", lambda value: again)["evaluations"].to_pylist()
        old[0]["count"] = new[0]["count"] = reads
        tables = [rows | {"evaluations": pa.Table.from_pylist(each, SCHEMAS["evaluations"])} for each in (old, new)]
        return "evaluations.errors" not in disagreement(*tables, 0.01)

    assert errs(0, 1, 400_000)
    assert not errs(0, 2, 400_000), "a tenth of a percent of the reads, 400, is no bound on a rare error"
    assert errs(49, 56, 400_000)
    assert errs(49, 42, 400_000)
    assert not errs(49, 57, 400_000)
    assert errs(49, 50, 1_000)
    assert not errs(49, 51, 1_000), "of few reads a tenth of a percent is less than the sampling error"
    assert not errs(0, 1, 900)
    assert errs(200_000, 202_000, 400_000)
    assert not errs(200_000, 202_001, 400_000)
    fewer = rows | {"curves": rows["curves"].slice(1)}
    assert "1 rows of curves are not there again" in disagreement(rows, fewer, 0.01)
    assert "1 rows of curves are new" in disagreement(fewer, rows, 0.01)


def test_what_no_manifest_plans_is_refused_before_training(store, tmp_path):
    with pytest.raises(ValueError, match="no key of the 4 replicates"):
        rerun(store, "zz")
    other = trained(tmp_path, "replicates=1")
    for path in (tmp_path / "runs" / "tiny" / "manifests").iterdir():
        path.unlink()
    with pytest.raises(ValueError, match="bring the manifest"):
        rerun(other, committed(other)["key"][0].as_py())
