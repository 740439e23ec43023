"""`executor=ray`: packs on reused Ray workers, one a device slot. Ray is imported in this folder alone.

The scheduler, the queues and the heartbeats are Ray's. A worker is an actor that outlives many packs; it commits a pack itself, so a
driver that dies loses nothing but the packs in flight, and those go on from their checkpoints.
"""

import contextlib
import itertools
import math
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import ray
from ray._private.state import state as cluster_state
from ray.exceptions import OutOfMemoryError, RayActorError, RayError, RayTaskError
from ray.util.metrics import Counter, Gauge, Histogram
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from harness.executing.board import POLL_S, Board
from harness.executing.dispatch import Dispatch
from harness.executing.hang_watch import Watch
from harness.executing.leases import Leases
from harness.executing.metrics import Metrics
from harness.executing.place_of_death import place_of
from harness.executing.placement import Placement, time_left
from harness.executing.progress import Progress
from harness.executing.ray_connection import ANSWER_S, connect
from harness.executing.ray_head_watch import watched
from harness.executing.ray_worker import Slot
from harness.executing.run_pack import Outcome
from harness.executing.store_on_nodes import check_seen, own_error
from harness.machine.device import machine
from harness.machine.interrupt import Interrupt
from harness.planning.amounts import duration
from harness.planning.pack import Pack
from harness.planning.throughput import Rate
from harness.study.slot_kinds import Kind
from models.custom.custom import allowed
from results.errors import StudyError
from results.rows.plural import counted
from results.store.tables import Store

_RECYCLE = 200  # packs a worker lives for: long-lived processes leak
_STOP_S = 120.0  # that workers get to save what they run
_LOOK_S = 2.0  # between looks at the nodes
_SAY_S = 10.0  # seconds that a worker waits for a slot before the person is told
_TRIES = 3  # to measure packs
_PROCESS = 400_000_000  # bytes of a worker before its first tensor: torch, mostly


@dataclass
class _Worker:
    actor: Any
    node: str = ""
    where: Any = None  # the answer to come, while `node` is unknown
    packs: int = 0
    kind: Kind = field(default_factory=lambda: Kind("cpu"))


@dataclass
class _Running:
    number: int
    worker: _Worker
    pack: Pack
    since: float = 0.0
    step: int = 0
    heard: bool = False


