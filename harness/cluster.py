"""`executor=ray`: packs on reused Ray workers, one a device slot. The only module that imports ray.

The scheduler, the queues and the heartbeats are Ray's. A worker is an actor that outlives many packs; it commits a pack itself, so a
driver that dies loses nothing but the packs in flight, and those go on from their checkpoints.
"""

import contextlib
import logging
import os
import secrets
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

import harness.checkpoint as checkpoints
from harness.deaths import Deaths
from harness.execute import Outcome, halves, record_failure, run_pack
from harness.interrupt import Interrupt
from harness.pack import Pack
from harness.probe import Rate
from harness.progress import Progress
from results.store import Store, delete, open_store, write_bytes

_POLL_S = 1.0
_RECYCLE = 200  # packs a worker lives for: long-lived processes leak
_ANSWER_S = 10.0  # for a cluster to answer
_STOP_S = 120.0  # that workers get to save what they run
_OBJECT_STORE = 100 * 2**20  # bytes; packs and outcomes are small


class _Board:
    """The actor that running packs note their step on, and read from whether they should stop."""

    def __init__(self) -> None:
        self._steps: dict[str, int] = {}
        self._stop = False

    def note(self, pack: str, step: int) -> bool:
        self._steps[pack] = step
        return self._stop

    def take(self) -> dict[str, int]:
        """What was noted since the last call."""
        steps, self._steps = self._steps, {}
        return steps

    def stop(self) -> None:
        self._stop = True


class _Slot:
    """The actor: one device slot. Packs run in its main thread, whose memory glibc can be told to keep."""

    def __init__(self, device: str):
        from harness.device import prepare, resolve

        self._device = resolve(device)
        prepare(self._device)

    def node(self) -> str:
        return ray.get_runtime_context().get_node_id()

    def run(self, pack: Pack, uri: str, study: str, board: Any) -> Outcome:
        link = _Link(board, pack.id)
        return run_pack(pack, open_store(uri, study), self._device, link.report, link.should_stop)

    def measure(self, pack: Pack) -> Rate:
        from harness.probe import measure

        return measure(pack, self._device)

    def best_rate(self, packs: Mapping[int, Pack], largest: int) -> Rate:
        from harness.probe import best_rate

        return best_rate(
            packs.__getitem__, largest, self._device, share=os.cpu_count() or 1 if self._device.type == "cpu" else 1
        )


class _Link:
    """A running pack's end of the board: at most one note a second, never waited for."""

    def __init__(self, board: Any, pack: str):
        self._board, self._pack = board, pack
        self._step = 0
        self._asked: Any = None
        self._last = 0.0
        self._stop = False

    def report(self, step: int) -> None:
        self._step = step

    def should_stop(self) -> bool:
        now = time.monotonic()
        if now - self._last < _POLL_S:
            return self._stop
        self._last = now
        if self._asked is None:
            self._asked = self._board.note.remote(self._pack, self._step)
        elif ray.wait([self._asked], timeout=0)[0]:
            # a board that is gone went with its driver, which ends this worker too
            with contextlib.suppress(RayError):
                self._stop = ray.get(self._asked)
            self._asked = None
        return self._stop


@dataclass
class _Worker:
    actor: Any
    node: str = ""
    where: Any = None  # the answer to come, while `node` is unknown
    packs: int = 0


