"""A Ray cluster in virtual time: nodes and workers are entries of a table, and packs take the seconds that a test gives them."""

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from ray.exceptions import ActorDiedError, OutOfMemoryError, RayTaskError

from harness.executing import cluster, dispatch, ray_connection
from harness.executing.board import Board
from harness.executing.cluster import Cluster
from harness.executing.progress import Progress
from harness.executing.ray_worker import Slot
from harness.executing.run_pack import Outcome
from harness.machine.interrupt import Interrupt
from harness.planning.pack import Pack
from harness.planning.plan import shape
from harness.planning.throughput import Rate
from harness.study.slot_kinds import Kind
from results.store.tables import Store

STEPS = 10  # of each pack


@dataclass
class Node:
    """name: also its host's. resources: as Ray counts them. gone, joins: the seconds from which on it is lost, and is there."""

    name: str
    resources: dict[str, float]
    gone: float = math.inf
    joins: float = 0.0


@dataclass
class Life:
    """What a pack does on a node: it ends after `seconds`, by dying if `dies`, and first reports that it runs if it `begins`.

    short: it dies by Ray's memory monitor. says: its last words, at its end. raises: the exception of the worker's constructor by which it
    dies.
    """

    seconds: float
    dies: bool = False
    begins: bool = True
    short: bool = False
    says: str = ""
    raises: str = ""


@dataclass(eq=False)
class Reference:
    """A future answer: how a pack ended, the node of a worker, or the content of the board, which is available at once."""

    actor: "Actor"
    value: Any = None
    run: int | None = None
    pack: Pack | None = None
    began: float | None = None
    life: Life | None = None
    ended: bool = False


@dataclass(eq=False)
class Actor:
    """A worker, and the node on which it has a place."""

    needs: dict[str, float]
    node: Node | None = None
    dead: bool = False
    references: list[Reference] = field(default_factory=list)