class Cluster:
    """A connection to the cluster of RAY_ADDRESS, or to one of this machine that ends with the process.

    device: auto | cpu | cuda; leases: whether other drivers' are heeded; say: told what is waited for; kinds: of slots, () for a single one
    of all that `device` names. slots: the most that the cluster had; most_slots: the same by the name of the kind; slots_now: those that
    it has.
    asked(): whether the person wants to stop while packs are measured.
    """

    def __init__(self, device: str, leases: bool = True, say: Callable[[str], None] = print, kinds: Sequence[Kind] = ()):
        connect(say)
        self._own = "RAY_ADDRESS" not in os.environ
        self._machines: dict[str, str] = {}
        self.leases, self.say = leases, say
        self.asked: Callable[[], bool] = lambda: False
        has_gpus = ray.cluster_resources().get("GPU", 0) >= 1
        self.device = ("cuda" if has_gpus else "cpu") if device == "auto" else device.partition(":")[0]
        self.placement = Placement(tuple(kinds) or (Kind(self.device),))
        self.device = self.placement.kinds[0].device
        self.most_slots: dict[str, int] = {}
        self.slots_now: dict[str, int] = {}
        self.count_slots()
        if not self.slots:
            ray.shutdown()
            if kinds:
                names = ", ".join(kind.name for kind in kinds)
                raise StudyError(
                    f"no node of the Ray cluster has any of the study's slots ({names}): start some, or change slots"
                )
            wanted, other = ("GPU", "device=cpu") if self.device == "cuda" else ("CPU", "a cluster that has some")
            raise StudyError(f"device={device} but the Ray cluster has no {wanted}: use {other}")
        for kind in self.placement.kinds:
            if not self.most_slots[kind.name]:
                say(f"no node of the Ray cluster has the slots {kind.name}: nothing is planned for them")
        self._idle: list[_Worker] = []
        self._metrics: Metrics | None = None

    @property
    def slots(self) -> int:
        return sum(self.most_slots.values())

    def kinds(self) -> list[Kind]:
        """The kinds of slots that the cluster has had."""
        return [kind for kind in self.placement.kinds if self.most_slots[kind.name]]

    def measure(self, pack: Pack, kind: Kind | None = None) -> Rate:
        return self._answer(lambda actor: actor.measure.remote(pack), kind)

    def machine(self, kind: Kind | None = None) -> str:
        """The device of a slot, by name; each kind is asked once."""
        kind = kind or self.placement.kinds[0]
        if kind.name not in self._machines:
            here = self._own and kind.device == "cpu"
            self._machines[kind.name] = machine("cpu") if here else self._answer(lambda actor: actor.machine.remote(), kind)
        return self._machines[kind.name]

    def room(self, kind: Kind | None = None) -> int:
        """Bytes that tensors may take in a slot of a kind."""
        kind = kind or self.placement.kinds[0]
        if kind.memory is not None:
            from harness.planning.throughput import room_of

            return room_of(max(0, kind.memory - _PROCESS))
        return self._answer(lambda actor: actor.room.remote(), kind)

    def place(self, rates: Mapping[str, Rate], rooms: Mapping[str, int]) -> None:
        """Keep the measured rates and rooms, which decide where a pack may run."""
        self.placement = replace(self.placement, rates=rates, rooms=rooms)

    def check_store(self, store: Store, uri: str) -> None:
        """ValueError where some node does not see what the driver writes: a local folder on a cluster of several nodes."""
        check_seen(store, uri)

    def run(self, packs: list[Pack], store: Store, uri: str, progress: Progress, interrupt: Interrupt) -> list[Outcome]:
        """Run the packs in order, one at a time per worker."""
        with watched(ray.get_runtime_context().gcs_address, progress.say):
            return _Run(self, packs, store, uri, progress, interrupt).until_done()

    def count_slots(self) -> None:
        """Count the slots of all nodes there are.

        Slots of nodes that are gone still count in `most_slots`: a worker that waits for one makes an autoscaler bring it.
        """
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        self.slots_now = {kind.name: sum(kind.slots(node) for node in nodes) for kind in self.placement.kinds}
        asked = {kind.name: kind.count or 0 for kind in self.placement.kinds}
        self.most_slots = {
            name: max(count, asked[name], self.most_slots.get(name, 0)) for name, count in self.slots_now.items()
        }

    def metrics(self, study: str) -> Metrics:
        """The study's metrics, registered once a driver."""
        if self._metrics is None:
            self._metrics = Metrics(Counter, Gauge, Histogram, study)
        return self._metrics

    def close(self) -> None:
        ray.shutdown()

    def worker(self, kind: Kind) -> _Worker:
        """An idle worker of a kind, or a new one."""
        for worker in reversed(self._idle):
            if worker.kind == kind:
                self._idle.remove(worker)
                return worker
        actor = ray.remote(Slot).options(**kind.options()).remote(kind.device, kind.per_gpu, allowed())
        return _Worker(actor, kind=kind)

    def free(self, worker: _Worker) -> None:
        """Keep a worker for the next pack, or end it when it has served long enough."""
        if worker.packs >= _RECYCLE:
            ray.kill(worker.actor)
        else:
            self._idle.append(worker)

    def idle(self) -> list[Kind]:
        """The kinds of the idle workers, one each."""
        return [worker.kind for worker in self._idle]

    def leave(self, nodes: Collection[str]) -> None:
        """End the idle workers of these nodes."""
        for worker in [worker for worker in self._idle if worker.node in nodes]:
            self._idle.remove(worker)
            ray.kill(worker.actor)

    def _answer(self, call: Callable[[Any], Any], kind: Kind | None = None) -> Any:
        """The answer of one worker, or of another if it dies. KeyboardInterrupt where the person asks to stop meanwhile."""
        kind = kind or self.placement.kinds[0]
        for _ in range(_TRIES):
            worker = self.worker(kind)
            reference = call(worker.actor)
            began, said = time.monotonic(), bool(worker.node)
            while not ray.wait([reference], timeout=POLL_S)[0]:
                if self.asked():
                    ray.kill(worker.actor)
                    raise KeyboardInterrupt
                if not said and time.monotonic() - began > _SAY_S and not _has_place(worker):
                    said = True
                    self.count_slots()
                    has = self.slots_now[kind.name]
                    why = f"others hold the {has} that it has" if has else "it has none yet"
                    self.say(f"waiting for a free {words_of(kind)} of the Ray cluster: {why}")
            try:
                result = ray.get(reference)
            except RayActorError as error:
                reason = _raised_at_start(error) or " ".join(str(error).split())
                continue
            except RayTaskError as error:
                raise own_error(error) from error
            self.free(worker)
            return result
        raise StudyError(f"the worker died {_TRIES} times while the packs were measured: {reason}")


