"""Ctrl-C and SIGTERM as a request: what runs is saved, then the study ends; a second Ctrl-C ends it at once.

A second SIGTERM does not: schedulers send it to all processes of a job, and the job's script sends it on.
"""

import signal
import threading
from types import FrameType

from results.terminal import say

_AT_ONCE: dict[int, str] = {signal.SIGINT: "once more", signal.SIGTERM: "Ctrl-C"}


class Interrupt:
    """`with Interrupt() as interrupt:` … `interrupt.requested()`. It works in the main thread alone, as signal handlers do."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._before: dict[int, object] = {}

    def requested(self) -> bool:
        return self._asked.is_set()

    def __enter__(self) -> "Interrupt":
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._asked.is_set():
            if number == signal.SIGINT:
                raise KeyboardInterrupt
            return
        self._asked.set()
        say(f"stopping: what runs is saved first ({_AT_ONCE[number]} to stop at once)", err=True)
