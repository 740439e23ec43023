"""What runs in a Ray actor: a slot that trains packs."""

import signal
from collections.abc import Sequence
from typing import Any

import ray

from harness.executing.board import Link
from harness.executing.missing_mount import run_there
from harness.executing.run_pack import Outcome
from harness.planning.pack import Pack
from harness.planning.throughput import Rate
from results.cores import cores
from results.store.tables import open_store


class Slot:
    """The actor: one device slot. Packs run in its main thread, whose memory glibc can be told to keep.

    share: slots on its GPU. allowed: modules of a user's own that the driver lets its studies name.
    """

    def __init__(self, device: str, share: int = 1, allowed: Sequence[str] = ()):
        from harness.machine.device import prepare, resolve
        from models.custom.custom import allow

        allow(*allowed)
        self._device = resolve(device)
        self._share = share if self._device.type == "cuda" else cores()
        prepare(self._device, share)
        self._link: Link | None = None
        self._before = signal.signal(signal.SIGTERM, self._terminated)

    def node(self) -> str:
        return ray.get_runtime_context().get_node_id()

    def run(self, pack: Pack, uri: str, study: str, board: Any, run: int, begun: bool = False) -> Outcome:
        """Run a pack and commit it. begun: whether the store holds a manifest of the study, so that it is away where it shows none."""
        store = open_store(uri, study)
        link = self._link = Link(board, run)
        try:
            return run_there(pack, store, self._device, link.report, link.should_stop, link.say, begun)
        finally:
            self._link = None
            link.close()

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
