"""Run the replicates of a pack of experiments: what `train` is to trainings.

A function of one seed and a command take a replicate after the other; what is measured travels in checkpoints, so a run that was killed
goes on at the replicate. A function of many seeds measures the whole pack at once.
"""

import datetime
import json
import random
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import torch

import harness.training.checkpoint as checkpoints
from harness.draw import Draw
from harness.experiments.entries import BadResult, Entry, diverged_at, each_value, entries_of, entries_of_pack, entry_from_json
from harness.experiments.script import run_script
from harness.machine.device import describe, numerics
from harness.machine.provenance import code_state, versions
from harness.machine.store_retry import patiently
from harness.planning.pack import Pack, Replicate
from harness.study.experiment import Experiment
from harness.study.identity import canonical, digest
from harness.study.running_code import own_checkout, refuse_other_code
from harness.training.pack_state import Stopped
from results.errors import StoreError
from results.store.schema import SCHEMAS
from results.store.tables import Store

CHECKPOINT_S = 20.0  # between checkpoints of a pack


@dataclass
class Measured:
    """Of one replicate: what it returned, and the seconds it took."""

    entries: list[Entry]
    seconds: float


def measure(
    pack: Pack,
    store: Store,
    device: torch.device,
    report: Callable[[int], None] = lambda step: None,
    should_stop: Callable[[], bool] = lambda: False,
    checkpoint_s: float = CHECKPOINT_S,
    say: Callable[[str], None] = lambda text: None,
) -> dict[str, pa.Table]:
    """Measure `pack` and return its tables, ready to commit.

    report(n) is called after n replicates, should_stop() between results; Stopped, with what is done saved, when asked to stop. What the
    person's code raises is raised.
    """
    began = datetime.datetime.now(datetime.UTC)
    experiment = _own(pack.replicates[0])
    if experiment.packed:
        done = _pack_at_once(pack, experiment, device, should_stop)
        report(1)
    else:
        done = patiently(lambda: _restored(store, pack, say), should_stop, say)
        _one_by_one(pack, experiment, store, done, report, should_stop, checkpoint_s, say)
    return _tables(pack, done, device, began, datetime.datetime.now(datetime.UTC))


def _one_by_one(
    pack: Pack,
    experiment: Experiment,
    store: Store,
    done: list[Measured],
    report: Callable[[int], None],
    should_stop: Callable[[], bool],
    checkpoint_s: float,
    say: Callable[[str], None],
) -> None:
    """Measure the replicates that are not yet in `done`, and add them to it."""
    saved = time.monotonic()

    def stop_where_asked() -> None:
        report(len(done))  # it lives
        if should_stop():
            if done:
                patiently(lambda: _save(store, pack, done), say=say, patience_s=60.0)
            raise Stopped(len(done))

    for replicate in pack.replicates[len(done) :]:
        stop_where_asked()
        started = time.perf_counter()
        if experiment.command:
            refuse_other_code(replicate.condition)  # a file may have been edited since the replicate before
            found = run_script(pack, replicate, stop_where_asked)
        else:
            found = []
            for entry in _returned(experiment, replicate, pack):
                found.append(entry)
                stop_where_asked()
        done.append(Measured(found, time.perf_counter() - started))
        if time.monotonic() - saved > checkpoint_s and len(done) < len(pack.replicates):
            try:
                _save(store, pack, done)
            except StoreError as refused:
                say(f"the store refused a checkpoint, the run goes on: {refused}")
            saved = time.monotonic()
        report(len(done))


def _returned(experiment: Experiment, replicate: Replicate, pack: Pack) -> Iterator[Entry]:
    """What the function returns for one seed. A function that ends its process fails, and nothing else ends."""
    seed_everything(replicate.init_seed)
    try:
        yield from entries_of(experiment.function()(replicate.init_seed, dict(_own(replicate).settings)), pack.metrics)
    except SystemExit as error:
        raise BadResult(f"the function called sys.exit({error.code}): raise an error instead, or return") from error