class Cluster:
    """A connection to the cluster of RAY_ADDRESS, or to one of this machine that ends with the process.

    device: auto | cpu | cuda; slots: cores or GPUs of the cluster.
    """

    def __init__(self, device: str):
        _connect()
        resources = ray.cluster_resources()
        gpus, cpus = int(resources.get("GPU", 0)), int(resources.get("CPU", 0))
        self.device = ("cuda" if gpus else "cpu") if device == "auto" else device.partition(":")[0]
        self.slots = gpus if self.device == "cuda" else cpus
        if not self.slots:
            ray.shutdown()
            wanted, other = ("GPU", "device=cpu") if self.device == "cuda" else ("CPU", "a cluster that has some")
            raise ValueError(f"device={device} but the Ray cluster has no {wanted}: use {other}")
        self._idle: list[_Worker] = []

    def measure(self, pack: Pack) -> Rate:
        return self._once(lambda actor: actor.measure.remote(pack))

    def best_rate(self, of_size: Callable[[int], Pack], largest: int) -> Rate:
        from harness.probe import sizes

        packs = {size: of_size(size) for size in sizes(self.device)}
        return self._once(lambda actor: actor.best_rate.remote(packs, largest))

    def check_store(self, store: Store, uri: str) -> None:
        """ValueError where some node does not see what the driver writes: a local folder on a cluster of several nodes."""
        nodes = [node for node in ray.nodes() if node["Alive"]]
        if len(nodes) < 2 or not store.is_local:
            return
        name = f".seen-{secrets.token_hex(8)}"
        write_bytes(store, name, b"manyseeds")
        try:
            for node in nodes:
                pinned = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
                task = ray.remote(_sees).options(num_cpus=0, scheduling_strategy=pinned)
                if not ray.get(task.remote(uri, store.study, name)):
                    raise ValueError(
                        f"the store {uri} is a folder that node {node['NodeManagerHostname']} does not share with this one: "
                        "pass store=s3://… or a folder on a file system that every node mounts"
                    )
        finally:
            delete(store, name)

    def run(self, packs: list[Pack], store: Store, uri: str, progress: Progress, interrupt: Interrupt) -> list[Outcome]:
        """Run the packs, the longest first, one in flight a worker."""
        return _Run(self, store, uri, progress).until_done(packs, interrupt)

    def close(self) -> None:
        ray.shutdown()

    def worker(self) -> _Worker:
        """An idle worker, or a new one."""
        if self._idle:
            return self._idle.pop()
        options = {"num_gpus": 1, "num_cpus": 0} if self.device == "cuda" else {"num_cpus": 1}
        actor = ray.remote(_Slot).options(**options).remote(self.device)
        return _Worker(actor)

    def free(self, worker: _Worker) -> None:
        """Keep a worker for the next pack, or end it when it has served long enough."""
        if worker.packs >= _RECYCLE:
            ray.kill(worker.actor)
        else:
            self._idle.append(worker)

    def _once(self, call: Callable[[Any], Any]) -> Any:
        worker = self.worker()
        result = ray.get(call(worker.actor))
        self.free(worker)
        return result


