"""What becomes of packs when things fail: the decisions, without a Ray cluster (docs/reference/faults.md; with one: test_faults_ray.py)."""

import errno
import json
import os
import sys
import time
from functools import partial
from types import SimpleNamespace

import pyarrow as pa
import pytest
import torch
from ray.exceptions import ActorDiedError, OutOfMemoryError, RayTaskError

import harness.training.checkpoint as checkpoints
from harness.executing import cluster
from harness.executing import run_pack as execute
from harness.executing.hang_watch import MULTIPLE, QUIET_S, START_S, Watch
from harness.executing.leases import LEASE_S
from harness.executing.ray_worker import Slot
from harness.executing.run_pack import Outcome, record_failure, run_pack
from harness.local import Local
from harness.machine import store_retry as patience
from harness.machine.store_retry import patiently
from models.lstm import Recurrent
from results.errors import DamagedFile, StoreError, StudyError
from results.store.schema import TABLES
from results.store.tables import committed, read, write_bytes
from tests.harness.executing.dispatches import dispatch_of
from tests.harness.packs import condition, pack

CPU = torch.device("cpu")


@pytest.fixture
def short(monkeypatch):
    """A store is waited for three seconds."""
    monkeypatch.setattr(patience, "PATIENCE_S", 3.0)


def _other(store, pack, seconds=LEASE_S):
    content = {"holder": "far:1:7:x", "expires": time.time() + seconds}
    write_bytes(store, f"leases/{pack.id}.json", json.dumps(content).encode())


def _no_space(*arguments):
    raise StoreError(errno.ENOSPC, os.strerror(errno.ENOSPC))


# packs that other drivers run


def test_a_pack_of_another_driver_is_left_to_it_and_the_person_is_told_once(store, packs, capsys, monkeypatch):
    monkeypatch.setattr("harness.executing.dispatch._LOOK_S", 0.0)
    _other(store, packs[0])
    dispatch = dispatch_of(packs, store)
    assert dispatch.next() == packs[1]
    assert [dispatch.next(), dispatch.next()] == [None, None]
    assert capsys.readouterr().out.count("one pack is run by another driver of this study") == 1
    assert dispatch.packs_left() == 1
    _other(store, packs[0], seconds=-1)
    assert dispatch.next() == packs[0]


def test_a_pack_that_another_driver_committed_is_not_trained_again(store, packs):
    assert run_pack(packs[0], store, CPU, lambda step: None, lambda: False).status == "committed"
    dispatch = dispatch_of(packs, store)
    assert dispatch.next() == packs[1]
    assert dispatch.outcomes == [Outcome(packs[0].id, "committed", 2)]


def test_what_another_driver_commits_meanwhile_is_counted_before_the_queue_is_empty(store, packs, monkeypatch):
    """With three equal packs, one of each driver done and one left, half of the time so far remains; alone it would be twice that."""
    now = [1000.0]
    monkeypatch.setattr("harness.executing.progress.time.monotonic", lambda: now[0])
    third = pack(condition("lstm"), [7, 8])
    _other(store, packs[0])
    dispatch = dispatch_of([*packs, third], store)
    assert dispatch.next() == packs[1]
    assert run_pack(packs[0], store, CPU, lambda step: None, lambda: False).status == "committed"
    now[0] += 100
    dispatch.ended(packs[1], Outcome(packs[1].id, "committed", 1))
    assert dispatch.next() == third
    assert dispatch.progress.packs_ended == 2
    assert dispatch.progress.seconds_left() == pytest.approx(50)
    assert {outcome.pack for outcome in dispatch.outcomes} == {packs[0].id, packs[1].id}
    assert dispatch.packs_left() == 0


def test_a_file_under_a_packs_name_that_lacks_its_rows_is_not_taken_for_it(store, packs):
    other = pack(condition("lstm"), [7])
    run_pack(other, store, CPU, lambda step: None, lambda: False)
    folder = store.path("replicates")
    os.rename(f"{folder}/{other.id}.parquet", f"{folder}/{packs[0].id}.parquet")
    assert dispatch_of(packs, store).next() == packs[0]


