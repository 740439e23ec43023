"""The driver's end of a live W&B run and of TensorBoard files. It hands over what to show and does not wait for it to be shown.

    with LiveFeed(uri, "fflm-quick", "online", say=say) as feed:
        feed.offer({"committed": 3, "planned": 24, …})        # as often as one likes; the newest is sent, once a minute
        feed.finish()                                         # the study has ended and its report is written

A separate process (`results.dashboards.live_process`) talks to W&B, so a server that is slow, silent or gone costs a study nothing. It
starts after the first minute of a study. At the end the driver waits for it as long as it gives a sign of life.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any

from results.errors import StudyError
from results.plain_values import Tree
from results.store.filesystem import public, shell_word

EVERY_S = 60.0  # time between two lines of a live run
PATIENCE_S = 120.0  # silence at the end after which W&B is given up
GRACE_S = 5.0  # time to close a run whose study ended early
_LOOK_S = 0.1
# through it W&B's client would use the process of a run that the caller has open, and hold that one up
_SHARED = "WANDB_SERVICE"
_START = "import sys; sys.path.insert(0, sys.argv[1]); from results.dashboards.live_process import main; main()"
_ROOT = str(Path(__file__).resolve().parents[2])


def _folder(tensorboard: str, study: str) -> Path:
    """The folder for all studies' event files. StudyError where those of the study can't be written into it."""
    if "://" in tensorboard:
        raise StudyError(
            f"tensorboard = {public(tensorboard)} must be a folder of this machine: event files are not written to a URI"
        )
    folder = Path(tensorboard).expanduser().absolute()
    there = next(path for path in (folder / study, folder, *folder.parents) if path.exists())
    why = "" if there.is_dir() else f"{there} is no folder"
    try:
        (folder / study).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = why or f"no folder can be made in {there} ({error.strerror})"
    if not why and not os.access(folder / study, os.W_OK | os.X_OK):
        why = f"{there} can't be written"
    if why:
        raise StudyError(f"tensorboard = {tensorboard}: {why}; name another folder, or leave tensorboard out")
    return folder


class LiveFeed:
    """A live view of one study, fed by its driver.

    mode: of W&B, off, offline or online. runs: as `results.dashboards.publish` takes it. tensorboard: folder of event files, or "".
    """

    def __init__(
        self, uri: str, study: str, mode: str, runs: str = "study", tensorboard: str = "", say: Callable[[str], None] = print
    ):
        if tensorboard and find_spec("tensorboardX") is None:
            raise StudyError("tensorboard needs tensorboardX: pip install 'manyseeds[tensorboard]', or leave tensorboard out")
        self.mode, self.study, self.uri = mode, study, uri
        folder = str(_folder(tensorboard, study)) if tensorboard else ""
        self._about = {"store": uri, "study": study, "mode": mode, "runs": runs, "tensorboard": folder}
        self._say = say
        self._on = mode != "off" or bool(tensorboard)
        self._newest: Mapping[str, float] | None = None
        self._ending = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        self._closed = self._given_up = False
        self._lock = threading.Lock()
        self._heard = time.monotonic()
        self._told: set[str] = set()
        self._answer: dict[str, Any] | None = None
        self._thread = threading.Thread(target=self._send, daemon=True)

    def __enter__(self) -> "LiveFeed":
        if self._on:
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        with self._lock:
            self._closed = True
        self._ending.set()
        if self._process is not None and self._process.poll() is None:
            if not self._given_up and self._process.stdin is not None:
                with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                    self._process.stdin.close()  # the study ended early: the run is closed as it stands
                    self._process.wait(GRACE_S)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)  # with the process that W&B's client starts
            self._process.wait()
        if self._on:
            self._thread.join()

    def offer(self, state: Mapping[str, float]) -> None:
        """Hand over the study's state and return at once. It replaces an older state that has not been sent yet."""
        self._newest = state

    def finish(self) -> None:
        """Send the tables as they are now, and say where they are shown, or in one sentence why they are not."""
        if not self._on:
            return
        self._heard = time.monotonic()
        self._ending.set()
        while self._thread.is_alive() and time.monotonic() - self._heard < PATIENCE_S:
            self._thread.join(_LOOK_S)
        if self._thread.is_alive():
            self._given_up = True
            self._say(f"W&B gave no sign for {PATIENCE_S:g} s and is left alone: {self._again()}")
        elif self._answer is None:
            work = "talks to W&B" if self.mode != "off" else "writes TensorBoard's files"
            self._say(f"the process that {work} has died: {self._again()}")
        else:
            for line in self._answer.get("lines", ()):
                self._say(line)

    def _again(self) -> str:
        if self.mode == "off":
            return "the results are in the store, and the same command writes the files again"
        return f"the results are in the store, and manyseeds publish {shell_word(self.uri)} {self.study} --mode {self.mode} sends them"

    def _send(self) -> None:
        """Send one state per minute, then the end; runs in a thread. Each message waits for the answer to the previous one."""
        while not self._ending.wait(EVERY_S):
            if self._newest is not None and self._ask({"state": dict(self._newest)}) is None:
                return
        self._answer = self._ask({"end": True})
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
            self._process.wait()  # W&B's client writes the end of its file when its process ends

    def _ask(self, question: Tree) -> Tree | None:
        """Ask the process and return its answer; None where it is gone."""
        with self._lock:
            if self._closed:
                return None
            process = self._process = self._process or self._started()
        if process.stdin is None or process.stdout is None:
            raise TypeError("the live process was started without pipes")
        try:
            process.stdin.write(json.dumps(question) + "\n")
            process.stdin.flush()
            for line in process.stdout:
                self._heard = time.monotonic()
                answer: Tree = json.loads(line)
                news = [answer["say"]] if "say" in answer else answer.get("trouble", ())
                for text in news:
                    if text not in self._told:
                        self._told.add(text)
                        self._say(text)
                if "done" in answer:
                    return answer
        except (OSError, ValueError):  # the pipe is closed: the process is gone, or was given up
            return None
        return None

    def _started(self) -> subprocess.Popen[str]:
        own = {name: value for name, value in os.environ.items() if name != _SHARED}
        process = subprocess.Popen(
            [sys.executable, "-c", _START, _ROOT],
            env=own,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for the study, which then says that it ends
        )
        if process.stdin is None:
            raise TypeError("the live process was started without pipes")
        process.stdin.write(json.dumps(self._about) + "\n")  # not among the arguments: a store's URI can hold credentials
        return process
