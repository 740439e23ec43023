"""Which kind of slot a running study gives its packs to, without a Ray cluster."""

import itertools
import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
from ray.exceptions import ActorDiedError

from harness.executing import cluster
from harness.executing.hang_watch import Watch
from harness.executing.placement import Placement
from harness.planning.plan import shape
from harness.planning.throughput import Rate
from harness.study.slot_kinds import Kind
from results.progress.failures import log_path
from results.store.tables import open_store, read, read_bytes
from tests.harness.executing.dispatches import dispatch_of
from tests.harness.packs import condition, pack

BIG, SMALL = Kind("cpu", resource="big"), Kind("cpu", resource="small")


class _Actor:
    """A worker whose packs never end."""

    def __init__(self, kind):
        self.kind = kind
        self.node = self.run = SimpleNamespace(remote=lambda *arguments: object())


class _Cluster:
    """Stands for the connection: its slots by kind, and idle workers."""

    def __init__(self, placement, most, now):
        self.placement, self.most, self.now, self.waiting = placement, most, now, []

    def worker(self, kind):
        mine = [worker for worker in self.waiting if worker.kind == kind]
        if mine:
            self.waiting.remove(mine[0])
            return mine[0]
        return cluster._Worker(_Actor(kind), kind=kind)

    def idle(self):
        return [worker.kind for worker in self.waiting]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Two packs of the big kind and one of the small, which takes ten times as long for anything; one slot of each."""
    packs = [replace(pack(condition("lstm"), [seed]), kind=kind.name) for seed, kind in enumerate((BIG, BIG, SMALL))]
    rates = {shape(packs[0].signature, kind.name): Rate(1, step, 0.0, 10) for kind, step in ((BIG, 1.0), (SMALL, 10.0))}
    placement = Placement((BIG, SMALL), rates, {BIG.name: 100, SMALL.name: 100})
    one = object.__new__(cluster._Run)  # its __init__ starts an actor
    one.dispatch, one.watch, one.running, one.numbers = (
        dispatch_of(packs, open_store(tmp_path, "tiny")),
        Watch(),
        {},
        itertools.count(),
    )
    one.progress, one.store, one.uri, one.board = one.dispatch.progress, one.dispatch.store, "", None
    one.metrics = SimpleNamespace(started=lambda pack: None)
    one.cluster = _Cluster(placement, {BIG.name: 1, SMALL.name: 1}, {BIG.name: 1, SMALL.name: 1})
    one.left_at, one.killed = -math.inf, []
    monkeypatch.setattr(cluster, "ray", SimpleNamespace(kill=one.killed.append))
    return one


def _where(run):
    return {each.pack.replicates[0].init_seed: each.worker.kind for each in run.running.values()}


def test_every_slot_takes_a_pack_of_its_own_kind(run):
    run._fill()
    assert _where(run) == {0: BIG, 2: SMALL}
    assert len(run.dispatch.queued()) == 1


def test_a_slow_slot_leaves_what_the_fast_ones_will_have_done_sooner(run):
    run._fill()
    _end(run, 2)
    run._fill()
    assert _where(run) == {0: BIG}
    run.cluster.now[BIG.name], run.left_at = 0, -math.inf  # their nodes are gone, and a second has passed
    run._fill()
    assert _where(run) == {0: BIG, 1: SMALL}


def test_a_pack_that_waits_for_a_node_that_is_gone_moves_to_an_idle_slot_of_another_kind(run):
    run._fill()
    _end(run, 2)
    run.cluster.waiting = [cluster._Worker(_Actor(SMALL), "node", kind=SMALL)]
    run._rebalance()
    assert _where(run) == {0: BIG}  # it may come soon: the big slot's work is done sooner there
    run.cluster.now[BIG.name] = 0
    run._rebalance()
    assert _where(run) == {0: SMALL}
    assert [actor.kind for actor in run.killed] == [BIG]
    assert math.isinf(run._left()[BIG.name])


def _end(run, seed):
    (reference,) = (reference for reference, each in run.running.items() if each.pack.replicates[0].init_seed == seed)
    del run.running[reference]


class _Ray:
    """Stands for the ray module: the one running pack's worker is gone, and this is what the board was told."""

    def __init__(self, noted):
        self.noted = noted

    def get(self, reference, timeout=None):
        if reference == "board":
            return self.noted, []
        raise ActorDiedError()

    def nodes(self):
        return [{"NodeID": "n", "Alive": True, "NodeManagerHostname": "gpu-7"}]

    def kill(self, actor):
        """It is gone."""


@pytest.mark.parametrize(("noted", "kinds"), [({}, []), ({0: 0}, ["died"])])
def test_a_death_counts_once_the_pack_has_said_a_word(run, tmp_path, monkeypatch, noted, kinds):
    """Of the pack's own first word on the board, step 0, which no poll had fetched yet."""
    monkeypatch.setattr(cluster, "ray", _Ray(noted))
    run.board = SimpleNamespace(take=SimpleNamespace(remote=lambda: "board"))
    run.cluster.free = None
    for _ in range(3):
        each = run.dispatch.next()
        run.running["pack"] = cluster._Running(0, cluster._Worker("actor", "n"), each)
        run._settle("pack")
    rows = read(run.store, "failures").to_pylist()
    assert [row["kind"] for row in rows] == kinds
    if rows:
        assert read_bytes(run.store, log_path(rows[0]["pack"], rows[0]["attempt"])).startswith(b"host: gpu-7\n")
