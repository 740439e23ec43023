"""A study run, resumed, extended and merged, in this process."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import models
from harness.draw import Draw
from harness.local import run_manifest
from harness.planning.pack import scored_sets
from harness.prepare import store_uri
from harness.run import run
from harness.study.load import load
from harness.training.evaluate import score
from results.errors import DamagedFile, StoreError
from results.store.manifest import newest_manifest
from results.store.merge import merge
from results.store.tables import commit, committed, open_store, read, read_files, table_files
from tests.environments import without
from tests.harness.killed import out_of_memory, without_report
from tests.harness.tiny import files, tables, write_study

ROOT = Path(__file__).parents[2]


@pytest.fixture
def study(tmp_path, monkeypatch):
    without_report(monkeypatch)
    path = write_study(tmp_path)

    def start(*overrides, store="runs"):
        return run(load(path, [f"store={tmp_path / store}", *overrides]), say=lambda text: None)

    return start


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The study with its report, trained once."""
    folder = tmp_path_factory.mktemp("trained")
    assert run(load(write_study(folder), [f"store={folder / 'whole'}"]), say=lambda text: None) == 0
    return folder / "whole"


@pytest.fixture
def whole(trained, tmp_path):
    """A copy that a test may change."""
    return shutil.copytree(trained, tmp_path / "whole")


def test_a_study_ends_with_every_row_and_a_report(whole):
    rows = committed(open_store(whole, "tiny")).to_pylist()
    assert [sum(row["condition"] == name for row in rows) for name in ("transformer", "lstm")] == [4, 4]
    assert (whole / "tiny" / "report" / "index.html").stat().st_size > 10_000
    sets = {(row["set"], row["step"]) for row in read(open_store(whole, "tiny"), "evaluations").to_pylist()}
    assert sets == {("sparse", 40), ("dense", 40), ("online", 20), ("online", 40)}
    assert not (whole / "tiny" / "checkpoints").exists() or not any((whole / "tiny" / "checkpoints").rglob("*.safetensors"))


def test_running_again_trains_nothing(study, whole):
    before = files(whole)
    assert study(store="whole") == 0
    assert files(whole) == before


def test_rows_without_a_manifest_become_a_study_by_running_it(study, whole):
    """Rows of a machine that wrote none, or whose manifests were lost, are all that was asked for."""
    shutil.rmtree(whole / "tiny" / "manifests")
    before = tables(whole)
    assert study(store="whole") == 0
    assert tables(whole) == before
    assert newest_manifest(open_store(str(whole), "tiny")) is not None


def test_a_manifest_that_someone_edited_is_refused_until_a_run_has_written_its_plan_anew(study, whole):
    at = open_store(str(whole), "tiny")
    path = next((whole / "tiny" / "manifests").iterdir())
    before = tables(whole)
    path.write_bytes(path.read_bytes().replace(b'"sequences": ', b'"sequences": 1'))
    with pytest.raises(
        DamagedFile, match=r"\.yaml is not what was written, since its name is not the digest of its bytes: .* delete"
    ):
        newest_manifest(at)
    path.unlink()
    assert study(store="whole") == 0
    assert newest_manifest(at) is not None
    assert tables(whole) == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("question: Does a tiny model learn?", "question: Why not?"),
        ("card: F2", "card: F3"),
        ("wandb: off", "wandb: off\nclaims: {PD-R3: {value: 0.9}}"),
        ("wandb: off", "wandb: off\nreductions: [fewer replicates]"),
        ("wandb: off", "wandb: off\nscale: small\nscales: {small: {}}"),
        ("lstm: {model", "small: {model"),
    ],
)
def test_a_finished_study_that_is_described_anew_has_a_new_manifest(tmp_path, whole, monkeypatch, old, new):
    without_report(monkeypatch)
    path = Path(write_study(tmp_path))
    path.write_text(path.read_text().replace(old, new))
    manifests, before = whole / "tiny" / "manifests", tables(whole)
    for _ in range(2):
        assert run(load(path, [f"store={whole}"]), say=lambda text: None) == 0
        assert len(list(manifests.iterdir())) == 2
    assert tables(whole) == before


def test_what_two_drivers_trained_apart_is_reported_together(study, tmp_path):
    """The last run trains nothing: the newest manifest would be the last driver's, with half of what was asked for."""
    for only in ("only=[lstm]", "only=[transformer]"):
        assert study(only) == 0
    before = tables(tmp_path / "runs")
    assert study() == 0
    assert tables(tmp_path / "runs") == before
    store = open_store(tmp_path / "runs", "tiny")
    assert [condition["name"] for condition in newest_manifest(store)[1]["conditions"]] == ["transformer", "lstm"]
    assert {entry[0] for entry in newest_manifest(store)[1]["replicates"]} == set(committed(store)["key"].to_pylist())


