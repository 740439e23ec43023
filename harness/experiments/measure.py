"""Run the replicates of a pack of experiments: what `train` is to trainings.

A function of one seed and a command take a replicate after the other; what is measured travels in checkpoints, so a run that was killed
goes on at the replicate. A function of many seeds measures the whole pack at once. What a function returns may have `save` and `load`, and
then a run goes on between two of its results.
"""

import copy
import datetime
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import torch

import harness.training.checkpoint as checkpoints
from harness.draw import Draw
from harness.experiments.entries import (
    BadResult,
    Entry,
    checked,
    diverged_at,
    each_value,
    entries_of,
    entries_of_pack,
    entry_from_json,
)
from harness.experiments.kept_arrays import keep
from harness.experiments.saved_state import decode, encode
from harness.experiments.script import run_script
from harness.machine.device import describe, numerics
from harness.machine.global_generators import generators, seed_everything, set_generators
from harness.machine.provenance import columns
from harness.machine.store_retry import patiently
from harness.planning.pack import Pack, Replicate
from harness.study.experiment import Experiment
from harness.study.identity import canonical, digest
from harness.study.running_code import own_checkout, refuse_other_code
from harness.training.pack_state import Stopped
from results.errors import StoreError
from results.plain_values import Options, Row
from results.rows.measures import ARRAY
from results.store.schema import SCHEMAS
from results.store.tables import Store

CHECKPOINT_S = 20.0  # between checkpoints of a pack


@dataclass
class Measured:
    """What one replicate returned, the seconds that it took, and the ids of W&B runs that its script made of its own."""

    entries: list[Entry]
    seconds: float
    own_wandb: list[str]


@dataclass
class Begun:
    """A function's call that has not ended.

    entries: those so far, [results][replicates]; seconds: that they took; state: what `save` returned; generators: the state of the global
    generators.
    """

    entries: list[list[Entry]]
    seconds: float
    state: Any
    generators: Options


class _Pauses:
    """Saves what is measured of a pack every `every_s` seconds and where the run is asked to stop, which raises Stopped."""

    def __init__(
        self,
        pack: Pack,
        store: Store,
        report: Callable[[int], None],
        should_stop: Callable[[], bool],
        every_s: float,
        say: Callable[[str], None],
    ):
        self.pack, self.store, self.say = pack, store, say
        self.report, self.should_stop, self.every_s = report, should_stop, every_s
        self.done, self.begun = patiently(lambda: _restored(store, pack, say), should_stop, say)
        self.saved = time.monotonic()

    def pause(self, begun: Callable[[], Begun] | None = None) -> None:
        """Between two results: report, stop if asked to, and save what is due.

        begun: makes what is saved of the replicate that runs; None where it can't go on in its middle.
        """
        self.report(len(self.done))  # it lives
        if self.should_stop():
            if self.done or begun is not None:
                now = None if begun is None else begun()
                patiently(lambda: _save(self.store, self.pack, self.done, now), say=self.say, patience_s=60.0)
            raise Stopped(len(self.done))
        if time.monotonic() - self.saved > self.every_s and (
            begun is not None or 0 < len(self.done) < len(self.pack.replicates)
        ):
            try:
                _save(self.store, self.pack, self.done, None if begun is None else begun())
            except StoreError as refused:
                self.say(f"the store refused a checkpoint, the run goes on: {refused}")
            self.saved = time.monotonic()


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
    experiment = _experiment_of(pack.replicates[0])
    pauses = _Pauses(pack, store, report, should_stop, checkpoint_s, say)
    kinds: dict[str, str] = {}
    while len(pauses.done) < len(pack.replicates):
        replicates = pack.replicates[len(pauses.done) :]
        started = time.perf_counter()
        if experiment.command:
            pauses.pause()
            refuse_other_code(replicates[0].condition)  # a file may have been edited since the replicate before
            entries, own_wandb = run_script(pack, replicates[0], pauses.pause)
            results, seconds = [entries], time.perf_counter() - started
        else:
            results, seconds = _from_function(pack, replicates if experiment.packed else replicates[:1], device, pauses)
            own_wandb = []
        for replicate, entries in zip(replicates, results, strict=False):
            kept = patiently(partial(keep, store, pack, replicate, checked(entries, kinds)), should_stop, say)
            pauses.done.append(Measured(kept, seconds / len(results), own_wandb))
        report(len(pauses.done))
    return _tables(pack, pauses.done, device, began, datetime.datetime.now(datetime.UTC))


