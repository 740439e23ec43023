"""The Ray executor on real clusters: workers, drivers and whole studies killed, several nodes. Jobs: tests/test_documented_job.py."""

import csv
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.run import run
from harness.study.load import load
from models.custom.custom import allow
from results.store.tables import committed, open_store, read
from tests.harness.executing.clusters import (
    ROOT,
    SLOW,
    environment_without_ray,
    run_study,
    slot_processes,
    start_study,
    wait_for,
)
from tests.harness.tiny import files, tables, write_study


def _replicates(store):
    return committed(open_store(store, "tiny")).num_rows


@pytest.fixture
def study(tmp_path):
    return write_study(tmp_path)


@pytest.mark.slow
def test_killed_drivers_and_workers_change_no_row(study, tmp_path, whole):
    """A worker is killed, then the driver with SIGKILL; the same command finishes, and nothing committed is trained again."""
    store = tmp_path / "runs"
    driver = start_study(study, store, *SLOW)
    try:
        wait_for(lambda: (store / "tiny" / "manifests").exists())
        os.kill(wait_for(lambda: slot_processes(driver.pid))[0], signal.SIGKILL)
        wait_for(lambda: _replicates(store) >= 1)
    finally:
        os.kill(driver.pid, signal.SIGKILL)
        driver.wait()
    before = files(store)
    assert 1 <= _replicates(store) < 4
    done = run_study(study, store, *SLOW)
    assert done.returncode == 0, done.stdout + done.stderr
    after = files(store)
    assert {name: after[name] for name in before} == before
    assert tables(store) == whole


# the command line that hears and says at once how far it is, and makes no report
TOLD = """
import sys
import harness.executing.cluster as cluster, harness.executing.progress as progress, harness.run, harness.planning.throughput
harness.planning.throughput._BUDGET_S = 0.0
cluster.POLL_S = progress._FIRST_LINES_S = progress._LINE_S = 0.1
harness.run._report = lambda store: ["report: none"]
from launch.cli import main
main(sys.argv[1:])
"""


def _steps(driver):
    """The numbers of steps that a driver tells, as it tells them."""
    for line in driver.stdout:
        if said := re.match(r"([1-9][\d,]*)/[\d,]+ steps", line):
            yield said[1]


def test_ctrl_c_saves_what_runs_and_the_same_command_goes_on(study, tmp_path, whole, page_cluster):
    """On a Ray of the command's own, and then on a cluster, where its workers are killed in the midst of their steps."""
    store = tmp_path / "runs"
    driver = start_study(study, store, *SLOW, code=TOLD)
    next(_steps(driver))  # a pack is in the midst of its steps, and held there until the driver has asked it to stop
    slots = slot_processes(driver.pid)
    for slot in slots:
        os.kill(slot, signal.SIGSTOP)
    driver.send_signal(signal.SIGINT)
    next(line for line in driver.stdout if line.startswith("stopping: "))
    time.sleep(1)  # ten looks of the driver
    for slot in slots:
        os.kill(slot, signal.SIGCONT)
    output, _ = driver.communicate(timeout=240)
    assert driver.returncode == 130, output
    assert "the same command goes on" in output
    assert list((store / "tiny" / "checkpoints").rglob("*.safetensors"))
    driver = start_study(study, store, *SLOW, code=TOLD, **page_cluster.ray_variables())
    steps = _steps(driver)
    first = next(steps)
    next(later for later in steps if later != first)
    for slot in slot_processes(os.getpid()):  # both: one has told steps, and the other may have no pack yet
        os.kill(slot, signal.SIGKILL)
    output, _ = driver.communicate(timeout=240)
    assert driver.returncode == 0, output
    assert "lost its worker" in output
    assert tables(store) == whole
    assert not list((store / "tiny" / "checkpoints").rglob("*.safetensors"))


def test_a_study_of_a_task_of_ones_own_on_two_nodes_equals_a_local_one_and_is_reported(page_cluster, tmp_path, monkeypatch):
    """The module of the page lies in the driver's folder alone; four packs, a replicate each, on workers of both nodes."""
    page = (ROOT / "docs/guides/own-task.md").read_text()
    blocks = {kind: re.search(rf"^```{kind}\n(.*?)^```", page, re.DOTALL | re.MULTILINE)[1] for kind in ("python", "yaml")}
    (tmp_path / "my_tasks.py").write_text(blocks["python"])
    models = "{lstm: {}, transformer: {model: {name: transformer, layers: 1, width: 16, heads: 2}}}"
    (tmp_path / "my_parity.yaml").write_text(f"{blocks['yaml']}conditions: {models}\n")
    environment = environment_without_ray(PYTHONPATH=str(ROOT), **page_cluster.ray_variables())
    words = ["wandb=off", "pack.size=1", "train.steps=40"]
    start = [sys.executable, "-m", "launch", "run", "my_parity.yaml", "--allow-import", "my_tasks", "executor=ray"]
    command = [*start, *words, f"store={tmp_path / 'far'}"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    monkeypatch.syspath_prepend(tmp_path)
    allow("my_tasks")
    assert run(load(tmp_path / "my_parity.yaml", [*words, "executor=local", f"store={tmp_path / 'near'}"]), say=str) == 0
    assert tables(tmp_path / "far", "my-parity") == tables(tmp_path / "near", "my-parity")
    at = open_store(tmp_path / "far", "my-parity")
    text = Path(at.path("report", "index.html")).read_text(encoding="utf-8")
    assert "An error is a position whose more probable class is not the parity of the bits up to it." in text
    with open(at.path("report", "replicates.csv"), newline="") as lines:
        said = {row["key"]: row for row in csv.DictReader(lines)}
    rows = [row for row in read(at, "evaluations").to_pylist() if row["set"] == "few"]
    assert len(said) == len(rows) == len(set(committed(at)["pack"].to_pylist())) == 4
    for row in rows:
        told = said[row["key"]]
        assert (told["status"], row["metric"]) == ("finished", "position")
        assert float(told["few.error"]) == row["errors"] / row["count"]
        assert 0 < row["errors"] < row["count"] == 16 * 100


def test_a_cluster_that_does_not_answer_is_named(study, tmp_path):
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{one.getsockname()[1]}"
        done = run_study(study, tmp_path / "runs", RAY_ADDRESS=address)
    assert done.returncode == 2
    assert f"no Ray cluster answers at RAY_ADDRESS={address}" in done.stderr