class _Run:
    """One pass over a queue of packs."""

    def __init__(self, cluster: Cluster, store: Store, uri: str, progress: Progress):
        self.cluster, self.store, self.uri, self.progress = cluster, store, uri, progress
        self.board: Any = ray.remote(_Board).options(num_cpus=0).remote()
        self.running: dict[Any, tuple[_Worker, Pack]] = {}
        self.queue: list[Pack] = []
        self.outcomes: list[Outcome] = []
        self.deaths = Deaths()

    def until_done(self, packs: list[Pack], interrupt: Interrupt) -> list[Outcome]:
        self.queue = list(packs)
        deadline = None
        while self.running or (self.queue and not interrupt.requested()):
            if interrupt.requested():
                if deadline is None:
                    deadline = time.monotonic() + _STOP_S
                    self.board.stop.remote()
                elif time.monotonic() > deadline:
                    self.progress.say(f"{len(self.running)} workers did not stop in time; their packs go on from checkpoints")
                    break
            else:
                self._fill()
            ready, _ = ray.wait(list(self.running), num_returns=1, timeout=_POLL_S)
            for reference in ready:
                self._settle(reference)
            self._poll()
        return self.outcomes

    def _fill(self) -> None:
        while self.queue and len(self.running) < self.cluster.slots:
            pack, worker = self.queue.pop(0), self.cluster.worker()
            worker.packs += 1
            if not worker.node:
                worker.where = worker.actor.node.remote()
            self.running[worker.actor.run.remote(pack, self.uri, self.store.study, self.board)] = (worker, pack)

    def _settle(self, reference: Any) -> None:
        worker, pack = self.running.pop(reference)
        try:
            outcome = ray.get(reference)
        except RayActorError as error:
            self._died(worker, pack, error)
            return
        self.cluster.free(worker)
        parts = halves(pack) if outcome.status == "oom" else []
        if parts:
            self.progress.say(f"pack {pack.id} of {outcome.replicates} replicates ran out of memory and goes on as two halves")
            self._split(pack, parts)
            return
        self.progress.end(outcome)
        self.outcomes.append(outcome)

    def _died(self, worker: _Worker, pack: Pack, error: RayActorError) -> None:
        """The worker's process is gone, perhaps with its node; the pack's checkpoint is in the store."""
        alive = {node["NodeID"] for node in ray.nodes() if node["Alive"]}
        step = max(checkpoints.steps(self.store, pack.id), default=0)
        verdict = self.deaths.verdict(pack.id, len(pack.replicates), step, bool(worker.node) and worker.node not in alive)
        if verdict == "retry":
            self.progress.say(f"the worker of pack {pack.id} died after step {step}; the pack goes on from there")
            self.queue.insert(0, replace(pack, attempt=pack.attempt + 1))
        elif verdict == "halve":
            self.progress.say(f"pack {pack.id} killed its worker three times at step {step} and goes on as two halves")
            self._split(pack, halves(pack))
        else:
            message = f"the worker died three times after step {step}"
            record_failure(self.store, pack, "died", step, message, " ".join(str(error).split()))
            outcome = Outcome(pack.id, "failed", len(pack.replicates), step=step, message=message)
            self.progress.end(outcome)
            self.outcomes.append(outcome)

    def _split(self, pack: Pack, parts: list[Pack]) -> None:
        checkpoints.clear(self.store, pack.id)
        self.progress.split(pack.id, parts)
        self.queue = parts + self.queue

    def _poll(self) -> None:
        """The steps of the running packs, and the nodes of workers that started."""
        known = {pack.id for _, pack in self.running.values()}
        with contextlib.suppress(RayError):
            for pack, step in ray.get(self.board.take.remote(), timeout=_POLL_S).items():
                if pack in known:
                    self.progress.step(pack, step)
        starting = [worker for worker, _ in self.running.values() if not worker.node]
        started, _ = ray.wait([w.where for w in starting], num_returns=len(starting), timeout=0) if starting else ([], [])
        for worker in starting:
            if worker.where in started:
                with contextlib.suppress(RayError):
                    worker.node = ray.get(worker.where)


def has_gpu() -> bool:
    """Whether the cluster has a GPU; leaves the connection open for the study."""
    _connect()
    return ray.cluster_resources().get("GPU", 0) >= 1


def _sees(uri: str, study: str, name: str) -> bool:
    store = open_store(uri, study)
    return store.filesystem.get_file_info(store.path(name)).is_file


def _connect() -> None:
    if ray.is_initialized():
        return
    address = os.environ.get("RAY_ADDRESS")
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.WARNING}
    if address:
        host, _, port = address.rpartition(":")
        try:
            if "://" not in address and port.isdigit():
                socket.create_connection((host, int(port)), timeout=_ANSWER_S).close()  # Ray itself tries for minutes
            ray.init(address=address, **quiet)
        except (OSError, RuntimeError) as error:
            raise ValueError(
                f"no Ray cluster answers at RAY_ADDRESS={address} ({' '.join(str(error).split())}): start it, or unset RAY_ADDRESS "
                "(where the cluster wants a token, set RAY_AUTH_MODE=token and the token it was started with)"
            ) from error
        return
    # a token of this cluster's own: otherwise Ray writes ~/.ray/auth_token, and clusters started later turn authentication on
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(address="local", include_dashboard=False, object_store_memory=_OBJECT_STORE, **quiet)