def _from_function(
    pack: Pack, replicates: Sequence[Replicate], device: torch.device, pauses: _Pauses
) -> tuple[list[list[Entry]], float]:
    """What the function returns for one replicate, or for all at once, [replicates][results], and the seconds that it took.

    A function that ends its process fails, and nothing else ends. One that changes the current folder changes it for itself alone: the
    store and the files of the code may be relative to it.
    """
    pauses.pause()
    experiment, began, here = _experiment_of(replicates[0]), time.perf_counter(), os.getcwd()
    seeds = [replicate.init_seed for replicate in replicates]
    results: list[list[Entry]] = []
    argument = Draw(torch.tensor(seeds, device=device), "experiment") if experiment.packed else seeds[0]
    if not experiment.packed:
        seed_everything(seeds[0])
    try:
        returned = experiment.function()(argument, copy.deepcopy(dict(experiment.settings)))
        pausable = _pausable(returned)
        if pausable is not None and (begun := pauses.begun) is not None:
            results, began = begun.entries, began - begun.seconds
            pausable.load(begun.state)
            set_generators(begun.generators)
        pauses.begun = None
        latest = max((entry.step for entries in results for entry in entries), default=0)
        if experiment.packed:
            parts = entries_of_pack(returned, len(seeds), pack.metrics, latest)
        else:
            parts = ([entry] for entry in entries_of(returned, pack.metrics, latest))
        for entries in parts:
            results.append(entries)
            seconds = time.perf_counter() - began
            pauses.pause(None if pausable is None else partial(_begun, results, seconds, pausable))
    except SystemExit as error:
        raise BadResult(f"the function called sys.exit({error.code}): raise an error instead, or return") from error
    finally:
        os.chdir(here)
    return [[entries[slot] for entries in results] for slot in range(len(seeds))], time.perf_counter() - began


class _Pausable(Protocol):
    """What a function may return: an iterable that can be saved between two of its results, and go on from there."""

    def save(self) -> Any: ...

    def load(self, state: Any) -> None: ...


def _pausable(returned: Any) -> _Pausable | None:
    """What a function returned, where it has both `save` and `load`; BadResult where it has one of them."""
    has = [name for name in ("save", "load") if callable(getattr(returned, name, None))]
    if isinstance(returned, Mapping) or not isinstance(returned, Iterable) or not has:
        return None
    if len(has) == 1:
        raise BadResult(
            f"the function returned a {type(returned).__name__} with {has[0]} alone: write both save() and load(state)"
        )
    resumable: _Pausable = returned  # type: ignore[assignment]
    return resumable


def _begun(entries: list[list[Entry]], seconds: float, pausable: _Pausable) -> Begun:
    return Begun(entries, seconds, pausable.save(), generators())


def _experiment_of(replicate: Replicate) -> Experiment:
    if replicate.condition.experiment is None:
        raise ValueError(f"{replicate.key} trains: it is no experiment")
    return replicate.condition.experiment


def _save(store: Store, pack: Pack, done: list[Measured], begun: Begun | None) -> None:
    tensors: dict[str, torch.Tensor] = {}
    state = {
        "keys": [replicate.key for replicate in pack.replicates],
        "done": [[measured.seconds, [entry.as_json() for entry in measured.entries], measured.own_wandb] for measured in done],
    }
    number = sum(len(measured.entries) for measured in done)
    if begun is not None:
        number += len(begun.entries)
        state["begun"] = {
            "entries": [[entry.as_json() for entry in entries] for entries in begun.entries],
            "arrays": encode([[entry.arrays for entry in entries] for entries in begun.entries], tensors),
            "seconds": begun.seconds,
            "state": encode(begun.state, tensors),
            "generators": encode(begun.generators, tensors),
        }
    checkpoints.write(store, pack.id, number, tensors, state)


