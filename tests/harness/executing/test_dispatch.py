"""Which pack comes next, and what two drivers and the person know of a pack that is halved or whose worker dies."""

import os
import shutil
import time
from types import SimpleNamespace

import pytest
import torch

import results.store.tables
from harness.executing import dispatch as dispatch_module
from harness.executing import leases as lease_files
from harness.executing.leases import LEASE_S, Leases
from harness.executing.missing_mount import check_there, run_there
from harness.executing.progress import Progress
from harness.executing.run_pack import Outcome
from harness.local import run_packs
from harness.machine import store_retry as patience
from harness.machine.interrupt import Interrupt
from launch.cli import main
from results.store.tables import committed, log_path, open_store, read, read_bytes, write_bytes
from tests.harness.executing.dispatches import dispatch_of
from tests.harness.packs import condition, pack

CPU = torch.device("cpu")
RAY = "The actor died unexpectedly. pid: 4711 namespace: x ip: 10.0.0.7 killed by SIGSEGV"


# a pack that its worker never began


@pytest.fixture
def clock(monkeypatch):
    """The seconds of the dispatch's clock, which a test sets."""
    now = [1000.0]
    monkeypatch.setattr(dispatch_module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def test_an_idle_worker_that_was_killed_costs_its_next_pack_a_second(store, packs, capsys, clock):
    dispatch = dispatch_of([packs[1]], store)
    dispatch.died(dispatch.next(), "died", "node", (), RAY, "gpu-7", heard=False)
    assert dispatch.next() is None
    assert dispatch.packs_left() == 1
    assert [each.id for each in dispatch.queued()] == [packs[1].id]
    clock[0] += 1
    assert dispatch.next().id == packs[1].id
    assert read(store, "failures").num_rows == 0
    assert "a worker on the node gpu-7 died before its pack began. Such a pack waits" in capsys.readouterr().out


def test_packs_outlast_a_node_whose_memory_other_processes_use(store, packs, capsys, clock):
    """No pack is halved or failed in the ten minutes, others are tried meanwhile, and the person is told once."""
    dispatch, tries = dispatch_of(packs, store), dict.fromkeys((each.id for each in packs), 0)
    while clock[0] < 1000 + 600:
        while (each := dispatch.next()) is not None:
            tries[each.id] += 1
            dispatch.died(each, "oom", "0a1b", (), "the node ran low on memory", "gpu-7", heard=False)
        clock[0] += 0.5
    assert set(tries.values()) == {15}
    assert dispatch.outcomes == []
    clock[0] += 60
    assert {dispatch.next().id, dispatch.next().id} == set(tries)
    said = capsys.readouterr().out
    assert said.count("the node gpu-7 is short of memory, which other processes use") == 1
    assert "is given up after 10 min" in said
    assert "halves" not in said


def test_a_pack_that_can_never_begin_is_recorded_whole(store, packs, clock):
    dispatch = dispatch_of([packs[0]], store)
    while dispatch.packs_left():
        if (each := dispatch.next()) is not None:
            dispatch.died(each, "oom", "0a1b", (), "the node ran low on memory", "gpu-7", heard=False)
        clock[0] += 1
    (row,) = read(store, "failures").to_pylist()
    assert (row["kind"], row["pack"], len(row["keys"]), row["attempt"]) == ("oom", packs[0].id, 2, 1)
    assert row["exception"] == "16 workers in a row died before the pack began, though it waited 10 min in all"
    assert read_bytes(store, log_path(packs[0].id, 1)).startswith(b"host: gpu-7\n")


def test_a_pack_whose_node_is_lost_before_it_began_goes_on_at_once(store, packs, capsys, clock):
    dispatch = dispatch_of([packs[1]], store)
    for _ in range(30):
        dispatch.died(dispatch.next(), "died", "node", {"node"}, RAY, heard=False)
    assert dispatch.next().id == packs[1].id
    assert "was on a node that is lost, and has not begun" in capsys.readouterr().out


# a pack of another driver


def test_a_pack_that_is_committed_just_before_its_lease_is_taken_is_not_trained_again(store, packs, monkeypatch):
    real = Leases.take

    def take(self, pack):
        if pack == packs[0].id:  # the other driver commits it, and drops its lease
            assert run_there(packs[0], store, CPU, lambda step: None, lambda: False, has_begun=False).status == "committed"
        return real(self, pack)

    monkeypatch.setattr(Leases, "take", take)
    dispatch = dispatch_of(packs, store)
    assert dispatch.next() == packs[1]
    assert dispatch.outcomes == [Outcome(packs[0].id, "committed", 2)]
    assert lease_files.read(store, packs[0].id) is None


# halves


def test_another_driver_takes_the_halves_of_a_pack_that_was_halved(store, packs):
    whole = packs[0]
    one, two = dispatch_of([whole], store), dispatch_of([whole], store)
    two.leases.holder = "far:1:7:x"
    one.ended(one.next(), Outcome(whole.id, "oom", 2))
    first = one.next()
    assert len(first.replicates) == 1
    second = two.next()
    assert second.replicates == whole.replicates[1:]
    assert one.next() is None  # the second half runs there
    two.ended(second, Outcome(second.id, "committed", 1))
    one.ended(first, Outcome(first.id, "committed", 1))
    one.close()
    two.close()
    assert not os.listdir(store.path("leases"))


def _fail_all(dispatch):
    while (pack := dispatch.next()) is not None:
        dispatch.ended(pack, Outcome(pack.id, "oom", len(pack.replicates)))
    dispatch.close()


def test_halves_that_fail_again_add_to_the_failures_that_the_store_has(store, packs):
    """As `manyseeds retry` runs them: the pack counts as a first attempt, its halves do not."""
    for _ in range(3):
        _fail_all(dispatch_of([packs[0]], store))
    rows = read(store, "failures", ["pack", "attempt"]).to_pylist()
    halves = {row["pack"] for row in rows}
    assert len(halves) == 2
    assert sorted((row["pack"], row["attempt"]) for row in rows) == sorted((id, count) for id in halves for count in (1, 2, 3))


def test_a_pack_that_failed_elsewhere_meanwhile_adds_to_its_failures(store, packs):
    one, two = dispatch_of([packs[1]], store), dispatch_of([packs[1]], store)
    two.leases.holder = "far:1:7:x"
    first = one.next()
    assert two.next() is None
    one.ended(first, Outcome(first.id, "oom", 1))
    _fail_all(two)
    assert sorted(read(store, "failures", ["attempt"])["attempt"].to_pylist()) == [1, 2]


def test_the_lease_of_a_halved_pack_is_renewed_and_ends_with_its_driver(store, packs, monkeypatch):
    leases = Leases(store, holder="far:1:7:x")
    leases.take("a")
    leases.halve("a")
    monkeypatch.setattr("harness.executing.leases._RENEW_S", -1.0)
    leases.renew()
    other = Leases(store)
    assert other.halved("a")
    assert not other.take("a")
    leases.close()
    assert not other.halved("a")
    assert other.take("a")


@pytest.mark.parametrize("leases", [True, False])
def test_a_local_driver_renews_its_lease_while_a_pack_says_nothing(store, packs, monkeypatch, leases):
    """As a long evaluation does, and a function of the person's own."""
    ends: list[set[float]] = []

    def silent(pack, *_):
        until, seen = time.monotonic() + 2, set()
        while len(seen) < 3 and time.monotonic() < until:
            seen.add((lease_files.read(store, pack.id) or ("", 0.0))[1])
            time.sleep(0.01)
        ends.append(seen)
        return Outcome(pack.id, "committed", 1)

    monkeypatch.setattr("harness.executing.missing_mount.run_pack", silent)
    monkeypatch.setattr(lease_files, "_RENEW_S", 0.05)
    progress = Progress([packs[1]], {packs[1].id: 1.0}, 0, 1)
    run_packs([packs[1]], store, CPU, progress, Interrupt(), leases)
    assert [len(seen) for seen in ends] == [3 if leases else 1]
    assert lease_files.read(store, packs[1].id) is None


def test_a_pack_of_one_that_is_said_to_be_halved_is_waited_for_no_longer_than_a_lease(store, packs):
    write_bytes(store, f"leases/{packs[1].id}.json", b'{"holder": "far:1:7:x", "expires": 1.0, "halved": true}')
    assert LEASE_S > 1.0
    assert dispatch_of([packs[1]], store).next() == packs[1]


# which pack suits


def test_the_gladliest_pack_is_taken_and_the_others_keep_their_order(store):
    packs = [pack(condition("lstm"), [seed]) for seed in range(4)]
    ranks = {packs[0].id: None, packs[1].id: 2, packs[2].id: 1, packs[3].id: 1}
    dispatch = dispatch_of(packs, store)
    taken = [dispatch.next(lambda each: ranks[each.id]) for _ in range(4)]
    assert taken == [packs[2], packs[3], packs[1], None]
    assert dispatch.queued() == [packs[0]]


# what the driver knows of a worker that died


def test_failures_leads_to_the_drivers_account_of_a_worker_that_died(store, packs, capsys):
    dispatch = dispatch_of([packs[1]], store)
    for _ in range(3):
        dispatch.died(dispatch.next(), "died", "0a1b", (), RAY, "gpu-7")
    capsys.readouterr()
    os.makedirs(store.path("replicates"))
    main(["failures", store.root, store.study])
    shown = capsys.readouterr().out
    path = f"{store.root}/{store.study}/{log_path(packs[1].id, 3)}"
    assert f"log: {path}" in shown
    assert "host gpu-7" in shown
    text = read_bytes(store, log_path(packs[1].id, 3)).decode()
    assert text.count("kind: died") == 3
    for words in ("checkpoint: step 0", "node: 0a1b, host gpu-7", "killed by SIGSEGV", "worker-*-4711.out"):
        assert words in text


# a mount that is away


def test_a_pack_does_not_begin_where_the_store_of_its_study_is_away(store, packs, monkeypatch):
    """The folder is moved away, and comes back: the pack waits for it."""
    write_bytes(store, "manifests/a.yaml", b"{}")
    away, calls = f"{store.root}-away", []
    shutil.move(store.root, away)
    os.mkdir(store.root)  # the mount point
    monkeypatch.setattr(patience, "PATIENCE_S", 60.0)

    def back(text):
        calls.append(text)
        os.rmdir(store.root)
        shutil.move(away, store.root)

    assert run_there(packs[1], store, CPU, lambda step: None, lambda: False, back).status == "committed"
    assert len(calls) == 1
    assert "is away" in calls[0]
    assert committed(store).num_rows == 1


def test_a_pack_whose_store_stays_away_is_unstored_and_writes_nothing_below_the_mount_point(store, packs, monkeypatch):
    monkeypatch.setattr(patience, "PATIENCE_S", 0.0)
    assert run_there(packs[1], store, CPU, lambda step: None, lambda: False).status == "unstored"
    assert not os.path.exists(store.root)


def test_a_store_that_goes_before_the_commit_is_waited_for(store, packs, monkeypatch):
    monkeypatch.setattr(patience, "PATIENCE_S", 0.0)
    write_bytes(store, "manifests/a.yaml", b"{}")

    def report(step):
        if step == 10:
            shutil.rmtree(store.root)

    outcome = run_there(packs[1], store, CPU, report, lambda: False)
    assert outcome.status == "unstored"
    assert "is away" in outcome.message
    assert not os.path.exists(store.path("replicates"))


def test_a_store_that_goes_during_the_commit_is_not_made_anew(store, packs, monkeypatch):
    """The mount goes after the first file, and comes back: the commit is made again where the study is."""
    monkeypatch.setattr(patience, "PATIENCE_S", 60.0)
    write_bytes(store, "manifests/a.yaml", b"{}")
    away, real, said = f"{store.root}-away", results.store.tables.write_local, []

    def write_once(target, data):
        real(target, data)
        if "/evaluations/" in target and not said:
            shutil.move(store.root, away)
            os.mkdir(store.root)  # the mount point

    def back(text):
        said.append(text)
        assert os.listdir(store.root) == []
        os.rmdir(store.root)
        shutil.move(away, store.root)

    monkeypatch.setattr(results.store.tables, "write_local", write_once)
    assert run_there(packs[1], store, CPU, lambda step: None, lambda: False, back).status == "committed"
    assert "is away" in said[0]
    assert committed(store).num_rows == 1


def test_the_local_executor_waits_for_the_mount_too(store, packs, monkeypatch):
    monkeypatch.setattr(patience, "PATIENCE_S", 0.0)
    write_bytes(store, "manifests/a.yaml", b"{}")

    class Away(Progress):
        def step(self, pack, step):
            super().step(pack, step)
            if step == 10:
                shutil.rmtree(store.root)

    progress = Away([packs[1]], {packs[1].id: 1.0}, 0, 1)
    outcomes = run_packs([packs[1]], store, CPU, progress, Interrupt(), leases=False)
    assert [outcome.status for outcome in outcomes] == ["unstored"]
    assert not os.path.exists(store.path("replicates"))


def test_a_death_while_the_mount_is_away_is_not_taken_for_one_at_step_0(store, packs, monkeypatch):
    monkeypatch.setattr(patience, "PATIENCE_S", 0.0)
    write_bytes(store, "manifests/a.yaml", b"{}")
    dispatch = dispatch_of([packs[1]], store)
    each = dispatch.next()
    shutil.rmtree(store.root)
    dispatch.died(each, "died", "node", (), RAY)
    assert dispatch.queued() == [each]  # unstored: once more, later
    assert not read(open_store(store.root, store.study), "failures").num_rows


def test_an_object_store_says_itself_when_it_is_away(store, monkeypatch):
    with pytest.raises(OSError, match="is away: it shows no manifest of tiny"):
        check_there(store)
    monkeypatch.setattr(type(store), "is_local", False)
    check_there(store)