@pytest.mark.parametrize("executor", ["run", "manifest"])
def test_replicates_whose_evaluations_are_gone_are_trained_again(study, whole, executor):
    before = tables(whole)
    for path in (whole / "tiny" / "evaluations").glob("*.parquet"):
        path.unlink()
    if executor == "run":
        assert study(store="whole") == 0
    else:
        assert run_manifest(next((whole / "tiny" / "manifests").iterdir()), str(whole), "cpu") == 0
    assert tables(whole) == before


def test_more_replicates_train_only_the_new_ones_and_change_no_file(study, whole):
    before = files(whole)
    assert study("replicates=6", store="whole") == 0
    after = files(whole)
    assert {name: after[name] for name in before} == before
    assert committed(open_store(whole, "tiny")).num_rows == 12


def test_pack_size_changes_no_row(study, whole, tmp_path):
    assert study("pack.size=3", store="other") == 0
    assert tables(tmp_path / "other") == tables(whole)


def test_stores_with_overlapping_packs_read_and_merge_as_one(study, whole, tmp_path):
    study("replicates=3", "pack.size=3", store="a")
    study("replicates=4", "pack.size=4", store="b")
    a, b = (open_store(tmp_path / name, "tiny") for name in "ab")
    merge(a, [b])
    assert len(read_files(a, "replicates", table_files(a, "replicates"))) > 8  # both copies lie there …
    assert tables(tmp_path / "a") == tables(whole)  # … and read as one


def test_a_set_added_later_is_scored_and_wins(study, whole):
    assert study("evaluate.sets.extra={p_ignore: 0.5, sequences: 30}", store="whole") == 0
    rows = read(open_store(whole, "tiny"), "evaluations").to_pylist()
    assert sum(row["set"] == "extra" and row["metric"] == "read" for row in rows) == 8
    assert sum(row["set"] == "sparse" and row["metric"] == "read" for row in rows) == 8


def test_kept_weights_give_the_committed_errors_and_a_tail_keeps_the_worst(study, tmp_path):
    assert study("keep=all") == 0
    store = open_store(tmp_path / "runs", "tiny")
    kept = sorted((tmp_path / "runs" / "artifacts").rglob("*.safetensors"))
    rows = {row["key"]: row for row in committed(store).to_pylist()}
    assert {path.parts[-3] for path in kept} == set(rows)
    scores = read(store, "evaluations").to_pylist()
    row = next(row for row in rows.values() if row["condition"] == "lstm")
    model = models.build("lstm", Draw(torch.tensor([99]), "init"), vocabulary=5, length=16, width=8)
    weights = load_file(tmp_path / "runs" / "artifacts" / row["key"] / "0" / "40.safetensors")
    model.load_state_dict({name: value[None] for name, value in weights.items()})
    loaded = load(write_study(tmp_path))
    condition = next(each for each in loaded.conditions if each.name == "lstm")
    for scored in scored_sets(loaded, condition):
        ((found, number),) = score(model, [scored], torch.device("cpu"), "fp32")
        again = found.evaluation_rows(number, False)[0]
        then = next(s for s in scores if (s["key"], s["set"], s["metric"], s["step"]) == (row["key"], scored.name, "read", 40))
        assert (again["errors"], again["count"]) == (then["errors"], then["count"])
    assert study("keep=tail(1)") == 0
    left = {path.parts[-3] for path in (tmp_path / "runs" / "artifacts").rglob("*.safetensors")}
    assert len(left) == 2
    for name in ("transformer", "lstm"):
        worst = {
            key: max(s["errors"] / s["count"] for s in scores if s["key"] == key and s["metric"] == "read" and s["step"] == 40)
            for key, row in rows.items()
            if row["condition"] == name
        }
        assert max(worst.values()) == max(worst[key] for key in left & set(worst))


def test_a_tail_leaves_what_another_study_of_the_store_needs(study, tmp_path, capsys):
    kept = tmp_path / "runs" / "artifacts"
    assert study("keep=all", "name=other", "replicates=2", "only=[lstm]") == 0
    theirs = {path.parts[-3] for path in kept.rglob("*.safetensors")}
    assert study("keep=tail(1)", "only=[lstm]") == 0
    left = {path.parts[-3] for path in kept.rglob("*.safetensors")}
    assert theirs <= left
    assert len(left) <= len(theirs) + 1
    (manifest,) = (tmp_path / "runs" / "other" / "manifests").glob("*.yaml")
    manifest.write_text("{")
    assert study("keep=tail(1)", "only=[lstm]") == 0
    assert {path.parts[-3] for path in kept.rglob("*.safetensors")} == left


def test_a_tail_looks_only_at_the_replicates_of_the_run(study, tmp_path):
    """Drivers with different `only` share a store, and each may still need what it has kept."""
    kept = tmp_path / "runs" / "artifacts"
    assert study("keep=all") == 0
    assert study("keep=tail(1)", "only=[lstm]") == 0
    assert len({path.parts[-3] for path in kept.rglob("*.safetensors")}) == 4 + 1


