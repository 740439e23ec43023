"""The board of a run, a Ray actor on which packs note their steps and read whether they should stop; and `Link`, a pack's end of it.

Every driver starts one before its first pack, so nothing here imports torch, which takes most of the time that a worker needs to start.
"""

import contextlib
import time
from typing import Any

import ray
from ray.exceptions import RayError

POLL_S = 1.0  # between notes of a pack, and looks of its driver
_ANSWER_S = 0.1  # between looks whether a note is answered


class Board:
    """The actor that running packs note their step on, and read from whether they should stop. A run is one pack on one worker."""

    def __init__(self) -> None:
        self._steps: dict[int, int] = {}
        self._said: list[tuple[int, str]] = []
        self._stopped: set[int] = set()
        self._stop = False

    def note(self, run: int, step: int, said: list[str]) -> bool:
        self._steps[run] = step
        self._said += [(run, text) for text in said]
        return self._stop or run in self._stopped

    def take(self) -> tuple[dict[int, int], list[tuple[int, str]]]:
        """The steps and sentences noted since the last call."""
        steps, said = self._steps, self._said
        self._steps, self._said = {}, []
        return steps, said

    def stop(self, runs: list[int] | None = None) -> None:
        """Ask these runs to stop; None: all."""
        if runs is None:
            self._stop = True
        else:
            self._stopped.update(runs)


class Link:
    """A running pack's end of the board: at most one note per second, never waited for but at the pack's end."""

    def __init__(self, board: Any, run: int):
        self._board, self._run = board, run
        self._step = 0
        self._said: list[str] = []
        self._asked: Any = board.note.remote(run, 0, [])  # at once: the pack has begun, whatever becomes of it
        self._noted = time.monotonic()
        self._look = self._noted + _ANSWER_S  # when to look for the answer, or to note again
        self._stop = self._ended = False

    def report(self, step: int) -> None:
        self._step = step

    def say(self, text: str) -> None:
        self._said.append(text)

    def end(self) -> None:
        self._ended = True

    def close(self) -> None:
        """Hand over what the pack has said since its last note, which is waited for: the driver is about to hear how it ended."""
        if self._said:
            said, self._said = self._said, []
            ray.wait([self._board.note.remote(self._run, self._step, said)], timeout=POLL_S)

    def should_stop(self) -> bool:
        now = time.monotonic()
        if now < self._look:
            return self._stop or self._ended
        self._look = now + _ANSWER_S
        if self._asked is None:
            said, self._said = self._said, []
            self._asked, self._noted = self._board.note.remote(self._run, self._step, said), now
        elif ray.wait([self._asked], timeout=0)[0]:
            # a board that is gone is started again, or went with its driver, which ends this worker too
            with contextlib.suppress(RayError):
                self._stop = ray.get(self._asked)
            self._asked, self._look = None, self._noted + POLL_S
        return self._stop or self._ended
