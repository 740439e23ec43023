"""Which slots run a study's packs, and what becomes of packs whose workers die: on a double of Ray in virtual time."""

import contextlib
import itertools
from dataclasses import replace

import pytest

from harness.announce import announce
from harness.executing.cluster import Cluster
from harness.executing.leases import Leases
from harness.machine.interrupt import Interrupt
from harness.planning.plan import shape
from harness.planning.throughput import Rate
from harness.prepare import prepare
from harness.run import train_all
from harness.study.load import from_tree
from harness.study.slot_kinds import Kind
from results.store.tables import log_path, open_store, read, read_bytes
from tests.harness.executing.ray_double import STEPS, Life, Node, RayDouble, connect, run_packs
from tests.harness.packs import condition, pack

BIG, SMALL = Kind("cpu", resource="big"), Kind("cpu", resource="small")
SECONDS = {"big": 10.0, "small": 100.0}  # of a pack on a slot of each kind


def packs_of(big, small=0):
    """Packs of one replicate; so many are sized for each kind."""
    kinds = [BIG] * big + [SMALL] * small
    return [replace(pack(condition("lstm", steps=STEPS), [seed]), kind=kind.name) for seed, kind in enumerate(kinds)]


def nodes(gone=float("inf")):
    """One slot of each kind; the big one is lost at a second."""
    return [Node("big", {"CPU": 1.0, "big": 1.0}, gone), Node("small", {"CPU": 1.0, "small": 1.0})]


def runs(packs, folder, monkeypatch, ray=None, kinds=(BIG, SMALL)):
    """(seed, node, first second, last second) of every pack that ended; all are committed."""
    ray = ray or RayDouble(nodes(), lambda pack, node: Life(SECONDS[node.name]))
    rates = {shape(packs[0].signature, kind.name): Rate(1, SECONDS[kind.resource or "big"] / STEPS, 0.0, 10) for kind in kinds}
    outcomes = run_packs(packs, open_store(folder, "tiny"), ray, kinds, rates, monkeypatch)
    assert sorted(each.pack for each in outcomes if each.status == "committed") == sorted(each.id for each, *_ in ray.ran)
    return [(each.replicates[0].init_seed, *rest) for each, *rest in ray.ran]


def test_every_pack_runs_once_and_on_a_slot_of_its_own_kind_where_both_have_work(tmp_path, monkeypatch):
    ran = runs(packs_of(big=10, small=1), tmp_path, monkeypatch)
    assert sorted(seed for seed, *_ in ran) == list(range(11))
    assert {seed for seed, node, *_ in ran if node == "small"} == {10}


@pytest.mark.parametrize("count", [2, 9, 12, 15, 25])
def test_a_study_ends_as_soon_as_with_the_best_sharing_of_its_packs(count, tmp_path, monkeypatch):
    """Against every way to share them out: a slow slot takes a pack only where the fast ones would take longer."""
    ends = [max(SECONDS["small"] * slow, SECONDS["big"] * (count - slow)) for slow in range(count + 1)]
    ran = runs(packs_of(count), tmp_path, monkeypatch)
    assert sorted(seed for seed, *_ in ran) == list(range(count))
    assert max(last for *_, last in ran) == pytest.approx(min(ends), abs=2)  # a driver looks once a second


def test_packs_of_a_node_that_is_lost_run_on_the_slots_that_are_left(tmp_path, monkeypatch, capsys):
    """Also the one that was given to a worker for which there is no place any more."""
    ray = RayDouble(nodes(gone=15.0), lambda pack, node: Life(SECONDS[node.name]))
    ran = runs(packs_of(big=4), tmp_path, monkeypatch, ray)
    assert [node for _, node, *_ in ran] == ["big", "small", "small", "small"]
    assert sorted(seed for seed, *_ in ran) == [0, 1, 2, 3]
    assert all(one[3] <= other[2] for one, other in itertools.pairwise(ran))  # one slot, one pack at a time
    assert "was on a node that is lost" in capsys.readouterr().out


def test_a_kind_that_joins_after_planning_takes_no_packs(tmp_path, monkeypatch, capsys):
    """As the driver says when it plans; nothing was measured there."""
    ray = RayDouble([*nodes()[1:], Node("late", {"CPU": 1.0, "big": 1.0}, joins=150.0)], lambda pack, node: Life(100.0))
    rates = {shape(each.signature, SMALL.name): Rate(1, 10.0, 0.0, 10) for each in packs_of(0, small=3)}
    outcomes = run_packs(packs_of(0, small=3), open_store(tmp_path, "tiny"), ray, (SMALL, BIG), rates, monkeypatch)
    assert [each.status for each in outcomes] == ["committed"] * 3
    assert {node for _, node, *_ in ray.ran} == {"small"}
    assert "no node of the Ray cluster has the slots cpu big: nothing is planned for them" in capsys.readouterr().out