def _pack_at_once(pack: Pack, experiment: Experiment, device: torch.device, should_stop: Callable[[], bool]) -> list[Measured]:
    seeds = torch.tensor([replicate.init_seed for replicate in pack.replicates], device=device)
    size, started = len(seeds), time.perf_counter()
    returned = experiment.function()(Draw(seeds, "experiment"), dict(experiment.settings))
    found: list[list[Entry]] = [[] for _ in pack.replicates]
    for entries in entries_of_pack(returned, size, pack.metrics):
        for own, entry in zip(found, entries, strict=True):
            own.append(entry)
        if should_stop():
            raise Stopped(0)
    seconds = (time.perf_counter() - started) / size
    return [Measured(list(_some(own)), seconds) for own in found]


def _some(entries: list[Entry]) -> list[Entry]:
    """The entries, of which there must be some."""
    return entries or list(entries_of([], {}))


def seed_everything(seed: int) -> None:
    """Seed the global generators of Python, numpy and torch: a function that forgets its seed is the same in any pack."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def _own(replicate: Replicate) -> Experiment:
    if replicate.condition.experiment is None:
        raise ValueError(f"{replicate.key} trains: it is no experiment")
    return replicate.condition.experiment


def _save(store: Store, pack: Pack, done: list[Measured]) -> None:
    state = {
        "keys": [replicate.key for replicate in pack.replicates],
        "done": [[each.seconds, [entry.as_json() for entry in each.entries]] for each in done],
    }
    checkpoints.write(store, pack.id, len(done), {}, state)


def _restored(store: Store, pack: Pack, say: Callable[[str], None]) -> list[Measured]:
    """What the newest whole checkpoint of a pack holds; [] where there is none."""

    def unfit(found: checkpoints.Found) -> str:
        state = found[1]
        whole = isinstance(state, dict) and state.keys() == {"keys", "done"}
        return "" if whole and state["keys"] == [each.key for each in pack.replicates] else "it is of other replicates"

    found = checkpoints.read(store, pack.id, unfit, say)
    if found is None:
        return []
    return [Measured([entry_from_json(entry) for entry in entries], seconds) for seconds, entries in found[1]["done"]]


def set_hash(name: str) -> str:
    """The hash of a set of an experiment: its code decides what is in it, and the key has the code."""
    return digest({"experiment set": name}, 16)


def _tables(
    pack: Pack, done: list[Measured], device: torch.device, began: datetime.datetime, ended: datetime.datetime
) -> dict[str, pa.Table]:
    commit, dirty = code_state()
    shared = {
        "stage": 0,
        "samples": 0,
        "tokens": 0,
        "parameters": 0,
        "loss": float("nan"),
        "pack": pack.id,
        "pack_size": len(pack.replicates),
        "attempt": pack.attempt,
        "started": began,
        "ended": ended,
        "evaluate_s": 0.0,
        "host": socket.gethostname(),
        "device": describe(device),
        "numerics": numerics(device, "fp32"),
        "versions": json.dumps(versions(), sort_keys=True),
        "git": commit,
        "dirty": dirty,
        "sets": [],
    } | own_checkout(pack.replicates[0].condition)
    replicates, evaluations = [], []
    for slot, (replicate, measured) in enumerate(zip(pack.replicates, done, strict=True)):
        broken = diverged_at(measured.entries)
        replicates.append(
            shared
            | {
                "key": replicate.key,
                "condition": replicate.condition.name,
                "config": canonical(replicate.condition.config()),
                "init_seed": replicate.init_seed,
                "data_seed": replicate.data_seed,
                "status": "finished" if broken is None else "diverged",
                "diverged_at": broken,
                "steps": max(entry.step for entry in measured.entries),
                "train_s": measured.seconds,
                "slot": slot,
            }
        )
        place = {"key": replicate.key, "stage": 0, "pack": pack.id, "weights": "raw"}
        evaluations += [
            place
            | {"step": entry.step, "set": entry.set, "set_hash": set_hash(entry.set), "metric": name, "count": entry.count}
            | {"sequences": entry.count or 0, "value": value if np.isfinite(value) else None, "kind": kind}
            for entry, name, value, kind in each_value(measured.entries)
        ]
    rows = {"replicates": replicates, "evaluations": evaluations}
    return {table: pa.Table.from_pylist(found, SCHEMAS[table]) for table, found in rows.items()}
