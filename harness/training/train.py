"""Train one pack from its newest checkpoint to its end, and make the tables of its rows."""

import datetime
import time
from collections.abc import Callable

import pyarrow as pa
import torch

import harness.training.self_labels as parents
import harness.training.sgd_loop as sequential
import harness.training.weights as artifacts
from harness.machine.device import describe, numerics
from harness.machine.provenance import columns
from harness.machine.store_retry import patiently
from harness.planning.pack import Pack
from harness.study.identity import canonical
from harness.study.running_code import own_checkout
from harness.training.measured_rows import average_rows, watched_rows
from harness.training.pack_state import Stopped, Training
from harness.training.teachers import teachers_of
from results.errors import StoreError
from results.plain_values import Row, Tree
from results.store.schema import SCHEMAS
from results.store.tables import Store

_LAST_S = 60.0  # that a store may be away when a pack is asked to stop
CHECKPOINT_SHARE = 0.02  # of the time of a pack that may go into checkpoints


def train(
    pack: Pack,
    store: Store,
    device: torch.device,
    report: Callable[[int], None] = lambda step: None,
    should_stop: Callable[[], bool] = lambda: False,
    checkpoint_s: float = 60.0,
    say: Callable[[str], None] = lambda text: None,
    begins: Callable[[int], None] = lambda step: None,
) -> dict[str, pa.Table]:
    """Train `pack` to its end and return its tables, ready to commit.

    report(step) is called after every step, or the several that the compiled loop takes, should_stop() before each and within
    evaluations; `checkpoint_s`: seconds between checkpoints, more where writing them would take over CHECKPOINT_SHARE of the time.
    say(text) is told when the store is waited for, and of a loop that was not compiled or a step that was not captured. begins(step) is
    called once, with the step of the checkpoint that training goes on from, or 0. Raises Stopped, with the state saved, when asked to stop.
    """
    began = datetime.datetime.now(datetime.UTC)
    begun = parents.annotates(pack) or parents.begins(pack)
    weights = patiently(lambda: parents.read(store, pack), should_stop, say) if begun else None
    state = Training(pack, device, weights, should_stop, teachers_of(pack, store, device, should_stop, say, Stopped))
    patiently(lambda: state.restore(store, say), should_stop, say)
    begins(state.step)
    if state.loop is None and sequential.takes(pack, device):
        say(f"batch-1 SGD takes the ordinary loop, many times slower: {sequential.missing()}")
    if state.eager_because:
        say(f"the step has no CUDA graph, so its kernels are launched one by one, which is slower: {state.eager_because}")
    steps = state.train.steps
    saved, pause = time.monotonic(), checkpoint_s
    while state.step < steps or state.recorded < state.step:
        if should_stop():
            patiently(lambda: state.save(store), say=say, patience_s=_LAST_S)
            raise Stopped(state.step)
        if state.recorded == state.step:
            if state.step in pack.keep_steps:  # before the next step, so that one that goes on from a checkpoint misses none
                patiently(lambda: artifacts.write(store, pack, state.model, state.step), should_stop, say)
            started = time.perf_counter()
            state.advance()
            state.train_s += time.perf_counter() - started
        if not state.record(should_stop):
            continue
        if (before := time.monotonic()) - saved > pause and state.step < steps:
            kept = _save(state, store, say)
            saved = time.monotonic()
            pause = max(checkpoint_s, (saved - before) / CHECKPOINT_SHARE) if kept else checkpoint_s
        report(state.step)
    if pack.keep:
        patiently(lambda: artifacts.write(store, pack, state.model, steps), should_stop, say)
    return _tables(state, began, datetime.datetime.now(datetime.UTC))


def _save(state: Training, store: Store, say: Callable[[str], None]) -> bool:
    """Write a checkpoint in mid-training; False where the store refuses it: training goes on, and the next one is due as usual."""
    try:
        state.save(store)
    except StoreError as error:
        say(f"the store refused the checkpoint of step {state.step}, training goes on: {error}")
        return False
    return True


def _ending(diverged_at: int, without: str) -> Row:
    """How a replicate ended, as columns of `replicates`.

    diverged_at: a step, or below 0; without: what a teacher never reached, so that its student has learned nothing.
    """
    if without or diverged_at < 0:
        return {"status": "no_transition" if without else "finished", "diverged_at": None}
    return {"status": "diverged", "diverged_at": diverged_at}


def _tables(state: Training, began: datetime.datetime, ended: datetime.datetime) -> dict[str, pa.Table]:
    diverged_at = state.diverged_at.tolist()
    rows = {name: getattr(state.rows, name) for name in ("evaluations", "profiles", "curves")}
    rows["replicates"] = _replicate_rows(state, diverged_at, _shared_columns(state) | {"started": began, "ended": ended})
    tables = {name: pa.Table.from_pylist(rows_of_table, SCHEMAS[name]) for name, rows_of_table in rows.items()}
    columnar = {
        "evaluations": average_rows(state.pack, state.rows.averages, diverged_at),
        "curves": watched_rows(state.pack, state.rows.watched),
    }
    return tables | {name: pa.concat_tables([tables[name], table]) for name, table in columnar.items()}


def _shared_columns(state: Training) -> Row:
    """The columns of `replicates` that are equal in all rows of a pack."""
    pack, train = state.pack, state.train
    size, samples, loop = len(pack.replicates), train.steps * train.batch, "" if state.loop is None else sequential.name()
    bits = numerics(state.device, train.precision, bool(pack.numerics.get("compile")), bool(state.replays), loop)
    return {
        **{"stage": pack.stage, "pack": pack.id, "pack_size": size, "attempt": pack.attempt},
        **{"steps": train.steps, "samples": samples, "tokens": samples * state.task.tokens, "parameters": state.flat.count},
        **{"train_s": state.train_s / size, "evaluate_s": state.evaluate_s / size},
        **columns(describe(state.device), bits),
    }


def _replicate_rows(state: Training, diverged_at: list[int], shared: Tree) -> list[Row]:
    plans = None if state.teachers is None else state.teachers.schedules
    taken = parents.steps_of(state.pack) if plans is None else [None if plan.without else plan.first for plan in plans]
    losses = state.mean_loss().tolist()
    return [
        shared
        | {
            "key": replicate.key,
            "parent_key": replicate.parent,
            "parent_step": taken[slot] if taken else None,
            "condition": replicate.condition.name,
            "config": canonical(replicate.condition.config()),
            "init_seed": replicate.init_seed,
            "data_seed": replicate.data_seed,
            "slot": slot,
            "sets": sorted(scored.hash for scored in replicate.sets),
            **own_checkout(replicate.condition),
            **_ending(diverged_at[slot], "" if plans is None else plans[slot].without),
            "loss": losses[slot],
        }
        for slot, replicate in enumerate(state.pack.replicates)
    ]