# deaths


def test_a_replicate_that_kills_its_worker_is_found_by_halving_and_recorded(store, packs):
    """The pack of two is halved after three deaths; the poisonous half is given up after three more, the other is unharmed."""
    whole = packs[0]
    poison = whole.part(whole.replicates[:1]).id
    dispatch = dispatch_of([whole], store)
    while (each := dispatch.next()) is not None:
        if each.id in (whole.id, poison):
            dispatch.died(each, "died", "node", (), "the worker is gone")
        else:
            dispatch.ended(each, run_pack(each, store, CPU, lambda step: None, lambda: False))
    assert sorted(outcome.status for outcome in dispatch.outcomes) == ["committed", "failed"]
    rows = read(store, "failures").to_pylist()
    assert [(row["pack"], row["kind"], row["keys"]) for row in rows] == [(poison, "died", [whole.replicates[0].key])]


def test_a_replicate_that_raises_is_found_by_halving_and_recorded_alone(store, packs, monkeypatch):
    """The whole pack raises, and so does the half with the unlucky seed; the other half is committed."""
    whole, train = packs[0], execute.train
    unlucky = whole.replicates[1]

    def raising(pack, *arguments, **named):
        if unlucky in pack.replicates:
            raise ArithmeticError(f"planted in {len(pack.replicates)}")
        return train(pack, *arguments, **named)

    monkeypatch.setattr(execute, "train", raising)
    dispatch = dispatch_of([whole], store)
    while (each := dispatch.next()) is not None:
        dispatch.ended(each, run_pack(each, store, CPU, lambda step: None, lambda: False))
    assert sorted(outcome.status for outcome in dispatch.outcomes) == ["committed", "failed"]
    (row,) = read(store, "failures").to_pylist()
    assert (row["keys"], row["kind"], row["exception"]) == ([unlucky.key], "raised", "ArithmeticError: planted in 1")
    assert "Traceback" in row["traceback"]


def test_a_pack_that_hangs_counts_as_a_death_and_is_recorded_as_hung(store, packs):
    alone = packs[1]
    dispatch = dispatch_of([alone], store)
    for _ in range(3):
        dispatch.died(dispatch.next(), "hung", "node", (), "silent for 10 min")
    assert dispatch.next() is None
    assert [(row["kind"], row["exception"]) for row in read(store, "failures").to_pylist()] == [
        ("hung", "hung three times after step 0")
    ]


def test_host_memory_halves_a_pack_at_once_and_gives_one_replicate_three_tries(store, packs):
    whole = packs[0]
    dispatch = dispatch_of([whole], store)
    dispatch.died(dispatch.next(), "oom", "node", (), "the node ran low on memory")
    first = dispatch.next()
    assert len(first.replicates) == 1
    for attempt in range(3):
        dispatch.died(first if not attempt else dispatch.next(), "oom", "node", (), "the node ran low on memory")
    assert [(row["pack"], row["kind"]) for row in read(store, "failures").to_pylist()] == [(first.id, "oom")]
    assert dispatch.next().replicates == whole.replicates[1:]


def test_device_memory_that_one_replicate_does_not_fit_into_is_recorded(store, packs, monkeypatch):
    def too_large(*arguments, **options):
        raise torch.OutOfMemoryError("planted")

    monkeypatch.setattr(execute, "train", too_large)
    dispatch = dispatch_of([packs[0]], store)
    while (each := dispatch.next()) is not None:
        dispatch.ended(each, run_pack(each, store, CPU, lambda step: None, lambda: False))
    assert [row["kind"] for row in read(store, "failures").to_pylist()] == ["oom", "oom"]


def test_memory_that_runs_out_in_a_function_halves_a_pack_and_is_recorded_with_its_traceback(store, packs, monkeypatch):
    def too_large(*arguments, **options):
        raise MemoryError

    monkeypatch.setattr(execute, "train", too_large)
    dispatch = dispatch_of([packs[0]], store)
    while (each := dispatch.next()) is not None:
        dispatch.ended(each, run_pack(each, store, CPU, lambda step: None, lambda: False))
    rows = read(store, "failures").to_pylist()
    assert [(row["kind"], row["exception"], len(row["keys"])) for row in rows] == [("oom", "MemoryError", 1)] * 2
    assert all("in too_large" in row["traceback"] for row in rows)


