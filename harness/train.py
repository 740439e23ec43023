"""Train one pack: fresh data every step, per-replicate losses and counts, checkpoints from which a run resumes bit for bit.

The loss that is back-propagated is the sum over replicates of each one's own mean, so no replicate sees another: not in gradients, not
in norms, not when one diverges (its NaNs stay in its own slice and its rows say `diverged`).
"""

import datetime
import json
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa
import torch
from torch import Tensor

import harness.artifacts as artifacts
import harness.checkpoint as checkpoints
from harness.device import describe, numerics
from harness.draw import Draw
from harness.evaluate import score
from harness.identity import canonical
from harness.needed import needed
from harness.optimizer import AdamW, FlatParameters, learning_rate
from harness.pack import Pack, ScoredSet
from harness.precision import autocast, set_matmul
from harness.provenance import code_state, versions
from results.schema import SCHEMAS
from results.store import Store

_WINDOW = 100  # steps that `loss` and the points of the loss curve average over, at most


class Stopped(Exception):
    """Training was asked to stop; its state is in the checkpoint of `step`."""

    def __init__(self, step: int):
        super().__init__(f"stopped at step {step}; the same command goes on from there")
        self.step = step


@dataclass
class Rows:
    """The rows a pack has produced, slot by slot, as plain data: they travel in checkpoints as JSON."""

    evaluations: list[dict] = field(default_factory=list)
    profiles: list[dict] = field(default_factory=list)
    curves: list[dict] = field(default_factory=list)


class Training:
    """The state of a pack: parameters, moments, the recent losses, the rows so far, and the step they belong to."""

    def __init__(self, pack: Pack, device: torch.device):
        first = pack.replicates[0].condition
        self.pack, self.device = pack, device
        self.task, self.train = first.task, first.train
        set_matmul(self.train.precision)
        self.data_seeds = torch.tensor([r.data_seed for r in pack.replicates], device=device)
        init = Draw(torch.tensor([r.init_seed for r in pack.replicates], device=device), "init")
        self.model = first.model.make(init, self.task.vocabulary, self.task.length)
        self.flat = FlatParameters(self.model)
        trains = [r.condition.train for r in pack.replicates]
        self.trains = trains
        self.optimizer = AdamW(self.flat, [t.betas for t in trains], [t.weight_decay for t in trains])
        self.recent = torch.zeros(_WINDOW, len(trains), device=device)
        self.diverged_at = torch.full((len(trains),), -1, dtype=torch.int64, device=device)
        self.rows = Rows()
        self.step = self.recorded = 0  # steps taken; the last one whose curves and scores are in `rows`
        self.train_s = self.evaluate_s = 0.0
        self.needed_count = self.task.scored_positions()

    def advance(self) -> None:
        """One step for every replicate."""
        step = self.step + 1
        batch = self.task.sample(Draw(self.data_seeds, "data", step), self.train.batch)
        loss = self.losses(batch)
        self.flat.differentiate(loss.sum())
        lr = torch.tensor([learning_rate(train, step) for train in self.trains], dtype=torch.float64)
        self.optimizer.step(step, lr)
        loss = loss.detach()
        self.recent[step % _WINDOW] = loss
        self.diverged_at = torch.where((self.diverged_at < 0) & ~loss.isfinite(), step, self.diverged_at)
        self.step = step

    def losses(self, batch) -> Tensor:
        """Mean cross-entropy over each replicate's scored positions, [R]."""
        wanted = needed(batch, self.needed_count)
        with autocast(self.device, self.train.precision):
            logits = self.model(batch.inputs, wanted.blocks)
        surprise = torch.nn.functional.cross_entropy(logits.float().flatten(0, 2), wanted.targets.flatten(), reduction="none")
        surprise = surprise.view(wanted.targets.shape) * wanted.weights
        # block by block, then string by string: a further block adds exact zeros where it holds nothing
        sizes = [wanted.targets.shape[-1]] if wanted.blocks is None else [block.shape[-1] for block in wanted.blocks]
        total = sum(part.sum(-1) for part in surprise.split(sizes, dim=-1))
        return total.sum(-1) / wanted.weights.sum((-1, -2))

    def mean_loss(self, window: int) -> Tensor:
        """Mean loss over the last `window` steps (at most 100), float64 [R]."""
        window = min(window, self.step, _WINDOW)
        last = torch.arange(self.step - window + 1, self.step + 1, device=self.device) % _WINDOW
        return self.recent[last].double().mean(0)

    def record(self, should_stop: Callable[[], bool] = lambda: False) -> bool:
        """The curves and evaluation sets that are due at this step; False where asked to stop before all were scored."""
        rows, steps = Rows(), self.train.steps
        if self.step % self.pack.curve_every == 0 or self.step == steps:
            for slot, loss in enumerate(self.mean_loss(self.pack.curve_every).tolist()):
                lr = learning_rate(self.trains[slot], self.step)
                rows.curves += [self._row(slot, metric="loss", value=loss), self._row(slot, metric="lr", value=lr)]
        due = [scored for scored in self.pack.sets if scored.due(self.step, steps)]
        started = time.perf_counter()
        if due and not self._score(due, rows, should_stop):
            return False
        self.evaluate_s += time.perf_counter() - started
        self.rows.evaluations += rows.evaluations
        self.rows.profiles += rows.profiles
        self.rows.curves += rows.curves
        self.recorded = self.step
        return True

    def _score(self, due: list[ScoredSet], rows: Rows, should_stop: Callable[[], bool]) -> bool:
        last = self.step == self.train.steps
        if last:
            # the last update may have broken weights that its own loss could not show yet
            broken = ~self.flat.values.isfinite().all(-1)
            self.diverged_at = torch.where((self.diverged_at < 0) & broken, self.step, self.diverged_at)
        diverged = (self.diverged_at >= 0).tolist()
        for scored in due:
            scores = score(self.model, scored, len(diverged), self.device, self.train.precision, should_stop)
            if scores is None:
                return False
            for slot, lost in enumerate(diverged):
                rows.evaluations += [self._row(slot, weights="raw", **row) for row in scores.evaluation_rows(slot, lost)]
                if last and not lost:
                    rows.profiles += [self._row(slot, **row) for row in scores.profile_rows(slot)]
        return True

    def _row(self, slot: int, **values) -> dict:
        return {
            "key": self.pack.replicates[slot].key,
            "stage": self.pack.stage,
            "pack": self.pack.id,
            "step": self.step,
        } | values

    def save(self, store: Store) -> None:
        tensors = {
            "values": self.flat.values,
            "mean": self.optimizer.mean,
            "square": self.optimizer.square,
            "recent": self.recent,
            "diverged_at": self.diverged_at,
        }
        keys = [replicate.key for replicate in self.pack.replicates]
        state = {"keys": keys, "train_s": self.train_s, "evaluate_s": self.evaluate_s, "rows": vars(self.rows)}
        checkpoints.write(store, self.pack.id, self.step, tensors, {"step": self.step, "recorded": self.recorded} | state)

    def restore(self, store: Store) -> bool:
        """Go on from the pack's newest checkpoint; False where there is none."""
        found = checkpoints.read(store, self.pack.id)
        if found is None:
            return False
        tensors, state = found
        if state["keys"] != [replicate.key for replicate in self.pack.replicates]:
            raise ValueError(f"the checkpoint of pack {self.pack.id} holds other replicates: delete checkpoints/{self.pack.id}")
        self.flat.values.copy_(tensors["values"])
        self.optimizer.mean.copy_(tensors["mean"])
        self.optimizer.square.copy_(tensors["square"])
        self.recent.copy_(tensors["recent"])
        self.diverged_at.copy_(tensors["diverged_at"])
        self.rows, self.step, self.recorded = Rows(**state["rows"]), state["step"], state["recorded"]
        self.train_s, self.evaluate_s = state["train_s"], state["evaluate_s"]
        return True


