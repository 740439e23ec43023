"""Stages: a chain is bitwise the same alone, in any pack and after a kill in any stage; its labels are its parent's greedy answers."""

import gc
import json
import os
import subprocess
import sys
import weakref
from pathlib import Path

import pyarrow.compute as pc
import pytest
import torch
from safetensors.torch import load

import harness.executing.run_pack
import harness.local
import harness.planning.throughput
import harness.run
import harness.training.train
from harness.draw import Draw
from harness.exchange.weights import single
from harness.planning.manifest import build, plan_of, read, to_bytes
from harness.planning.pack import resolve
from harness.planning.plan import plan, replicates_of
from harness.replicates.rerun import rerun
from harness.run import run
from harness.study import load as study
from harness.training import self_labels as parents
from harness.training import weights as artifacts
from harness.training.pack_state import Training
from results.progress.status import show_status
from results.store.manifest import newest_manifest
from results.store.schema import LABELS_RIGHT
from results.store.tables import committed, list_names, open_store
from results.store.tables import read as rows_of
from tests.harness.chained import write_study
from tests.harness.killed import killed, without_report
from tests.harness.tiny import tables

CPU = torch.device("cpu")
ROOT = Path(__file__).parents[3]


def _run(folder, name="store", *words):
    store = str(folder / name)
    status = run(study.load(write_study(folder), [f"store={store}", *words]), lambda line: None)
    return status, store


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    status, store = _run(folder)
    assert status == 0
    return folder, store


@pytest.fixture
def no_report(monkeypatch):
    without_report(monkeypatch)


def test_a_pool_that_a_model_labelled_says_how_much_of_it_is_right(whole):
    """The last step of the stage with a pool, and no other: fresh strings are labelled as they are drawn."""
    store = open_store(whole[1], "chained")
    rows = rows_of(store, "curves", filter=pc.field("metric") == LABELS_RIGHT).to_pylist()
    pooled = {row["key"] for row in committed(store).to_pylist() if row["condition"] == "cold" and row["stage"] == 1}
    assert {row["key"] for row in rows} == pooled
    assert len(rows) == len(pooled) == 3
    assert all(row["step"] == 30 and 24 * row["value"] == pytest.approx(round(24 * row["value"])) for row in rows)


def test_a_row_names_its_parent_and_the_arms_share_their_first_stage(whole):
    _, store = whole
    rows = {row["key"]: row for row in committed(open_store(store, "chained")).to_pylist()}
    assert sorted(row["stage"] for row in rows.values()) == [0] * 3 + [1] * 6 + [2] * 3
    for row in rows.values():
        if row["stage"]:
            parent = rows[row["parent_key"]]
            found = [parent[name] for name in ("stage", "init_seed", "data_seed", "steps")]
            assert found == [row["stage"] - 1, row["init_seed"], row["data_seed"], row["parent_step"]]
        else:
            assert row["parent_key"] is row["parent_step"] is None
    firsts = {row["parent_key"] for row in rows.values() if row["stage"] == 1}
    assert firsts == {row["key"] for row in rows.values() if not row["stage"]}


