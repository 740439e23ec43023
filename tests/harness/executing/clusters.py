"""Commands of a study on a Ray cluster, in processes of their own, and what to wait for."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[3]
# two packs at once, long enough to be stopped in the midst of them on a fast machine, and two that are not waited for
SLOW = ("conditions.transformer.train.steps=3000", "replicates=2", "pack.size=1")


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


_GIVEN = set()


def free_port():
    """A port that is free and was not given before: the system may name one twice in a row, and Ray refuses to share it."""
    while True:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
        if port not in _GIVEN:
            _GIVEN.add(port)
            return port


def port_answers(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0