def train(
    pack: Pack,
    store: Store,
    device: torch.device,
    report: Callable[[int], None] = lambda step: None,
    should_stop: Callable[[], bool] = lambda: False,
    checkpoint_s: float = 60.0,
) -> dict[str, pa.Table]:
    """Train `pack` to its end and return its tables, ready to commit.

    report(step) is called after every step, should_stop() before each and within evaluations; `checkpoint_s`: seconds between
    checkpoints. Raises Stopped, with the state saved, when asked to stop.
    """
    began = datetime.datetime.now(datetime.UTC)
    state = Training(pack, device)
    state.restore(store)
    steps = state.train.steps
    saved = time.monotonic()
    while state.step < steps or state.recorded < state.step:
        if should_stop():
            state.save(store)
            raise Stopped(state.step)
        if state.recorded == state.step:
            started = time.perf_counter()
            state.advance()
            state.train_s += time.perf_counter() - started
        if not state.record(should_stop):
            continue
        if time.monotonic() - saved > checkpoint_s and state.step < steps:
            state.save(store)
            saved = time.monotonic()
        report(state.step)
    if pack.keep:
        artifacts.write(store, pack, state.model, steps)
    return _tables(state, began, datetime.datetime.now(datetime.UTC))


def _tables(state: Training, began: datetime.datetime, ended: datetime.datetime) -> dict[str, pa.Table]:
    pack, train = state.pack, state.train
    size = len(pack.replicates)
    commit, dirty = code_state()
    loss, diverged_at = state.mean_loss(_WINDOW).tolist(), state.diverged_at.tolist()
    shared = {
        "stage": pack.stage,
        "parent_key": None,
        "parent_step": None,
        "steps": train.steps,
        "samples": train.steps * train.batch,
        "tokens": train.steps * train.batch * state.task.length,
        "parameters": state.flat.count,
        "pack": pack.id,
        "pack_size": size,
        "attempt": pack.attempt,
        "started": began,
        "ended": ended,
        "train_s": state.train_s / size,
        "evaluate_s": state.evaluate_s / size,
        "host": socket.gethostname(),
        "device": describe(state.device),
        "numerics": numerics(state.device, train.precision),
        "versions": json.dumps(versions(), sort_keys=True),
        "git": commit,
        "dirty": dirty,
        "sets": sorted(scored.hash for scored in pack.sets),
    }
    replicates = [
        shared
        | {
            "key": replicate.key,
            "condition": replicate.condition.name,
            "config": canonical(replicate.condition.config()),
            "init_seed": replicate.init_seed,
            "data_seed": replicate.data_seed,
            "slot": slot,
            "status": "finished" if diverged_at[slot] < 0 else "diverged",
            "diverged_at": None if diverged_at[slot] < 0 else diverged_at[slot],
            "loss": loss[slot],
        }
        for slot, replicate in enumerate(pack.replicates)
    ]
    rows = vars(state.rows) | {"replicates": replicates}
    return {table: pa.Table.from_pylist(found, SCHEMAS[table]) for table, found in rows.items()}