@pytest.mark.parametrize("size", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_the_pack_changes_no_bit(whole, no_report, tmp_path, size):
    status, store = _run(tmp_path, "store", f"pack.size={size}")
    assert status == 0
    assert tables(store, "chained") == tables(whole[1], "chained")


@pytest.mark.parametrize("stage", [*(pytest.param(stage, marks=pytest.mark.slow) for stage in (0, 2)), 1])
def test_a_kill_in_any_stage_changes_no_bit(whole, no_report, tmp_path, monkeypatch, stage):
    with killed(monkeypatch, lambda training: (training.pack.stage, training.step) == (stage, 7)) as seen:
        _run(tmp_path)
    store = open_store(str(tmp_path / "store"), "chained")
    assert list_names(store, f"checkpoints/{seen[0]}")[-1] == "7.safetensors"
    assert set(committed(store)["stage"].to_pylist()) == set(range(stage))
    status, where = _run(tmp_path)
    assert status == 0
    assert tables(where, "chained") == tables(whole[1], "chained")


def _packs(folder, store, stage):
    """The packs of a stage as they would be trained from the start."""
    planned = study.load(write_study(folder), ["pack.size=3"])
    everything = plan(planned, None, 3, numerics={})
    return [pack for pack in resolve(everything, {}, {}) if pack.stage == stage]


def test_labels_are_the_greedy_answers_of_the_parents_weights(whole):
    """Against word-by-word decoding of one replicate's model, of fresh strings and of a pool's."""
    folder, root = whole
    store = open_store(root, "chained")
    for pack in _packs(folder, store, 1):
        training = Training(pack, CPU, parents.read(store, pack))
        pool = pack.replicates[0].condition.train.pool
        for slot, replicate in enumerate(pack.replicates):
            task = replicate.condition.task
            kept = load(artifacts.data(store, replicate.parent, 0, 30))
            model = single(replicate.condition.model, task.vocabulary, task.tokens, kept)
            seed = parents.seeds_at(torch.tensor([replicate.data_seed]), 1, 1)
            if pool:
                rows = training.feed._pool_rows(3, 1)[slot]
                prompt = task.sentences(Draw(seed, "pool"), pool)[0][:, rows]
            else:
                prompt = task.sentences(Draw(seed, "data", 3), 8)[0]
            said = prompt[:, :, :0]
            for _ in range(task.length):
                asked = torch.cat([prompt, said], dim=2)
                said = torch.cat([said, model(asked)[:, :, -1:].argmax(-1)], dim=2)
            strings = training.feed.at(3)
            assert torch.equal(strings.inputs[slot], task.batch(prompt, said).inputs[0])
            assert torch.equal(strings.needed.targets[slot], said[0])


def test_weights_begin_where_the_parent_ended_or_fresh(whole):
    folder, root = whole
    store = open_store(root, "chained")
    warm, cold = _packs(folder, store, 1)
    given = parents.read(store, warm)
    for name, tensor in Training(warm, CPU, given).model.named_parameters():
        assert torch.equal(tensor, torch.stack([each[name] for each in given]))
    fresh = dict(Training(cold, CPU, parents.read(store, cold)).model.named_parameters())
    first = dict(Training(_packs(folder, store, 0)[0], CPU).model.named_parameters())
    assert not any(torch.equal(fresh[name], first[name]) for name in fresh if fresh[name].dim() > 2)


def test_a_training_with_labels_of_its_parent_is_freed_at_once(whole):
    """Not by the garbage collector, which would come in the midst of the next pack or of a graph's capture."""
    folder, root = whole
    store = open_store(root, "chained")
    pack = _packs(folder, store, 1)[0]
    gc.collect()
    gc.disable()
    try:
        training = Training(pack, CPU, parents.read(store, pack))
        training.advance()
        gone = weakref.ref(training)
        del training
        assert gone() is None
    finally:
        gc.enable()


def test_a_stage_that_fails_leaves_its_later_ones_out_until_it_is_retried(whole, no_report, tmp_path, monkeypatch):
    advance = Training.advance

    def failing(training):
        if training.pack.stage == 0 and training.pack.replicates[0].init_seed == 2:
            raise ArithmeticError("no")
        advance(training)

    with monkeypatch.context() as patched:
        patched.setattr(Training, "advance", failing)
        status, root = _run(tmp_path)
    assert status == 1
    store = open_store(root, "chained")
    assert sorted(committed(store)["init_seed"].to_pylist()) == [0] * 4 + [1] * 4
    said: list[str] = []
    loaded = study.load(write_study(tmp_path), [f"store={root}"])
    assert run(loaded, said.append) == 1
    assert any("4 failed before and are left out: manyseeds retry plans them again" in line for line in said)
    assert run(loaded, lambda line: None, retry=True) == 0
    assert tables(root, "chained") == tables(whole[1], "chained")


def test_nothing_follows_a_parent_that_diverged(no_report, tmp_path):
    status, root = _run(tmp_path, "store", "train.lr=1e30", "replicates=1")
    assert status == 0
    rows = committed(open_store(root, "chained")).to_pylist()
    assert {row["status"] for row in rows} == {"diverged"}
    assert {row["diverged_at"] for row in rows if row["stage"]} == {0}


def test_weights_that_a_stage_needs_are_kept_or_missed_in_one_sentence(whole, no_report, tmp_path):
    status, root = _run(tmp_path, "store", "only=[warm]", "conditions.warm.stages=null")
    assert status == 0
    with pytest.raises(ValueError, match=rf"^3 replicates .*weights .* manyseeds rerun {root} [0-9a-f]{{8}} --keep weights"):
        _run(tmp_path)
    for key in committed(open_store(root, "chained"))["key"].to_pylist():
        assert rerun(open_store(root, "chained"), key, keep=True, device="cpu").agrees
    assert _run(tmp_path)[0] == 0
    assert tables(root, "chained") == tables(whole[1], "chained")
    kept = [Path(root) / "artifacts" / row["key"] for row in committed(open_store(root, "chained")).to_pylist()]
    assert sum(path.exists() for path in kept) == 6  # three of the first stage, three of the second of warm


def test_a_tail_of_weights_spares_what_stages_began_from(no_report, tmp_path):
    _, root = _run(tmp_path, "store", "keep=tail(1)")
    rows = committed(open_store(root, "chained")).to_pylist()
    parent = {row["parent_key"] for row in rows}
    ends = [(Path(root) / "artifacts" / row["key"]).exists() for row in rows if row["key"] not in parent]
    kept = [list((Path(root) / "artifacts" / row["key"]).glob("*/*.safetensors")) for row in rows]
    assert all(kept[index] for index, row in enumerate(rows) if row["key"] in parent)
    assert len(ends) == 6
    assert sum(bool(files) for files, row in zip(kept, rows, strict=True) if row["key"] not in parent) == 2


def test_a_later_stage_is_trained_again_alone(whole):
    _, root = whole
    store = open_store(root, "chained")
    for row in committed(store).to_pylist():
        if row["stage"] and row["init_seed"] == 1:
            found = rerun(store, row["key"], device="cpu")
            assert found.agrees
            assert found.differing == ()


def test_a_manifest_carries_its_chains_to_a_bare_machine(whole, no_report, tmp_path):
    manifest = newest_manifest(open_store(whole[1], "chained"))[1]
    assert plan_of(manifest).replicates == replicates_of(study.load(write_study(tmp_path)).conditions)
    fresh = plan(study.load(write_study(tmp_path)), None, 2, numerics=manifest["numerics"])
    path = tmp_path / "manifest.yaml"
    path.write_bytes(to_bytes(build(fresh, manifest["numerics"], {})))
    assert plan_of(read(path.read_bytes())).packs == fresh.packs
    assert harness.local.run_manifest(path, str(tmp_path / "bare"), "cpu") == 0
    assert tables(tmp_path / "bare", "chained") == tables(whole[1], "chained")


def test_the_report_and_status_name_the_stages(whole):
    store = open_store(whole[1], "chained")
    found = (Path(whole[1]) / "chained" / "report" / "index.html").read_text()
    said: list[str] = []
    show_status(store, said.append)
    for name in ("warm", "warm, stage 1", "warm, stage 2", "cold, stage 1"):
        assert name in found
        assert f"  {name}: 3 of 3" in said


@pytest.mark.slow
def test_a_chain_on_a_cluster_of_two_nodes_equals_a_local_one(whole, tmp_path):
    """One replicate per pack on two slots: stages go on elsewhere than the stage before them, from the store alone."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    environment |= {"RAY_USAGE_STATS_ENABLED": "0", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.harness.training.chained_ray", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    moved, chained = json.loads(done.stdout.splitlines()[-1])
    assert chained == 9
    assert moved >= 1
    assert tables(tmp_path / "store", "chained") == tables(whole[1], "chained")