def _restored(store: Store, pack: Pack, say: Callable[[str], None]) -> tuple[list[Measured], Begun | None]:
    """What the newest whole checkpoint of a pack holds; nothing where there is none."""

    def unfit(checkpoint: checkpoints.Found) -> str:
        return "" if _fits(checkpoint[1], [replicate.key for replicate in pack.replicates]) else "it is of other replicates"

    checkpoint = checkpoints.read(store, pack.id, unfit, say)
    if checkpoint is None:
        return [], None
    tensors, state = checkpoint
    done = [  # a checkpoint of an older version has no ids of W&B runs
        Measured([entry_from_json(entry) for entry in entries], seconds, wandb_runs[0] if wandb_runs else [])
        for seconds, entries, *wandb_runs in state["done"]
    ]
    if "begun" not in state:
        return done, None
    parts = state["begun"]
    arrays = decode(parts["arrays"], tensors)
    entries = [
        [replace(entry_from_json(entry), arrays=own) for entry, own in zip(*pair, strict=True)]
        for pair in zip(parts["entries"], arrays, strict=True)
    ]
    return done, Begun(entries, parts["seconds"], decode(parts["state"], tensors), decode(parts["generators"], tensors))


def _fits(state: object, keys: Sequence[str]) -> bool:
    """Whether the state of a checkpoint is of an experiment's pack of these replicates."""
    return isinstance(state, dict) and state.keys() - {"begun"} == {"keys", "done"} and state["keys"] == list(keys)


def saved_seconds(store: Store, pack: str, keys: Sequence[str], packed: bool, replicate_s: float) -> float:
    """Seconds of a pack's work that its newest checkpoint holds, where a replicate takes `replicate_s`.

    packed: whether one call measures all that is left. A call that was saved in its middle counts the seconds that it took so far.
    """
    checkpoint = checkpoints.newest(store, pack)
    if checkpoint is None or not _fits(checkpoint[1], keys):
        return 0.0
    state = checkpoint[1]
    done = len(state["done"])
    call_s = replicate_s * ((len(keys) - done) if packed else 1)
    return replicate_s * done + (min(call_s, state["begun"]["seconds"]) if "begun" in state else 0.0)


def set_hash(name: str) -> str:
    """The hash of a set of an experiment: its code decides what is in it, and the key has the code."""
    return digest({"experiment set": name}, 16)


def ending_row(entries: Sequence[Entry]) -> Row:
    """How a replicate ended, as columns of `replicates`."""
    broken = diverged_at(entries)
    ended = {"status": "finished" if broken is None else "diverged", "diverged_at": broken}
    return ended | {"steps": max(entry.step for entry in entries)}


def value_rows(place: Row, entries: Sequence[Entry]) -> list[Row]:
    """What a replicate returned, as rows of `evaluations`; place: the columns that say whose they are."""
    return [
        place
        | {"step": entry.step, "set": entry.set, "set_hash": set_hash(entry.set), "metric": name, "count": entry.count}
        | {"sequences": entry.count or 0, "value": value if np.isfinite(value) else None, "kind": kind}
        for entry, name, value, kind in each_value(entries)
    ]


def _tables(
    pack: Pack, done: list[Measured], device: torch.device, began: datetime.datetime, ended: datetime.datetime
) -> dict[str, pa.Table]:
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
        "sets": [],
        **columns(describe(device), numerics(device, "fp32")),
    } | own_checkout(pack.replicates[0].condition)
    replicates, evaluations = [], []
    for slot, (replicate, measured) in enumerate(zip(pack.replicates, done, strict=True)):
        replicates.append(
            shared
            | ending_row(measured.entries)
            | {
                "key": replicate.key,
                "condition": replicate.condition.name,
                "config": canonical(replicate.condition.config()),
                "init_seed": replicate.init_seed,
                "data_seed": replicate.data_seed,
                "train_s": measured.seconds,
                "slot": slot,
                "own_wandb": ", ".join(measured.own_wandb) or None,
            }
        )
        place = {"key": replicate.key, "stage": 0, "pack": pack.id, "weights": "raw"}
        evaluations += value_rows(place, measured.entries)
        evaluations += [
            place
            | {"step": step, "set": name_of_set, "set_hash": set_hash(name_of_set), "metric": name, "count": None}
            | {"sequences": 0, "value": None, "kind": ARRAY}
            for step, name_of_set, name in dict.fromkeys((e.step, e.set, name) for e in measured.entries for name in e.kept)
        ]
    rows = {"replicates": replicates, "evaluations": evaluations}
    return {table: pa.Table.from_pylist(rows_of_table, SCHEMAS[table]) for table, rows_of_table in rows.items()}
