"""Whole studies of teachers and students: the same bits in any pack and after a kill in any phase; what no teacher teaches."""

from pathlib import Path

import pytest
import torch

from harness.prepare import executor_of, prepare
from harness.probes.run import run as probe
from harness.replicates.rerun import rerun
from harness.replicates.rescore import parse, rescore
from harness.run import run
from harness.study import load as study
from results.store.tables import committed, list_names, open_store, read
from tests.harness.distilled import write_study
from tests.harness.killed import killed, without_report
from tests.harness.tiny import tables


def _run(folder, *words):
    store = str(folder / "store")
    return run(study.load(write_study(folder), [f"store={store}", *words]), lambda line: None), store


@pytest.fixture(autouse=True)
def no_report(monkeypatch):
    without_report(monkeypatch)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patched:
        without_report(patched)
        status, store = _run(folder)
    assert status == 0
    return store


def _rows(root):
    return committed(open_store(root, "distilled")).to_pylist()


def test_a_row_names_the_checkpoint_that_is_learnt_from_first(whole):
    rows = _rows(whole)
    teachers = {row["init_seed"]: row["key"] for row in rows if not row["stage"]}
    assert len(rows) == 15
    for row in rows:
        first = {"one_shot": [60], "slower": [60], "shared": [15], "risen": range(5, 60, 5)}
        if row["stage"]:
            assert row["parent_key"] == teachers[0 if row["condition"] == "shared" else row["init_seed"]]
            assert row["parent_step"] in first[row["condition"]]
            assert (row["status"], row["parameters"], row["steps"]) == ("finished", 8 * 8 + 8 + 8 * 2 + 2, 24)
    for key in teachers.values():
        kept = {int(path.stem) for path in (Path(whole) / "artifacts" / key / "0").glob("*.safetensors")}
        assert kept == set(range(5, 61, 5))


def test_the_plan_counts_the_bytes_of_the_checkpoints(whole, tmp_path):
    loaded = study.load(write_study(tmp_path), [f"store={tmp_path / 'other'}"])
    cost = prepare(loaded, executor_of(loaded)).cost
    found = sum(path.stat().st_size for path in (Path(whole) / "artifacts").rglob("*.safetensors"))
    assert cost.weights == pytest.approx(found, rel=0.05)


@pytest.mark.parametrize("size", [pytest.param(1, marks=pytest.mark.slow), 6])
def test_the_pack_changes_no_bit(whole, tmp_path, size):
    status, store = _run(tmp_path, f"pack.size={size}")
    assert status == 0
    assert tables(store, "distilled") == tables(whole, "distilled")


@pytest.mark.parametrize(
    ("stage", "step", "words"),
    [
        (1, 16, ()),
        pytest.param(1, 4, (), marks=pytest.mark.slow),
        pytest.param(0, 33, (), marks=pytest.mark.slow),
        pytest.param(
            0, 33, ("conditions=null",), marks=pytest.mark.slow
        ),  # the teachers alone: their checkpoints were not kept
    ],
)
def test_a_kill_in_any_phase_changes_no_bit(whole, tmp_path, monkeypatch, stage, step, words):
    """The student of a rule learns from its first checkpoint to step 10, then from the last."""

    def there(training):
        mine = not stage or training.pack.replicates[0].condition.name == "risen"
        return mine and (training.pack.stage, training.step) == (stage, step)

    with killed(monkeypatch, there) as seen:
        _run(tmp_path, *words)
    assert list_names(open_store(tmp_path / "store", "distilled"), f"checkpoints/{seen[0]}")[-1] == f"{step}.safetensors"
    status, store = _run(tmp_path)
    assert status == 0
    assert tables(store, "distilled") == tables(whole, "distilled")


def test_a_teacher_that_never_gets_there_is_said_and_the_study_goes_on(tmp_path, capsys):
    """train.lr keeps the teacher where it began; only the students of the rule are lost."""
    status, store = _run(tmp_path, "train.lr=1e-9", "replicates=2", "only=[risen, one_shot]", "keep=all")
    assert status == 0
    printed = "".join(capsys.readouterr())
    assert "has accuracy 0.7 at none of its steps 5, 10, … 60, at most 0." in printed
    assert printed.count("so this student has nothing to learn from: it is recorded as no_transition") == 2
    rows = [row for row in _rows(store) if row["stage"]]
    lost = [row for row in rows if row["condition"] == "risen"]
    assert [row["status"] for row in lost] == ["no_transition"] * 2
    assert {row["status"] for row in rows if row["condition"] == "one_shot"} == {"finished"}
    # their weights are no numbers: nothing is measured of them
    opened = open_store(store, "distilled")
    probe([opened], "monomials", 20, None, print, ["degrees=1", "outside=2"])
    probed = set(read(opened, "probes")["key"].to_pylist())
    assert probed == {row["key"] for row in _rows(store) if row["status"] == "finished"}
    again = rescore(opened, [row["key"] for row in lost], parse("sequences=5", None), torch.device("cpu"))
    assert set(again["errors"].to_pylist()) == {None}
    keys = {row["key"] for row in lost}
    for row in lost:
        assert row["parent_step"] is row["diverged_at"] is None
        assert row["loss"] != row["loss"]
    scores = [row for row in read(open_store(store, "distilled"), "evaluations").to_pylist() if row["key"] in keys]
    assert scores
    assert all(row["errors"] is row["count"] is None for row in scores)
    assert not any(row["key"] in keys for row in read(open_store(store, "distilled"), "profiles").to_pylist())


def test_nothing_is_learnt_from_a_teacher_that_diverged(tmp_path):
    status, store = _run(tmp_path, "train.lr=1e30", "replicates=1", "conditions.slower=null", "only=[one_shot, risen, shared]")
    assert status == 0
    rows = _rows(store)
    assert {row["status"] for row in rows} == {"diverged"}
    assert {row["diverged_at"] for row in rows if row["stage"]} == {0}
    assert all(row["loss"] != row["loss"] for row in rows)


def test_a_student_is_trained_again_alone(whole):
    store = open_store(whole, "distilled")
    for row in _rows(whole):
        if row["stage"] and row["init_seed"] == 1 and row["condition"] != "slower":
            found = rerun(store, row["key"], device="cpu")
            assert found.agrees, found.message
            assert found.differing == ()


def test_a_teacher_without_its_checkpoints_is_refused(tmp_path):
    assert _run(tmp_path, "conditions=null", "replicates=1")[0] == 0
    sentence = r"1 replicate is committed without .*, such as [0-9a-f]{8} at step 5: a teacher keeps its checkpoints when"
    with pytest.raises(ValueError, match=sentence):
        _run(tmp_path, "replicates=1")
