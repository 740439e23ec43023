"""The interface of an executor, which runs packs somewhere: every member that anything reads.

`harness.local.Local` runs them in this process, `harness.executing.cluster.Cluster` on the slots of a Ray cluster.
"""

from collections.abc import Callable, Mapping
from typing import Protocol, runtime_checkable

from harness.executing.progress import Progress
from harness.executing.run_pack import Outcome
from harness.machine.interrupt import Interrupt
from harness.planning.pack import Pack
from harness.planning.throughput import Rate
from harness.study.slot_kinds import Kind
from results.store.tables import Store


class Executor(Protocol):
    """Where packs are measured and trained."""

    asked: Callable[[], bool]
    """Whether the person wants to stop. The driver sets it before packs are measured."""

    @property
    def device(self) -> str:
        """cpu or cuda."""

    @property
    def slots(self) -> int:
        """Packs that run at the same time."""

    def measure(self, pack: Pack, kind: Kind | None = None) -> Rate:
        """The speed and memory of a pack; kind: of slot, None for the first."""

    def machine(self, kind: Kind | None = None) -> str:
        """The device of a slot, by name; rates that were measured in the slot are kept under it."""

    def room(self, kind: Kind | None = None) -> int:
        """Bytes that tensors may take in a slot."""

    def check_store(self, store: Store, uri: str) -> None:
        """ValueError where a machine that trains packs does not see what the driver writes."""

    def run(self, packs: list[Pack], store: Store, uri: str, progress: Progress, interrupt: Interrupt) -> list[Outcome]:
        """Run packs in order and say what became of each."""

    def close(self) -> None:
        """Give back what the executor holds."""


@runtime_checkable
class KindsExecutor(Executor, Protocol):
    """An executor whose slots are of several kinds."""

    say: Callable[[str], None]
    most_slots: Mapping[str, int]
    """The largest number of slots that there were of each kind, by its name."""

    def kinds(self) -> list[Kind]:
        """The kinds of slots that there are."""

    def place(self, rates: Mapping[str, Rate], rooms: Mapping[str, int]) -> None:
        """Take the measured rates, by `plan.shape`, and the room of each kind: they decide where packs run."""
