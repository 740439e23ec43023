"""The Ray executor on real clusters: workers, drivers and whole studies killed, several nodes, submitted jobs."""

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from results.store.tables import committed, open_store
from tests.harness.executing.clusters import (
    ROOT,
    SLOW,
    environment_without_ray,
    free_port,
    port_answers,
    run_study,
    slot_processes,
    start_study,
    study_command,
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


def test_ctrl_c_saves_what_runs_and_the_same_command_goes_on(study, tmp_path, whole):
    store = tmp_path / "runs"
    driver = start_study(study, store, *SLOW)
    wait_for(lambda: (store / "tiny" / "manifests").exists())
    wait_for(lambda: slot_processes(driver.pid))
    time.sleep(3)
    driver.send_signal(signal.SIGINT)
    output, _ = driver.communicate(timeout=240)
    assert driver.returncode == 130, output
    assert "the same command goes on" in output
    assert list((store / "tiny" / "checkpoints").rglob("*.safetensors"))
    done = run_study(study, store, *SLOW)
    assert done.returncode == 0, done.stdout + done.stderr
    assert tables(store) == whole
    assert not list((store / "tiny" / "checkpoints").rglob("*.safetensors"))


@pytest.fixture(scope="module")
def cluster():
    """A Ray cluster of two nodes on this machine, started as a user would, with its dashboard; stopped process by process."""
    gcs, dashboard, client = (str(free_port()) for _ in range(3))
    environment = environment_without_ray(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))
    ray = str(Path(sys.executable).parent / "ray")

    def shared():
        agents = ("dashboard-agent-listen-port", "dashboard-agent-grpc-port", "runtime-env-agent-port", "metrics-export-port")
        ports = [f"--{name}={free_port()}" for name in agents]  # two nodes of one machine must not share them
        return ["--num-cpus=1", "--disable-usage-stats", "--object-store-memory=100000000", "--block", *ports]

    head = [ray, "start", "--head", f"--port={gcs}", f"--dashboard-port={dashboard}", f"--ray-client-server-port={client}"]
    processes = [subprocess.Popen([*head, *shared()], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)]
    try:
        wait_for(lambda: port_answers(int(gcs)))
        second = [ray, "start", f"--address=127.0.0.1:{gcs}", *shared()]
        processes.append(subprocess.Popen(second, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT))
        wait_for(lambda: port_answers(int(dashboard)))
        yield environment | {"RAY_ADDRESS": f"127.0.0.1:{gcs}"}, f"http://127.0.0.1:{dashboard}"
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(60)


def _submit(cluster, *overrides, folder=ROOT):
    """`ray job submit --working-dir . -- python launch/fflm_replicates.py …` as the README has it."""
    environment, dashboard = cluster
    command = [str(Path(sys.executable).parent / "ray"), "job", "submit", "--address", dashboard, "--working-dir", str(folder)]
    script = [sys.executable, "launch/fflm_replicates.py", "study=quick", "wandb=off", "replicates=1", *overrides]
    environment = {name: value for name, value in environment.items() if name != "RAY_ADDRESS"}
    whole = [*command, "--", *script]
    for _ in range(30):
        done = subprocess.run(whole, env=environment, capture_output=True, text=True, timeout=500, cwd=ROOT)
        if "No available agent to submit job" not in done.stderr:  # the dashboard answers before its agents do
            return done
        time.sleep(1)
    return done


QUICKER = (
    "conditions.transformer.train.steps=60",
    "conditions.lstm.train.steps=60",
    *(f"evaluate.sets.{name}.sequences=50" for name in ("in_distribution", "sparse", "dense", "sparse_online")),
)


def test_a_submitted_job_refuses_a_relative_store(cluster):
    """One with an absolute store is in tests/test_documented_job.py."""
    refused = _submit(cluster, *QUICKER, "store=runs")
    assert refused.returncode != 0
    assert "store=runs is relative, and a Ray job runs in a temporary folder" in refused.stdout + refused.stderr


@pytest.mark.slow
def test_a_job_whose_folder_has_its_own_models_uses_ours(cluster, tmp_path):
    folder = tmp_path / "theirs"
    for name in ("models", "tasks", "tests"):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text("raise ImportError('the package of the job, not of manyseeds')\n")
    (folder / "launch").mkdir()
    (folder / "launch" / "fflm_replicates.py").write_text(
        f"import sys\nsys.path.append({str(ROOT)!r})\nimport harness\nfrom launch.cli import family\nfamily('fflm', 'quick')\n"
    )
    done = _submit(cluster, *QUICKER, f"store={tmp_path / 'runs'}", folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_study_on_a_cluster_of_two_nodes_equals_a_local_one(cluster, study, tmp_path):
    environment, _ = cluster
    done = run_study(study, tmp_path / "far", **{name: environment[name] for name in environment if name.startswith("RAY_")})
    assert done.returncode == 0, done.stdout + done.stderr
    command = [word for word in study_command(study, tmp_path / "near") if word != "executor=ray"]  # the study file says local
    local = subprocess.run(command, cwd=ROOT, env=environment_without_ray(), timeout=500)
    assert local.returncode == 0
    assert tables(tmp_path / "far") == tables(tmp_path / "near")


def test_a_cluster_that_does_not_answer_is_named(study, tmp_path):
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{one.getsockname()[1]}"
        done = run_study(study, tmp_path / "runs", RAY_ADDRESS=address)
    assert done.returncode == 2
    assert f"no Ray cluster answers at RAY_ADDRESS={address}" in done.stderr
