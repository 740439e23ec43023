"""What runs in a Ray actor: a slot that trains packs, and the board on which they note their steps and read that they should stop."""

import contextlib
import os
import signal
import time
from collections.abc import Sequence
from typing import Any

import ray
from ray.exceptions import RayError

from harness.executing.missing_mount import run_there
from harness.executing.run_pack import Outcome
from harness.planning.pack import Pack
from harness.planning.throughput import Rate
from results.store.tables import open_store

POLL_S = 1.0  # between notes of a pack, and looks of its driver


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
        """Ask these to stop, or all."""
        if runs is None:
            self._stop = True
        else:
            self._stopped.update(runs)


class Slot:
    """The actor: one device slot. Packs run in its main thread, whose memory glibc can be told to keep.

    share: slots on its GPU. allowed: modules of a user's own that the driver lets its studies name.
    """

    def __init__(self, device: str, share: int = 1, allowed: Sequence[str] = ()):
        from harness.machine.device import prepare, resolve
        from models.custom.custom import allow

        allow(*allowed)
        self._device = resolve(device)
        self._share = share if self._device.type == "cuda" else os.cpu_count() or 1
        prepare(self._device, share)
        self._link: Link | None = None
        self._before = signal.signal(signal.SIGTERM, self._terminated)

    def node(self) -> str:
        return ray.get_runtime_context().get_node_id()

    def run(self, pack: Pack, uri: str, study: str, board: Any, run: int, begun: bool = False) -> Outcome:
        """begun: whether the store holds a manifest of the study, so that it is away where it shows none."""
        store = open_store(uri, study)
        link = self._link = Link(board, run)
        try:
            return run_there(pack, store, self._device, link.report, link.should_stop, link.say, begun)
        finally:
            self._link = None

    def _terminated(self, number: int, frame: Any) -> None:
        """SIGTERM, as when a machine shuts down: the pack is saved, and goes on elsewhere."""
        if self._link is not None:
            self._link.end()
        elif callable(self._before):
            self._before(number, frame)

    def measure(self, pack: Pack) -> Rate:
        from harness.planning.throughput import measure

        return measure(pack, self._device)

    def machine(self) -> str:
        from harness.machine.device import machine

        return machine(self._device)

    def room(self) -> int:
        """Bytes that tensors may take in this slot."""
        from harness.planning.throughput import room

        return room(self._device, self._share)


class Link:
    """A running pack's end of the board: at most one note a second, never waited for."""

    def __init__(self, board: Any, run: int):
        self._board, self._run = board, run
        self._step = 0
        self._said: list[str] = []
        self._asked: Any = board.note.remote(run, 0, [])  # at once: the pack has begun, whatever becomes of it
        self._last = time.monotonic()
        self._stop = self._ended = False

    def report(self, step: int) -> None:
        self._step = step

    def say(self, text: str) -> None:
        self._said.append(text)

    def end(self) -> None:
        self._ended = True

    def should_stop(self) -> bool:
        now = time.monotonic()
        if now - self._last < POLL_S:
            return self._stop or self._ended
        self._last = now
        if self._asked is None:
            said, self._said = self._said, []
            self._asked = self._board.note.remote(self._run, self._step, said)
        elif ray.wait([self._asked], timeout=0)[0]:
            # a board that is gone is started again, or went with its driver, which ends this worker too
            with contextlib.suppress(RayError):
                self._stop = ray.get(self._asked)
            self._asked = None
        return self._stop or self._ended
