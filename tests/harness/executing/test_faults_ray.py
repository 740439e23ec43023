"""Faults that only a real Ray cluster shows: a pack that hangs, a worker that is told to end, a node that is drained."""

import os
import re
import signal
import subprocess
import sys
import time
from functools import partial

import pytest

from benchmarks.chaos.machines import kill_tree, machines
from harness.executing.hang_watch import Watch
from harness.run import run
from harness.study.load import load
from models.custom.custom import allow
from results.store.tables import open_store, read
from tests.harness.executing.clusters import (
    ROOT,
    SLOW,
    environment_without_ray,
    run_study,
    slot_processes,
    start_study,
    wait_for,
)
from tests.harness.tiny import STUDY, files, tables, write_study

pytestmark = pytest.mark.slow
TOLD = "its worker was told to end and saved step"

STALLS = """
import os, time
from torch import nn

class Stalls(nn.Module):
    def __init__(self, vocabulary, length):
        super().__init__()
        self.inner = nn.Sequential(nn.Embedding(vocabulary, 8), nn.Linear(8, vocabulary))

    def forward(self, tokens):
        if os.path.isdir({manifests!r}):  # once the study has begun, not while it is measured
            time.sleep(3600)
        return self.inner(tokens)
"""


def test_a_pack_that_hangs_is_killed_three_times_and_recorded(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("harness.executing.cluster.Watch", partial(Watch, quiet_s=3.0, start_s=5.0, multiple=0.0))
    manifests = tmp_path / "runs" / "tiny" / "manifests"
    (tmp_path / "stalls.py").write_text(STALLS.format(manifests=str(manifests)))
    text = STUDY.replace("{transformer: {}, lstm: {model: {name: lstm, width: 8}}}", "{one: {}}")
    text = text.replace("{name: transformer, layers: 1, width: 16, heads: 2}", '{name: "stalls:Stalls"}')
    (tmp_path / "tiny.yaml").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    allow("stalls")
    words = [f"store={tmp_path / 'runs'}", "executor=ray", "device=cpu", "replicates=1", "pack.size=1"]
    assert run(load(tmp_path / "tiny.yaml", words)) == 1
    (row,) = read(open_store(tmp_path / "runs", "tiny"), "failures").to_pylist()
    assert (row["kind"], row["step"], row["attempt"]) == ("hung", 0, 3)
    assert "made no step and no part of an evaluation" in row["traceback"]
    assert "hung after step 0 and starts again" in capsys.readouterr().out


def test_the_head_is_killed_and_the_same_command_goes_on_elsewhere(tmp_path, whole):
    """Head, raylets and workers of a cluster die at once; the driver, on a machine of its own, is left behind."""
    store, study = tmp_path / "runs", write_study(tmp_path)
    first, second = (tmp_path / name for name in ("first", "second"))
    first.mkdir()
    second.mkdir()
    with machines(first) as cluster:
        environment = {name: value for name, value in cluster.driver_environment.items() if name.startswith("RAY_")}
        driver = start_study(study, store, *SLOW, **environment)
        wait_for(lambda: (store / "tiny" / "replicates").is_dir())
        for process in (cluster.head, *cluster.nodes):
            kill_tree(process)
        output = driver.communicate(timeout=300)[0]
    assert driver.returncode == 1, output
    assert re.search(rf"the head of the Ray cluster at \S+:{cluster.port} does not answer", output), output
    before = files(store)
    with machines(second) as cluster:
        environment = {name: value for name, value in cluster.driver_environment.items() if name.startswith("RAY_")}
        done = run_study(study, store, *SLOW, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    after = files(store)
    assert {name: after[name] for name in before} == before
    assert tables(store) == whole


def test_a_worker_that_is_told_to_end_saves_its_pack(tmp_path, whole):
    """SIGTERM to a worker, as when a machine shuts down."""
    store = tmp_path / "runs"
    driver = start_study(write_study(tmp_path), store, *SLOW)
    wait_for(lambda: (store / "tiny" / "manifests").exists())
    wait_for(lambda: slot_processes(driver.pid))
    time.sleep(3)  # packs are at their steps
    os.kill(slot_processes(driver.pid)[0], signal.SIGTERM)
    output = driver.communicate(timeout=300)[0]
    assert driver.returncode == 0, output
    assert TOLD in output
    assert tables(store) == whole


def test_a_node_that_is_drained_gives_its_pack_to_another(tmp_path, whole):
    """Notice of a preemption: packs of the node are saved and go on elsewhere, and nothing is started on it."""
    store = tmp_path / "runs"
    command = [sys.executable, "-m", "tests.harness.executing.drained", write_study(tmp_path), str(store), "device=cpu", *SLOW]
    done = subprocess.run(command, cwd=ROOT, env=environment_without_ray(), capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "drained: (True, '')" in done.stdout
    assert TOLD in done.stdout
    assert tables(store) == whole