class RayDouble:
    """The functions of the modules `ray` and `time` that `harness.executing.cluster` calls.

    life(pack, node): what the pack does there. ran: (pack, node, first second, last second) of every pack that ended.
    """

    def __init__(self, nodes: list[Node], life: Callable[[Pack, Node], Life]):
        self.table, self.life, self.now = nodes, life, 0.0
        self.board, self.actors = Board(), list[Actor]()
        self.ran = list[tuple[Pack, str, float, float]]()
        self.util = SimpleNamespace(client=SimpleNamespace(ray=SimpleNamespace(is_connected=lambda: False)))

    def get_runtime_context(self) -> Any:
        """Of the driver; its board needs no place on a node."""
        return SimpleNamespace(get_node_id=lambda: "0f" * 28, gcs_address="nowhere:1")

    # the module `time`

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self._until(self.now + seconds)

    # the module `ray`

    def is_initialized(self) -> bool:
        return True

    def shutdown(self) -> None:
        """Nothing to end."""

    def cluster_resources(self) -> dict[str, float]:
        return {}

    def nodes(self) -> list[dict[str, Any]]:
        return [
            {"NodeID": node.name, "NodeManagerHostname": node.name, "Alive": self.now < node.gone, "Resources": node.resources}
            for node in self.table
            if self.now >= node.joins
        ]

    def remote(self, kind: type) -> Any:
        return SimpleNamespace(options=lambda **options: SimpleNamespace(remote=lambda *given: self._actor(kind, options)))

    def get(self, reference: Reference, timeout: float | None = None) -> Any:
        if reference.pack is None:
            return reference.value or reference.actor.node.name
        if not reference.ended:
            if reference.life is not None and reference.life.short:
                name = reference.actor.node.name
                raise OutOfMemoryError(f"Memory on the node (IP: {name}.local, ID: {name}) was 23GB used / 24GB limit (0.96)")
            if reference.life is not None and reference.life.raises:
                trace = (
                    f'Traceback (most recent call last):\n  File "ray_worker.py", line 28, in __init__\n{reference.life.raises}'
                )
                raise ActorDiedError(
                    RayTaskError("Slot.__init__", trace, None, "ray::Slot", 7, reference.actor.node.name, "Slot", "0a")
                )
            raise ActorDiedError()
        return Outcome(reference.pack.id, "committed", len(reference.pack.replicates))

    def wait(self, references: list[Reference], num_returns: int = 1, timeout: float = 0.0) -> tuple[list, list]:
        """The clock goes to the first answer, or by `timeout`."""
        self._until(min([self.now + timeout, *(self._end(each) for each in references)]))
        done = [each for each in references if self._end(each) <= self.now][:num_returns]
        return done, [each for each in references if each not in done]

    def kill(self, actor: Any) -> None:
        actor.record.dead = True
        self._until(self.now)

    def _actor(self, kind: type, options: dict[str, Any]) -> Any:
        if kind is Board:
            record = Actor({})
            names = {name: self._called(record, getattr(self.board, name)) for name in ("take", "stop")}
            return SimpleNamespace(record=record, **names)
        assert kind is Slot
        record = Actor({"CPU": options["num_cpus"], **options.get("resources", {})})
        self.actors.append(record)
        self._until(self.now)
        return SimpleNamespace(
            record=record,
            node=SimpleNamespace(remote=lambda: self._reference(record)),
            run=SimpleNamespace(remote=lambda pack, uri, study, board, run, begun: self._reference(record, run=run, pack=pack)),
        )

    def _called(self, record: Actor, method: Callable) -> Any:
        return SimpleNamespace(remote=lambda *given: Reference(record, value=method(*given)))

    def _reference(self, actor: Actor, **values: Any) -> Reference:
        actor.references.append(Reference(actor, **values))
        self._until(self.now)
        return actor.references[-1]

    def _end(self, reference: Reference) -> float:
        """The second at which an answer is there."""
        if reference.actor.dead or reference.ended:
            return self.now
        if reference.pack is None:
            return self.now if reference.actor.node else math.inf
        return math.inf if reference.began is None else min(reference.began + reference.life.seconds, reference.actor.node.gone)

    def _until(self, second: float) -> None:
        """Let everything happen up to a second."""
        while True:
            self._step()
            running = [each for actor in self.actors for each in actor.references if each.began is not None and not actor.dead]
            events = [self._end(each) for each in running] + [
                second for node in self.table for second in (node.joins, node.gone)
            ]
            following = min((each for each in events if self.now < each <= second), default=None)
            if following is None:
                break
            self.now = following
        self.now = max(self.now, second)
        self._step()

    def _step(self) -> None:
        """What happens at this second: packs end, workers die, those that wait get a place, packs begin and say how far they are."""
        for actor in self.actors:
            actor.dead |= actor.node is not None and self.now >= actor.node.gone
            for each in [] if actor.dead else list(actor.references):
                if each.began is not None and self._end(each) <= self.now:
                    actor.references.remove(each)
                    actor.dead |= each.life.dies
                    each.ended = not actor.dead
                    if each.life.says:
                        self.board.note(each.run, STEPS, [each.life.says])
                    if each.ended:
                        self.ran.append((each.pack, actor.node.name, each.began, self.now))
        for actor in self.actors:
            if actor.node is None and not actor.dead:
                there = [node for node in self.table if node.joins <= self.now < node.gone]
                actor.node = next((node for node in there if self._fits(actor, node)), None)
            for each in [] if actor.dead or actor.node is None else actor.references:
                if each.pack is not None and each.began is None:
                    each.began, each.life = self.now, self.life(each.pack, actor.node)
                if each.pack is not None and each.life.begins:
                    self.board.note(each.run, int((self.now - each.began) / each.life.seconds * STEPS), [])

    def _fits(self, actor: Actor, node: Node) -> bool:
        there = [other for other in self.actors if other.node is node and not other.dead]
        return all(
            sum(each.needs.get(name, 0) for each in [*there, actor]) <= node.resources.get(name, 0) for name in actor.needs
        )


def connect(ray: RayDouble, kinds: Sequence[Kind], patch: pytest.MonkeyPatch) -> Cluster:
    """A connection to the double."""
    nothing = SimpleNamespace(**dict.fromkeys(("started", "ended", "poll"), lambda *given: None))
    patch.setattr(cluster, "ray", ray)
    patch.setattr(ray_connection, "ray", ray)
    patch.setattr(cluster, "time", ray)
    patch.setattr(dispatch, "time", ray)
    patch.setattr(cluster, "watched", lambda address, say: contextlib.nullcontext())
    patch.setattr(cluster, "_draining", set)
    patch.setattr(cluster, "_has_place", lambda worker: worker.actor.record.node is not None)
    patch.setattr(Cluster, "metrics", lambda self, study: nothing)
    return Cluster("cpu", kinds=kinds)


def run_packs(
    packs: list[Pack], store: Store, ray: RayDouble, kinds: Sequence[Kind], rates: Mapping[str, Rate], patch: pytest.MonkeyPatch
) -> list[Outcome]:
    """Run packs on the double's nodes and return how they ended. rates: by shape, as they were measured on the kinds there are."""
    connection = connect(ray, kinds, patch)
    connection.place(rates, {kind.name: 10**9 for kind in connection.kinds()})
    seconds = {each.id: rates[shape(each.signature, each.kind)].pack_seconds(STEPS) for each in packs}
    progress = Progress(packs, seconds, 0, sum(len(each.replicates) for each in packs))
    return connection.run(packs, store, "", progress, Interrupt())
