"""A driver that is started again until its command ends with exit status 0: what a person, or a job's retries, would do."""

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from benchmarks.chaos.machines import below, kill, kill_tree, slots, wait_for
from benchmarks.chaos.study import command

_PAUSE_S = 0.5  # before a start after an end
_MOST_WORDS = 8000  # characters of its output


class Driver:
    """`manyseeds run …` in `folder`; after an exit status 1 (failed replicates) `manyseeds retry …`."""

    def __init__(self, name: str, study: str, store: str, folder: Path, environment: dict[str, str], overrides: list[str]):
        self.name, self.starts, self.done = name, 0, False
        self.endings: list[int] = []  # exit statuses, in order
        self._words = (study, store, *overrides)
        self._folder, self._environment = folder, environment
        self._verb, self._ended = "run", 0.0
        self._process: subprocess.Popen[Any] | None = None
        self._printed = folder / f"{name}.log"
        self._log = self._printed.open("ab")

    @property
    def pid(self) -> int | None:
        """Of the running driver."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def workers(self) -> list[int]:
        """Slots of a cluster of its own."""
        return [] if self.pid is None else slots(self.pid)

    def words(self) -> str:
        """The end of its output, over all its starts."""
        return self._printed.read_text(errors="replace")[-_MOST_WORDS:]

    def tend(self) -> None:
        """Start it, or start it again if it ended with another status than 0."""
        if self.done or self.pid is not None:
            return
        if self._process is not None:
            self._note(self._process.returncode)
        elif time.monotonic() - self._ended > _PAUSE_S:
            self._start()

    def kill(self) -> bool:
        """SIGKILL of the driver alone. A Ray cluster of its own goes with it: False where one stays, which is then removed."""
        if self._process is None or self.pid is None:
            return False
        children = below(self._process.pid)
        kill(self._process.pid)
        self._note(self._process.wait())
        try:
            wait_for(lambda: not any(map(_alive, children)), "what the driver had started ends with it", 20)
        except TimeoutError:
            for child in children:
                kill(child)
            return False
        return True

    def interrupt(self) -> bool:
        """Ctrl-C."""
        if self._process is None or self.pid is None:
            return False
        self._process.send_signal(signal.SIGINT)
        return True

    def close(self) -> None:
        if self._process is not None and self.pid is not None:
            kill_tree(self._process)
        self._log.close()

    def _start(self) -> None:
        words = command(self._verb, self._words[0], self._words[1], "executor=ray", *self._words[2:])
        self._log.write(f"--- start {self.starts}: {self._verb}\n".encode())
        self._log.flush()
        self._process = subprocess.Popen(
            words, cwd=self._folder, env=self._environment, stdout=self._log, stderr=subprocess.STDOUT, start_new_session=True
        )
        self.starts += 1

    def _note(self, status: int) -> None:
        self._process, self._ended = None, time.monotonic()
        self.endings.append(status)
        self.done = status == 0
        if status == 1:
            self._verb = "retry"


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
