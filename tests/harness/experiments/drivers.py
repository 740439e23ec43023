"""Drivers of experiments in processes of their own, forked from one that has imported everything, and killed at a chosen moment.

A moment is one at which something visible from outside happens: a file or folder of the store, or of a script, is opened for writing,
renamed or removed, a process is started, or a function measures a seed.
"""

import itertools
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import harness.executing.run_pack
import harness.run
from harness.experiments.measure import measure
from harness.run import run
from harness.study.load import load
from models.custom.custom import allow

ROOT = Path(__file__).parents[3]
_MOMENTS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "subprocess.Popen", "own.measure"}
LONGEST_S = 100.0


class Drivers:
    """Starts drivers of the study in `folder`; `start(…)` returns its process, `end(…)` waits for it and returns its exit status."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([__name__])

    def start(self, store: str, *overrides: str, die_at: tuple[str, int] | None = None, executor: str = "local"):
        """die_at: (words, number), to be killed just before that one of the moments whose name, as in `_name`, has the words."""
        arguments = (str(self.folder), store, [f"executor={executor}", *overrides], die_at)
        process = self._context.Process(target=_drive, args=arguments)
        process.start()
        return process

    def end(self, process) -> int:
        process.join(LONGEST_S)
        assert process.exitcode is not None, "a driver never ends"
        return process.exitcode


def _drive(folder: str, store: str, overrides: list[str], die_at: tuple[str, int] | None) -> None:
    os.chdir(folder)
    sys.path.insert(0, folder)
    os.environ |= {"TMPDIR": folder, "RAY_TMPDIR": tempfile.gettempdir()}  # names of Ray's sockets must be short
    tempfile.tempdir = folder
    sys.stderr = open("stderr", "a")  # noqa: SIM115 (as long as the process lives)
    allow("own", "--allow-command")
    harness.run._report = lambda store: ["report: none"]
    harness.executing.run_pack.measure = partial(measure, checkpoint_s=0.0)
    if die_at:
        (words, number), moments = die_at, itertools.count(1)

        def watch(event, arguments):
            name = _name(event, arguments, folder) if event in _MOMENTS else ""
            if name and words in name and next(moments) == number:
                os.kill(os.getpid(), signal.SIGKILL)
                time.sleep(LONGEST_S)

        sys.addaudithook(watch)
    sys.exit(run(load("study.yaml", [f"store={Path(folder, store)}", *overrides]), say=lambda text: None))


def _name(event, arguments, folder) -> str:
    """The event and the path in `folder` that it happens to, such as "os.rename /runs/own/replicates/…"; "" where nobody sees it."""
    if event in ("own.measure", "subprocess.Popen"):
        return "starts a seed" if event == "own.measure" or "supervisor.py" in str(arguments[1]) else ""
    path = str(arguments[0])
    if not path.startswith(folder) or (event == "open" and not (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR)):
        return ""
    return f"{event} {path.removeprefix(folder)}"


def running(words: str, cwd: Path = Path("/")) -> list[str]:
    """Ids of the processes whose command line has these words and whose working folder is in `cwd`."""
    ids = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if words.encode() in (process / "cmdline").read_bytes() and (process / "cwd").readlink().is_relative_to(cwd):
                ids.append(process.name)
        except OSError:
            continue
    return ids


def wait_until(what) -> None:
    """Wait until `what()` is true; AssertionError where it never is."""
    until = time.monotonic() + LONGEST_S
    while not what():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.02)