def test_a_model_that_ends_its_process_fails_alone(store, packs, monkeypatch):
    monkeypatch.setattr(Recurrent, "_logits", lambda *arguments: sys.exit(3))
    assert run_pack(packs[1], store, CPU, lambda step: None, lambda: False).status == "failed"
    (row,) = read(store, "failures").to_pylist()
    assert row["exception"] == "Exited: the training called sys.exit(3): raise an error instead"
    for measure in (Local("cpu").measure, partial(Slot.measure, SimpleNamespace(_device=CPU))):  # a Slot is a worker on Ray
        with pytest.raises(StudyError, match=r"^the training of .* called sys.exit\(3\): raise an error instead"):
            measure(packs[1])


def test_ctrl_c_is_no_failure_of_a_pack(store, packs, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(execute, "train", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_pack(packs[1], store, CPU, lambda step: None, lambda: False)


def test_a_pack_that_raises_at_once_failed_at_the_step_of_its_checkpoint(store, packs, monkeypatch):
    asked = iter([False] * 4 + [True] * 100)
    assert run_pack(packs[1], store, CPU, lambda step: None, lambda: next(asked)).status == "stopped"
    (saved,) = checkpoints.steps(store, packs[1].id)

    def broken(*arguments):
        raise ArithmeticError("planted")

    monkeypatch.setattr(Recurrent, "_logits", broken)
    assert run_pack(packs[1], store, CPU, lambda step: None, lambda: False).step == saved > 0
    assert [row["step"] for row in read(store, "failures").to_pylist()] == [saved]


def test_a_lost_node_is_no_death(store, packs):
    dispatch = dispatch_of([packs[1]], store)
    for _ in range(9):
        dispatch.died(dispatch.next(), "died", "node", {"node"}, "the node is gone")
    assert dispatch.next().attempt == 10
    assert read(store, "failures").num_rows == 0


# the store


def test_a_call_is_made_again_until_the_store_is_back():
    calls, said = [], []

    def call():
        calls.append(1)
        if len(calls) < 3:
            _no_space()
        return "done"

    assert patiently(call, say=said.append, patience_s=10) == "done"
    assert len(said) == 1
    assert "No space left on device" in said[0]


@pytest.mark.parametrize(
    ("error", "stops"),
    [
        (StoreError("no"), False),
        (StoreError("a file"), False),
        (DamagedFile("no file of ours"), False),
        (StoreError("gone"), True),
        (OSError(errno.ENOSPC, "not of a store"), False),
    ],
)
def test_a_call_ends_at_once_where_waiting_is_no_use(error, stops):
    """Neither permission nor a folder comes by waiting, nor does a damaged file mend; somebody who asks to stop does not wait."""
    calls = []

    def call():
        calls.append(1)
        raise error from {"no": PermissionError("no"), "a file": NotADirectoryError("no")}.get(str(error))

    with pytest.raises(type(error)):
        patiently(call, should_stop=lambda: stops)
    assert len(calls) == 1


def test_a_disk_that_is_full_for_a_while_costs_nothing_but_time(store, packs, monkeypatch):
    """Checkpoints and the commit are refused until space is back; what was trained meanwhile is committed."""
    real, refused, said = execute.commit, [], []
    monkeypatch.setattr(checkpoints, "write_bytes", _no_space)

    def full(*arguments):
        if len(refused) < 2:
            refused.append(1)
            assert all(read(store, table).num_rows == 0 for table in TABLES)
            _no_space()
        return real(*arguments)

    monkeypatch.setattr(execute, "commit", full)
    train = execute.train
    monkeypatch.setattr(execute, "train", lambda *args, **options: train(*args, checkpoint_s=0.0, **options))
    outcome = run_pack(packs[0], store, CPU, lambda step: None, lambda: False, said.append)
    assert outcome.status == "committed"
    assert any("training goes on" in text for text in said)
    assert any("No space left on device" in text and "trying again" in text for text in said)
    assert committed(store).num_rows == 2


def test_a_store_that_stays_away_ends_the_pack_unstored_and_nothing_of_it_is_seen(store, packs, monkeypatch, short):
    def half(store, relative_path, data):
        if relative_path.startswith("replicates"):
            _no_space()
        return write_bytes(store, relative_path, data)

    monkeypatch.setattr("results.store.tables.write_bytes", half)
    outcome = run_pack(packs[0], store, CPU, lambda step: None, lambda: False)
    assert outcome.status == "unstored"
    assert "No space left on device" in outcome.message
    assert all(read(store, table).num_rows == 0 for table in TABLES)
    monkeypatch.undo()
    assert run_pack(packs[0], store, CPU, lambda step: None, lambda: False).status == "committed"


def test_a_pack_that_the_store_refused_is_run_again_after_the_others(store, packs):
    dispatch = dispatch_of(packs, store)
    first = dispatch.next()
    dispatch.ended(first, Outcome(first.id, "unstored", 2, message="gone"))
    second = dispatch.next()
    assert second == packs[1]
    dispatch.ended(second, Outcome(second.id, "committed", 1))
    assert dispatch.next() == first
    dispatch.ended(first, Outcome(first.id, "unstored", 2, message="gone"))
    assert dispatch.next() is None
    assert [outcome.status for outcome in dispatch.outcomes] == ["committed", "unstored"]


def test_a_store_that_is_gone_ends_the_study_instead_of_training_for_nothing(store, capsys):
    packs = [pack(condition("lstm"), [seed]) for seed in range(6)]
    dispatch = dispatch_of(packs, store)
    started = 0
    while (each := dispatch.next()) is not None:
        started += 1
        dispatch.ended(each, Outcome(each.id, "unstored", 1, message="gone"))
    assert started == 3
    assert "the store took none of 3 packs in a row: nothing more is started" in capsys.readouterr().out


def test_a_commit_ends_the_row_of_packs_that_the_store_refused(store):
    """Refused, refused, committed, refused: the store is there, and the study goes on."""
    packs = [pack(condition("lstm"), [seed]) for seed in range(6)]
    dispatch = dispatch_of(packs, store)
    for status in ("unstored", "unstored", "committed", "unstored"):
        each = dispatch.next()
        dispatch.ended(each, Outcome(each.id, status, 1, message="gone"))
    assert dispatch.packs_left() == 5
    assert dispatch.next() == packs[4]


def test_a_death_while_the_store_is_away_waits_for_it(store, packs, monkeypatch, short):
    real, calls = checkpoints.steps, []

    def away(*arguments):
        calls.append(1)
        if len(calls) < 2:
            raise StoreError("gone")
        return real(*arguments)

    monkeypatch.setattr(checkpoints, "steps", away)
    dispatch = dispatch_of([packs[1]], store)
    dispatch.died(dispatch.next(), "died", "node", (), "the worker is gone")
    assert dispatch.next().id == packs[1].id
    assert len(calls) == 2


def test_a_failure_that_cannot_be_recorded_is_told(store, packs, monkeypatch, short):
    monkeypatch.setattr("harness.executing.dispatch.record_failure", _no_space)
    dispatch = dispatch_of([packs[1]], store)
    dispatch.raised(dispatch.next(), "boom", "trace")
    assert "boom; this is not recorded" in dispatch.outcomes[0].message


def test_record_failure_writes_one_row_an_attempt(store, packs):
    record_failure(store, packs[1], "hung", 7, "why", "trace")
    assert read(store, "failures", ["kind", "step"]) == pa.table(
        {"kind": ["hung"], "step": [7]}, schema=read(store, "failures", ["kind", "step"]).schema
    )


# packs that hang


def test_a_pack_hangs_when_it_is_silent_for_longer_than_any_limit():
    watch = Watch()
    watch.begin("a", 0.0, step_s=1.0)
    assert watch.silent(QUIET_S + START_S) == []
    assert watch.silent(QUIET_S + START_S + 1) == ["a"]
    watch.heard("a", 100.0, step=1)
    assert watch.silent(100.0 + QUIET_S) == []
    assert watch.silent(100.0 + QUIET_S + 1) == ["a"]


def test_slow_steps_are_given_time_in_proportion():
    watch = Watch()
    watch.begin("a", 0.0, step_s=60.0)
    watch.heard("a", 60.0, step=1)
    assert watch.allowed("a") == MULTIPLE * 60
    watch.heard("a", 180.0, step=2)
    assert watch.allowed("a") == MULTIPLE * 120


def test_what_comes_before_the_first_step_does_not_count_as_a_step():
    watch = Watch()
    watch.begin("a", 0.0, step_s=1.0)
    watch.heard("a", 500.0, step=0)
    watch.heard("a", 900.0, step=1)
    assert watch.allowed("a") == QUIET_S


def test_a_pack_that_has_ended_is_watched_no_more():
    watch = Watch()
    watch.begin("a", 0.0, 1.0)
    watch.end("a")
    watch.heard("a", 1.0, 1)
    assert watch.silent(1e9) == []


# what Ray raises, without a cluster


class _FakeRay:
    """Stands for the ray module where a running pack is settled: what `get` raises, and the nodes there are."""

    def __init__(self, error, alive=("node",)):
        self.error, self.alive, self.killed = error, alive, []

    def get(self, reference, timeout=None):
        raise self.error

    def nodes(self):
        return [{"NodeID": "node", "Alive": "node" in self.alive}]

    def kill(self, actor):
        self.killed.append(actor)


def _settled(monkeypatch, store, whole, error, alive=("node",)):
    """A dispatch after the one running pack ended with `error`, and the fake."""
    fake = _FakeRay(error, alive)
    monkeypatch.setattr(cluster, "ray", fake)
    run = object.__new__(cluster._Run)  # its __init__ starts an actor
    run.dispatch, run.watch, run.said = dispatch_of([whole], store), Watch(), False
    run.cluster = SimpleNamespace(free=lambda worker: None)
    run.board = SimpleNamespace(take=SimpleNamespace(remote=lambda: "board"))  # which does not answer either
    run.running = {"reference": cluster._Running(0, cluster._Worker("actor", "node"), run.dispatch.next())}
    run._settle("reference")
    assert not run.running
    return run.dispatch, fake


def test_rays_memory_monitor_halves_the_pack(monkeypatch, store, packs, capsys):
    dispatch, _ = _settled(monkeypatch, store, packs[0], OutOfMemoryError("node ran low on memory"))
    assert "ran the host out of memory at step 0 and goes on as two halves" in capsys.readouterr().out
    assert [len(dispatch.next().replicates) for _ in range(2)] == [1, 1]


def test_a_worker_that_is_out_of_reach_is_ended_before_its_pack_goes_on(monkeypatch, store, packs, capsys):
    dispatch, fake = _settled(monkeypatch, store, packs[0], ActorDiedError())
    assert fake.killed == ["actor"]
    assert "lost its worker after step 0 and starts again" in capsys.readouterr().out
    assert dispatch.next().id == packs[0].id


def test_a_worker_of_a_lost_node_is_no_death(monkeypatch, store, packs, capsys):
    _settled(monkeypatch, store, packs[0], ActorDiedError(), alive=())
    assert "was on a node that is lost after step 0" in capsys.readouterr().out


def test_a_pack_that_can_not_be_opened_on_its_worker_is_recorded(monkeypatch, store, packs):
    error = RayTaskError("run", "Traceback: no module named mine", ImportError("no module named mine"))
    dispatch, _ = _settled(monkeypatch, store, packs[0], error)
    assert dispatch.outcomes[0].status == "failed"
    (row,) = read(store, "failures").to_pylist()
    assert row["kind"] == "raised"
    assert "no module named mine" in row["exception"] + row["traceback"]
