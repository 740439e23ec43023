"""Replicates whose glitches can be traced: their weights, and the evaluation sets of their study."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

import tasks
from harness.exchange.replicate import trained_model
from harness.planning.pack import ScoredSet
from harness.probes.flipflop.wrong_reads import row_of, sets_of, weights_of
from harness.study.config import condition_of
from harness.training.weights import stages_of
from results.errors import StudyError
from results.plain_values import Row
from results.store.manifest import as_planned
from results.store.tables import Store, committed
from tasks.flipflop.flipflop import FlipFlop


@dataclass(frozen=True)
class Replicate:
    """row: of `replicates`; step: of the weights; model: a pack with R = 1; sets: that its glitches are looked for on."""

    store: Store
    row: Row
    step: int
    model: Any
    sets: tuple[ScoredSet, ...]


def rows_of(stores: Sequence[Store], key: str) -> list[tuple[Store, Row]]:
    """The replicate's row, or those of all that have weights and are of the flip-flop."""
    if key != "all":
        return [row_of(stores, key)]
    rows = [
        (store, row)
        for store in stores
        for row in as_planned(store, committed(store)).to_pylist()
        # weights first: language models have none, and no condition can be made of them
        if row["status"] == "finished" and stages_of(store, row["key"])[-1:] == [row["stage"]]
        if _may_be_flip_flop(row) and isinstance(condition_of(row).task, FlipFlop)
    ]
    if not rows:
        raise StudyError(
            f"no replicate of {', '.join(store.study for store in stores)} is a finished one of the task flipflop with kept weights: "
            f"run a study with keep: all or keep: tail(n), or manyseeds rerun {stores[0].shell_word} KEY --keep weights"
        )
    return rows


def _may_be_flip_flop(row: Row) -> bool:
    """Whether a row's task has to be built to know its class: others may need files that are elsewhere by now, as a corpus does."""
    config = json.loads(row["config"])
    kind = tasks.REGISTRY.get(config.get("task", {}).get("name"), FlipFlop)
    return "experiment" not in config and issubclass(kind, FlipFlop)


def loaded(store: Store, row: Row, wanted: Sequence[str], device: torch.device) -> Replicate:
    """A replicate with its last weights. wanted: names of sets, none for all. ValueError where it is none that can be traced."""
    condition = condition_of(row)
    if not isinstance(condition.task, FlipFlop):
        name = condition.config()["task"]["name"]
        raise StudyError(f"manyseeds trace is for the task flipflop, and {row['key']} was trained on {name}")
    if not condition.model.causal:
        raise StudyError(
            f"manyseeds trace asks what stands before a read, and {row['key']} is a model that also sees what follows"
        )
    kept = weights_of(store, row)
    model = trained_model(condition, kept.tensors, row["init_seed"])
    every = sets_of(store, condition)
    for name in wanted:
        if name not in [scored.name for scored in every]:
            raise StudyError(f"--set {name} is no set of {store.study}: write {' or '.join(scored.name for scored in every)}")
    at_end = [scored for scored in every if scored.every is None] or every  # others are small parts of these
    chosen = tuple(scored for scored in every if scored.name in wanted) if wanted else tuple(at_end)
    return Replicate(store, row, kept.step, model.to(device), chosen)