def test_experiments_run_on_slots_of_every_kind(tmp_path, monkeypatch):
    """Their packs are sized for none."""
    ray, said = RayDouble(nodes(), lambda pack, node: Life(20.0)), []
    slots = [kind.as_dict() for kind in (BIG, SMALL)]
    experiment = {"name": "ngram_stationarity", "length": 8, "sequences": 128}
    tree = {"name": "own", "question": "q?", "experiment": experiment, "replicates": 4, "slots": slots, "wandb": "off"}
    study = from_tree(tree | {"store": str(tmp_path), "pack": {"size": 1}})
    executor = connect(ray, study.slots, monkeypatch)
    monkeypatch.setattr(Cluster, "check_store", lambda self, store, uri: None)
    prepared = prepare(study, executor, guesses={study.conditions[0].experiment.words: 20.0})
    announce(prepared, said.append)
    assert [line for line in said if "packs" in line] == [
        line for line in said if line.startswith("  to do: 4 replicates in 4 packs")
    ]
    outcomes = train_all(prepared, executor, Interrupt())
    assert [each.status for each in outcomes] == ["committed"] * 4
    assert sorted(node for _, node, *_ in ray.ran) == ["big", "big", "small", "small"]


def test_a_pack_that_waits_for_a_slot_is_counted(tmp_path, monkeypatch, capsys):
    """The only node is lost, and another joins a minute later."""
    big = {"CPU": 1.0, "big": 1.0}
    ray = RayDouble([Node("big", big, gone=5.0), Node("later", big, joins=60.0)], lambda pack, node: Life(10.0))
    assert [node for _, node, *_ in runs(packs_of(big=1), tmp_path, monkeypatch, ray, kinds=(BIG,))] == ["later"]
    assert "waiting for a free CPU (cpu big) of the Ray cluster: 1 pack has none yet" in capsys.readouterr().out


def test_leases_are_renewed_beside_the_drivers_loop(tmp_path, monkeypatch):
    """Hundreds of them take seconds to write, in which the loop would start and settle nothing."""
    beside = []

    @contextlib.contextmanager
    def renewing(self):
        beside.append(True)
        yield
        beside.clear()

    def life(pack, node):
        assert beside
        return Life(SECONDS[node.name])

    monkeypatch.setattr(Leases, "renewing", renewing)
    monkeypatch.setattr(Leases, "renew", lambda self: pytest.fail("the loop renews leases itself"))
    assert len(runs(packs_of(big=4), tmp_path, monkeypatch, RayDouble(nodes(), life))) == 4
    assert not beside


@pytest.mark.parametrize(("begins", "kinds"), [(False, []), (True, ["died"])])
def test_a_death_counts_once_the_pack_has_said_a_word(begins, kinds, tmp_path, monkeypatch):
    """Three workers die under a pack within a second, before the driver has read what they said."""
    lives = iter([Life(0.1, dies=True, begins=begins)] * 3)
    ray = RayDouble([Node("gpu-7", {"CPU": 1.0})], lambda pack, node: next(lives, Life(10.0)))
    one = replace(packs_of(big=1)[0], kind="cpu")
    runs([one], tmp_path, monkeypatch, ray, kinds=(Kind("cpu"),))
    store = open_store(tmp_path, "tiny")
    rows = read(store, "failures").to_pylist()
    assert [row["kind"] for row in rows] == kinds
    assert len(ray.ran) == (not begins)
    if rows:
        assert read_bytes(store, log_path(rows[0]["pack"], rows[0]["attempt"])).startswith(b"host: gpu-7\n")


def test_a_worker_that_can_not_start_says_why_at_once(tmp_path, monkeypatch, capsys):
    """As on a node whose environment lacks a package: the person need not wait until the pack is given up."""
    lives = iter([Life(0.1, dies=True, begins=False, raises="ModuleNotFoundError: No module named 'my_models'")])
    ray = RayDouble([Node("gpu-7", {"CPU": 1.0})], lambda pack, node: next(lives, Life(10.0)))
    assert len(runs([replace(packs_of(big=1)[0], kind="cpu")], tmp_path, monkeypatch, ray, kinds=(Kind("cpu"),))) == 1
    why = (
        "a worker on the node gpu-7 could not start (ModuleNotFoundError: No module named 'my_models'). Such a pack waits, 1 s"
    )
    assert why in capsys.readouterr().out


def test_a_node_that_is_short_of_memory_delays_its_packs_and_fails_none(tmp_path, monkeypatch, capsys):
    """Ray's monitor ends the workers of a pack of two for a minute, each before the pack's first word."""

    def life(pack, node):
        return Life(0.2, dies=True, begins=False, short=True) if ray.now < 60 else Life(10.0)

    ray = RayDouble([Node("gpu-7", {"CPU": 1.0})], life)
    two = replace(pack(condition("lstm", steps=STEPS), [0, 1]), kind="cpu")
    ran = runs([two], tmp_path, monkeypatch, ray, kinds=(Kind("cpu"),))
    assert [node for _, node, *_ in ran] == ["gpu-7"]
    assert read(open_store(tmp_path, "tiny"), "failures").num_rows == 0
    said = capsys.readouterr().out
    assert said.count("the node gpu-7 is short of memory, which other processes use") == 1
    assert len(ray.actors) <= 8
