"""What a person can mend is one sentence; a defect of ours keeps its traceback and says what it is."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from ray.exceptions import RayTaskError

from harness.executing import run_pack as execute
from harness.executing.store_on_nodes import own_error
from harness.planning.pack import resolve
from harness.planning.plan import plan
from harness.study.load import load
from launch.cli import main
from results.errors import DamagedFile, StoreError, StudyError, tell
from results.store.tables import open_store, read
from tests.harness.tiny import write_study

ROOT = Path(__file__).parents[2]
DEFECT = "this is a defect of manyseeds, not of your study: please report it"


@pytest.fixture
def command(tmp_path, capsys):
    def call(*words):
        with pytest.raises(SystemExit) as ended:
            main(list(words))
        return ended.value.code, capsys.readouterr().err

    return call


def _raising(error):
    def call(*arguments, **named):
        raise error

    return call


def _is_a_defect(found, name):
    status, text = found
    assert status == 70
    assert text.lstrip("\n").startswith("Traceback (most recent call last):\n")
    assert f"\n{name}" in text
    assert text.splitlines()[-1].startswith(DEFECT)


def _is_one_sentence(found, words):
    status, text = found
    assert status == 2
    assert text.startswith("error: ")
    assert words in text
    assert text.count("\n") == 1


@pytest.mark.parametrize(
    "error",
    [ValueError("bad split"), OSError("bad file"), KeyError("count"), FileNotFoundError("gone"), EOFError("no more")],
)
def test_a_defect_in_the_middle_of_planning_keeps_its_traceback(command, tmp_path, monkeypatch, error):
    monkeypatch.setattr("harness.planning.plan.pack_id", _raising(error))
    found = command("plan", write_study(tmp_path), f"store={tmp_path / 'runs'}")
    _is_a_defect(found, f"{type(error).__name__}: {error}")
    assert "in plan\n" in found[1]


@pytest.mark.parametrize("error", [ValueError("no such column"), KeyError("read")])
def test_a_defect_in_a_report_keeps_its_traceback(command, tmp_path, monkeypatch, error):
    (tmp_path / "runs/tiny/manifests").mkdir(parents=True)
    monkeypatch.setattr("results.report.report.write_report", _raising(error))
    _is_a_defect(command("report", str(tmp_path / "runs")), f"{type(error).__name__}: {error}")


def test_a_defect_in_a_task_is_told_from_a_setting_that_the_task_refuses(command, tmp_path, monkeypatch):
    study = write_study(tmp_path)
    _is_one_sentence(command("plan", study, "task.length=17"), "task.length = 17 is not an even number of tokens")
    monkeypatch.setattr("tasks.flipflop.flipflop.FlipFlop.scored_positions", _raising(ValueError("ours")))
    _is_a_defect(command("plan", study, f"store={tmp_path / 'runs'}"), "ValueError: ours")


def test_a_model_that_refuses_the_task_is_the_persons_and_a_training_that_breaks_is_ours(command, tmp_path, monkeypatch):
    words = ("plan", write_study(tmp_path), f"store={tmp_path / 'runs'}", "--fresh")
    with monkeypatch.context() as patch:
        patch.setattr("models.transformer.transformer.Transformer.make", _raising(ValueError("too few classes")))
        _is_one_sentence(command(*words), "too few classes")
    monkeypatch.setattr("harness.training.pack_state.Training.advance", _raising(ValueError("ours")))
    _is_a_defect(command(*words), "ValueError: ours")


def test_a_package_that_is_not_installed_is_one_sentence_and_a_module_of_ours_a_defect(command, tmp_path, monkeypatch):
    words = ("plan", write_study(tmp_path), f"store={tmp_path / 'runs'}")
    monkeypatch.setattr("harness.planning.plan.pack_id", _raising(ModuleNotFoundError("No module named 'scipy'", name="scipy")))
    _is_one_sentence(command(*words), f"the package scipy is not installed for {sys.executable}: use the Python of")
    for name in ("torch.of_another_version", "tasks", "tasks.gone", None):
        monkeypatch.setattr(
            "harness.planning.plan.pack_id", _raising(ModuleNotFoundError(f"No module named {name}", name=name))
        )
        _is_a_defect(command(*words), f"ModuleNotFoundError: No module named {name}")


def test_a_variable_shows_the_traceback_of_what_a_person_can_mend_too(command, tmp_path, monkeypatch):
    monkeypatch.setenv("MANYSEEDS_DEBUG", "1")
    status, text = command("plan", write_study(tmp_path), "task.length=17")
    assert status == 2
    assert text.startswith("Traceback (most recent call last):\n")
    assert text.splitlines()[-1].startswith("error: ")
    assert "task.length = 17 is not an even number of tokens" in text.splitlines()[-1]


def test_a_store_that_refuses_is_one_sentence(command, tmp_path, monkeypatch):
    study = write_study(tmp_path)
    monkeypatch.setattr(os, "fsync", _raising(OSError(errno.ENOSPC, "No space left on device")))
    _is_one_sentence(command("plan", study, f"store={tmp_path / 'runs'}"), "can't be written (No space left on device)")


def test_a_place_for_the_output_that_refuses_is_one_sentence(command, tmp_path):
    study, blocked = write_study(tmp_path), tmp_path / "file"
    blocked.write_text("")
    found = command("plan", study, f"store={tmp_path / 'runs'}", "--write", str(blocked / "manifest.yaml"))
    _is_one_sentence(found, "manifest.yaml can't be written (Not a directory)")


@pytest.mark.parametrize(
    ("raised", "status"),
    [
        (StoreError("the disk is full"), "unstored"),
        (DamagedFile("no weights"), "failed"),
        (OSError(errno.ENOSPC, "No space left on device"), "failed"),
        (ValueError("ours"), "failed"),
    ],
)
def test_only_an_error_of_the_store_gives_a_pack_back(tmp_path, monkeypatch, raised, status):
    """Any other OSError is a failure of the pack, recorded with its traceback."""
    study, store = load(write_study(tmp_path), ["pack.size=1"]), open_store(tmp_path / "runs", "tiny")
    pack = resolve(plan(study, None, sizes=1, numerics={"device": "cpu"}), {"device": "cpu"}, {})[0]
    monkeypatch.setattr(execute, "train", _raising(raised))
    outcome = execute.run_pack(pack, store, torch.device("cpu"), lambda step: None, lambda: False)
    assert outcome.status == status
    traces = read(store, "failures")["traceback"].to_pylist()
    assert len(traces) == (status == "failed")
    assert all("Traceback (most recent call last)" in each for each in traces)


@pytest.mark.parametrize("error", [StudyError("mend it"), StoreError("mend it"), DamagedFile("mend it")])
def test_what_a_worker_refuses_is_the_same_sentence_on_the_driver(error):
    wrapped = RayTaskError("measure", "a long traceback", error).as_instanceof_cause()
    assert own_error(wrapped) is error
    defect = RayTaskError("measure", "a long traceback", ValueError("ours")).as_instanceof_cause()
    assert own_error(defect) is defect


def test_a_reader_that_goes_away_is_no_defect(tmp_path):
    words = [sys.executable, "-m", "launch", "--help"]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        error = process.stderr.read()
    assert error == b""
    assert process.returncode == 1


def test_a_full_disk_is_no_defect(capsys):
    assert tell(OSError(errno.ENOSPC, "No space left on device")) == 2
    assert capsys.readouterr().err == "error: the output can't be written (No space left on device): make room\n"


def test_an_evaluation_set_that_the_model_cannot_read_is_the_persons(command, tmp_path):
    words = ("plan", write_study(tmp_path), f"store={tmp_path / 'runs'}", "evaluate.sets.dense.length=64")
    _is_one_sentence(
        command(*words),
        "the evaluation set dense asks too much of transformer: strings of 64 tokens are longer than the 16 positions",
    )


def test_a_training_that_shows_longer_strings_than_the_model_reads_is_the_persons(command, tmp_path):
    path = tmp_path / "dyck.yaml"
    path.write_text(
        "name: dyck\ntask: {name: dyck, types: 2, depth: 3, length: 16}\n"
        "model: {name: transformer, layers: 1, width: 16, heads: 2}\n"
        "train: {steps: 10, batch: 4, lr: 1.0e-3, consistency: {weight: 0.1}}\n"
        "evaluate: {sets: {own: {sequences: 10}}}\n"
    )
    _is_one_sentence(
        command("plan", str(path), f"store={tmp_path / 'runs'}"),
        "the training of transformer asks too much of its model: strings of 22 tokens are longer than the 16 positions",
    )