def test_a_tail_leaves_no_step_of_the_others(study, tmp_path):
    assert study("keep=steps(0, 10)", "only=[lstm]") == 0
    kept = [path.parts[-3] for path in (tmp_path / "runs" / "artifacts").rglob("*.safetensors")]
    assert sorted(kept.count(key) for key in set(kept)) == [3, 3, 3, 3]
    assert study("keep=tail(1)", "only=[lstm]") == 0
    left = [path.parts[-3] for path in (tmp_path / "runs" / "artifacts").rglob("*.safetensors")]
    assert len(left) == 3
    assert len(set(left)) == 1


def test_a_pack_that_raises_is_recorded_and_the_study_goes_on(study, tmp_path, monkeypatch):
    from models.lstm import Recurrent

    def broken(*_):
        raise ArithmeticError("planted")

    with monkeypatch.context() as patch:
        patch.setattr(Recurrent, "_logits", broken)
        patch.setattr("harness.prepare._measure", _fixed_rates)
        assert study() == 1
    store = open_store(tmp_path / "runs", "tiny")
    failures = read(store, "failures").to_pylist()
    assert {row["exception"] for row in failures} == {"ArithmeticError: planted"}
    assert "broken" in failures[0]["traceback"]
    assert {row["condition"] for row in committed(store).to_pylist()} == {"transformer"}
    assert study() == 1  # failed keys wait for `manyseeds retry`
    assert committed(store).num_rows == 4
    path = write_study(tmp_path)
    assert run(load(path, [f"store={tmp_path / 'runs'}"]), say=lambda text: None, retry=True) == 0
    assert committed(store).num_rows == 8


def _fixed_rates(study, first, *_):
    from harness.planning.throughput import Rate

    return {pack.signature: Rate(2, 0.01, 0.0) for pack in first.packs}


def test_a_pack_out_of_memory_is_split_and_finished(study, whole, tmp_path, monkeypatch):
    out_of_memory(monkeypatch)
    assert study() == 0
    assert tables(tmp_path / "runs") == tables(whole)


def test_a_store_that_refuses_a_commit_leaves_the_pack_to_be_planned_again(study, tmp_path, monkeypatch):
    from harness.executing import run_pack as execute
    from harness.machine import store_retry as patience

    def full(store, pack, tables):
        if "failures" in tables:
            return commit(store, pack, tables)
        raise StoreError("/runs can't be written (No space left on device); nothing of it was committed")

    with monkeypatch.context() as patch:
        patch.setattr(execute, "commit", full)
        patch.setattr(patience, "PATIENCE_S", 0)
        assert study() == 1
    store = open_store(tmp_path / "runs", "tiny")
    assert committed(store).num_rows == read(store, "failures").num_rows == 0
    assert study() == 0


def test_an_evaluation_set_redefined_under_its_name_is_refused(study, whole):
    before = files(whole)
    with pytest.raises(ValueError, match="evaluation set 'sparse' of the study tiny"):
        study("evaluate.sets.sparse.p_ignore=0.9", store="whole")
    assert files(whole) == before


def test_a_relative_store_in_a_job_is_refused(monkeypatch):
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", "{}")
    with pytest.raises(ValueError, match=r"store=runs is relative.*s3://bucket/runs"):
        store_uri("runs")
    with pytest.raises(ValueError, match=r"store=\./runs2 is relative.*s3://bucket/runs2$"):
        store_uri("./runs2")
    assert store_uri("s3://bucket/runs") == "s3://bucket/runs"
    assert store_uri("/shared/runs") == "/shared/runs"


@pytest.mark.parametrize("content", [b"PAR1 but torn", b"not parquet at all"])
def test_a_foreign_or_truncated_file_in_the_store_is_named(study, whole, content):
    (whole / "tiny" / "replicates" / "foreign.parquet").write_bytes(content)
    with pytest.raises(ValueError, match=r"foreign\.parquet"):
        study(store="whole")


def test_torch_numpy_pyarrow_and_safetensors_train_a_manifest(study, whole, tmp_path):
    """As `python -m harness.local` on a bare machine does."""
    manifest = next((whole / "tiny" / "manifests").glob("*.yaml"))
    code = without("ray wandb omegaconf yaml scipy matplotlib jinja2 click rich".split(), "harness.local")
    done = subprocess.run([sys.executable, "-c", code, manifest, tmp_path / "bare"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert tables(tmp_path / "bare") == tables(whole)
    again = subprocess.run([sys.executable, "-c", code, manifest, tmp_path / "bare"], cwd=ROOT, capture_output=True, text=True)
    assert "0 of 8 replicates" in again.stdout


def test_a_manifest_is_json_and_says_what_ran(whole):
    content = json.loads(next((whole / "tiny" / "manifests").glob("*.yaml")).read_text())
    assert content["study"] == "tiny"
    assert len(content["replicates"]) == 8
    assert content["versions"]["torch"]
