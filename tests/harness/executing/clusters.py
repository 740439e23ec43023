"""Commands of a study on a Ray cluster, in processes of their own, and what to wait for."""

import os
import secrets
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from benchmarks.chaos.ports import held_port

ROOT = Path(__file__).parents[3]
# two packs at once, long enough to be stopped in the midst of them on a fast machine, and two that are not waited for
SLOW = ("conditions.transformer.train.steps=4000", "replicates=2", "pack.size=1")


def environment_without_ray(**more):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    return kept | {"RAY_USAGE_STATS_ENABLED": "0", "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"} | more


def study_command(study, store, *overrides, code=None):
    """code: what calls the command line, in the place of `python -m launch`."""
    program = ["-m", "launch"] if code is None else ["-c", code]
    return [sys.executable, *program, "run", study, f"store={store}", "executor=ray", *overrides]


def run_study(study, store, *overrides, code=None, **environment):
    return subprocess.run(
        study_command(study, store, *overrides, code=code),
        cwd=ROOT,
        env=environment_without_ray(**environment),
        capture_output=True,
        text=True,
        timeout=500,
    )


def start_study(study, store, *overrides, code=None, **environment):
    return subprocess.Popen(
        study_command(study, store, *overrides, code=code),
        cwd=ROOT,
        env=environment_without_ray(**environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def children(pid, found=None):
    """Process ids below `pid`, from /proc."""
    found = [] if found is None else found
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            found.append(int(child))
            children(int(child), found)
    return found


def slot_processes(pid):
    """The processes below a driver that are slots."""
    out = []
    for child in children(pid):
        command = Path(f"/proc/{child}/cmdline")
        if command.exists() and b"ray::Slot" in command.read_bytes():
            out.append(child)
    return out


def wait_for(what, seconds=240):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if found := what():
            return found
        time.sleep(0.1)
    raise AssertionError("waited in vain")


@contextmanager
def nodes(folder, *nodes):
    """Nodes of (cores, more options of `ray start`) on this machine, the first the head; gives the environment that leads there."""
    gcs = held_port()
    environment = environment_without_ray(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))
    head = ["--head", f"--port={gcs}", f"--ray-client-server-port={held_port()}", "--include-dashboard=false"]
    # nodes of one machine must not share the only port of an agent that Ray does not choose by itself
    shared = ["--disable-usage-stats", "--object-store-memory=100000000", "--dashboard-agent-listen-port=0", "--block"]
    ray, processes = str(Path(sys.executable).parent / "ray"), []
    try:
        for index, (cores, *more) in enumerate(nodes):
            where = [f"--address=127.0.0.1:{gcs}"] if index else head
            command, log = [ray, "start", *where, f"--num-cpus={cores}", *shared, *more], folder / f"{index}.log"
            with log.open("wb") as output:
                processes.append(subprocess.Popen(command, env=environment, stdout=output, stderr=output))
            # one after another: two that start at once in one folder take sockets of the same names, and one of them ends
            wait_for(lambda log=log, node=processes[-1]: has_joined(node, log))
        yield environment | {"RAY_ADDRESS": f"127.0.0.1:{gcs}"}
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(60)


def has_joined(node, log):
    """Whether `ray start --block`, which writes to this file, has started its node. AssertionError where it ended instead."""
    said = log.read_text()
    assert node.poll() is None, f"a node of the Ray cluster ended:\n{said}"
    return "Ray runtime started" in said