class _Run:
    """One pass over a queue of packs: carries them to workers and tells `Dispatch` how they ended."""

    def __init__(self, cluster: Cluster, packs: list[Pack], store: Store, uri: str, progress: Progress, interrupt: Interrupt):
        self.cluster, self.store, self.uri, self.progress, self.interrupt = cluster, store, uri, progress, interrupt
        self.metrics = cluster.metrics(store.study)
        leases = Leases(store, cluster.leases)
        self.dispatch = Dispatch(packs, store, progress, leases, interrupt.requested, self.metrics.ended)
        here = ray.get_runtime_context().get_node_id()  # the two end together
        pinned = NodeAffinitySchedulingStrategy(here, soft=False)
        self.board: Any = ray.remote(Board).options(num_cpus=0, max_restarts=-1, scheduling_strategy=pinned).remote()
        self.running: dict[Any, _Running] = {}
        self.watch = Watch()
        self.numbers = itertools.count()
        self.packs: dict[int, str] = {}  # ids by number of run, ended ones too: what a pack says last is heard after its end
        self.looked = self.polled = 0.0
        self.seconds_left: dict[str, float] = {}
        self.seconds_left_at = -math.inf
        self.said = False

    def until_done(self) -> list[Outcome]:
        try:
            with self.dispatch.leases.renewing():
                self._carry()
        finally:
            self.dispatch.close()
        return self.dispatch.outcomes

    def _carry(self) -> None:
        """Give packs to workers and take them back, until none is left or the person asks to stop."""
        deadline = None
        while self.running or (self.dispatch.packs_left() and not self.interrupt.requested()):
            if self.interrupt.requested():
                deadline = deadline or time.monotonic() + _STOP_S
                self.board.stop.remote()
                if time.monotonic() > deadline:
                    count = len(self.running)
                    self.progress.say(f"{count} workers did not stop in time; their packs go on from checkpoints")
                    break
            else:
                self._look()
                self._fill()
                self._rebalance()
            if self.running:
                ended = ray.wait(list(self.running), num_returns=1, timeout=POLL_S)[0]
                if ended:
                    ended = ray.wait(list(self.running), num_returns=len(self.running), timeout=0)[0]
                for reference in ended:
                    self._settle(reference)
            else:
                time.sleep(POLL_S)  # other drivers run what is left
            if time.monotonic() - self.polled > POLL_S:
                self._poll()
                self.polled = time.monotonic()
        self._hear()
        self.metrics.poll({}, {}, self.dispatch.packs_left())  # what the last look saw would stand while the report is made

    def _fill(self) -> None:
        placement = self.cluster.placement
        if len(placement.kinds) == 1:
            self._fill_kind(placement.kinds[0], None)
            return
        if time.monotonic() - self.seconds_left_at > POLL_S:  # not every time: it adds up the whole queue
            self.seconds_left, self.seconds_left_at = self._seconds_left(), time.monotonic()
        for kind in placement.kinds:
            self._fill_kind(kind, lambda pack, kind=kind: placement.rank(pack, kind, self.seconds_left))  # type: ignore[misc]

    def _fill_kind(self, kind: Kind, rank: Callable[[Pack], int | None] | None) -> None:
        """Give packs to the free slots of a kind."""
        free = self.cluster.most_slots[kind.name] - sum(run.worker.kind == kind for run in self.running.values())
        for _ in range(free):
            pack = self.dispatch.next(rank)
            if pack is None:
                break
            self._start(pack, kind)

    def _start(self, pack: Pack, kind: Kind) -> None:
        worker = self.cluster.worker(kind)
        worker.packs += 1
        number, now = next(self.numbers), time.monotonic()
        if worker.node:
            self.watch.begin(pack.id, now, self.progress.step_seconds(pack.id))
        else:
            worker.where = worker.actor.node.remote()
        reference = worker.actor.run.remote(pack, self.uri, self.store.study, self.board, number, self.dispatch.begun)
        self.running[reference] = _Running(number, worker, pack, now)
        self.packs[number] = pack.id
        self.metrics.started(pack.id)

    def _seconds_left(self) -> dict[str, float]:
        """Seconds until each kind has done its packs, by name."""
        running: dict[str, float] = {}
        for run in self.running.values():
            steps = run.pack.steps - run.step
            seconds = steps * self.progress.step_seconds(run.pack.id)
            running[run.worker.kind.name] = running.get(run.worker.kind.name, 0.0) + seconds
        return time_left(self.cluster.placement, self.dispatch.queued(), running, self.cluster.slots_now)

    def _take(self, reference: Any) -> _Running:
        run = self.running.pop(reference)
        self.watch.end(run.pack.id)
        return run

    def _settle(self, reference: Any) -> None:
        run = self.running[reference]
        try:
            outcome = ray.get(reference)
        except RayTaskError as error:  # not the training, which raises nothing: the pack or its store can't be opened there
            self._take(reference)
            self.cluster.free(run.worker)
            self.dispatch.raised(run.pack, str(error.cause or error), str(error))
            return
        except RayError as error:
            if not run.heard and self._hear() is None:
                run.heard = True  # a board that is being started again knows nothing of it
            self._started(time.monotonic())  # where it was, if it said so since the last look
            self._take(reference)
            ray.kill(run.worker.actor)  # one that is only out of reach must not go on beside its successor
            self._died(run, "oom" if isinstance(error, OutOfMemoryError) else "died", error)
            return
        self._take(reference)
        if outcome.status == "stopped" and not self.interrupt.requested():
            ray.kill(run.worker.actor)  # its node or its process is about to end
            self.dispatch.again(run.pack, f"its worker was told to end and saved step {outcome.step}")
            return
        self.cluster.free(run.worker)
        self.dispatch.ended(run.pack, outcome)

    def _died(self, run: _Running, kind: str, error: Exception | str) -> None:
        """Tell the dispatch that a worker's process is gone, perhaps with its node; the pack's checkpoint is in the store."""
        nodes, text = ray.nodes(), " ".join(str(error).split())
        at, host = place_of(run.worker.node, text, nodes)
        lost = {node["NodeID"] for node in nodes if not node["Alive"]}
        if isinstance(error, RayActorError) and error.preempted:
            lost.add(at)
        self.dispatch.died(run.pack, kind, at, lost, text, host, run.heard or kind == "hung", _raised_at_start(error))

    def _look(self) -> None:
        """Count the slots of nodes that joined, and stop what runs on nodes that are told to go."""
        if time.monotonic() - self.looked < _LOOK_S:
            return
        self.looked = time.monotonic()
        self.cluster.count_slots()
        if leaving := _draining():
            self.cluster.leave(leaving)
            self.board.stop.remote([run.number for run in self.running.values() if run.worker.node in leaving])

    def _rebalance(self) -> None:
        """Let idle workers take packs whose own workers have no place yet, once everything is given out."""
        waiting = [reference for reference, run in self.running.items() if not run.worker.node]
        idle, placement = self.cluster.idle() if waiting else [], self.cluster.placement
        left = self._seconds_left() if idle and len(placement.kinds) > 1 else {}
        for reference in waiting:
            pack = self.running[reference].pack
            suits = next((kind for kind in idle if placement.rank(pack, kind, left) is not None), None)
            if suits is not None:
                idle.remove(suits)
                ray.kill(self._take(reference).worker.actor)
                self._start(pack, suits)

    def _poll(self) -> None:
        """Read the steps of the running packs, see which workers have started, and kill packs that hang."""
        steps = self._hear()
        if steps is None:
            return
        now = time.monotonic()
        sizes = {run.pack.id: len(run.pack.replicates) for run in self.running.values()}
        self.metrics.poll(sizes, steps, self.dispatch.packs_left())
        self._started(now)
        silent = self.watch.silent(now)
        for reference in [reference for reference, run in self.running.items() if run.pack.id in silent]:
            allowed = duration(self.watch.allowed(self.running[reference].pack.id))
            run = self._take(reference)
            ray.kill(run.worker.actor)
            self._died(run, "hung", f"the pack made no step and no part of an evaluation for {allowed}, and was killed")

    def _hear(self) -> dict[str, int] | None:
        """Read the board: the steps of the running packs, by id; None where it is being started again."""
        runs = {run.number: run for run in self.running.values()}
        now = time.monotonic()
        try:
            noted, said = ray.get(self.board.take.remote(), timeout=ANSWER_S)
        except RayError:
            return None
        for number, step in noted.items():
            if number in runs:
                run = runs[number]
                run.heard, run.step = True, step
                self.watch.heard(run.pack.id, now, step)
                self.progress.step(run.pack.id, step)
        for number, text in said:
            self.progress.say(f"pack {self.packs[number]}: {text}")
        return {runs[number].pack.id: step for number, step in noted.items() if number in runs}

    def _started(self, now: float) -> None:
        starting = [run for run in self.running.values() if not run.worker.node]
        answers = [run.worker.where for run in starting]
        there = ray.wait(answers, num_returns=len(answers), timeout=0)[0] if answers else []
        for run in starting:
            if run.worker.where in there:
                with contextlib.suppress(RayError):
                    run.worker.node = ray.get(run.worker.where)
                    self.watch.begin(run.pack.id, now, self.progress.step_seconds(run.pack.id))
        late = [run.worker for run in starting if not run.worker.node and now - run.since > _SAY_S]
        if not self.said and late and not any(_has_place(worker) for worker in late):
            self.said = True
            names = dict.fromkeys(words_of(worker.kind) for worker in late)
            self.progress.say(
                f"waiting for a free {' and a free '.join(names)} of the Ray cluster: "
                f"{counted(len(late), 'pack')} {'has' if len(late) == 1 else 'have'} none yet"
            )


def words_of(kind: Kind) -> str:
    """Resource name of a slot, such as "GPU (cuda A100)"."""
    what = "GPU" if kind.device == "cuda" else "CPU"
    return what if kind.name == kind.device else f"{what} ({kind.name})"


def _has_place(worker: _Worker) -> bool:
    """Whether Ray has given a worker its resources, though it may not be up yet."""
    return bool(cluster_state.actor_table(worker.actor._actor_id.hex()).get("Pid"))


def _draining() -> set[str]:
    """Ids of the nodes that were told to go, by an autoscaler before a preemption or by `ray drain-node`."""
    return set(cluster_state.get_draining_nodes())


def _raised_at_start(error: Exception | str) -> str:
    """The exception that the constructor of a worker raised, as the last line of its traceback has it; "" for any other death."""
    if not (isinstance(error, RayActorError) and error.actor_init_failed):
        return ""
    return str(error).strip().splitlines()[-1].strip()
