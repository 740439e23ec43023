"""A replicate whose wrong reads are looked into, its study's sets, and the reads: for `manyseeds glitches` and `manyseeds trace`.

Which read is wrong is a metric of the task: `read`, the largest logit of all classes is not the right symbol's (the errors of a study's
rows); `read_restricted`, the largest logit of the symbols is not.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

import harness.planning.manifest as manifests
from harness.exchange.replicate import Kept, find, refuse_experiment, refuse_language_model
from harness.machine.precision import autocast
from harness.planning.pack import ScoredSet, scored_sets
from harness.study.config import Condition
from harness.training.evaluate import strings
from harness.training.loss_positions import Needed, needed
from results.errors import StudyError
from results.plain_values import Row
from results.rows.keys import resolve_key
from results.store.manifest import as_planned, manifest_of
from results.store.tables import Store, committed
from tasks.batch import Batch

RESTRICTED = "read_restricted"  # a metric of flipflop


def row_of(stores: Sequence[Store], key: str) -> tuple[Store, Row]:
    """A replicate's store and its row of the last stage. ValueError where there is none, or no model was trained.

    key: 32 digits, or as many as tell it apart.
    """
    full = resolve_key(stores, key)
    rows = [(store, row) for store in stores for row in as_planned(store, committed(store)).to_pylist() if row["key"] == full]
    store, row = max(rows, key=lambda stored: stored[1]["stage"])
    config = json.loads(row["config"])
    refuse_experiment(config, full)
    refuse_language_model(config, full)
    return store, row


def weights_of(store: Store, row: Row) -> Kept:
    """The last weights of the row's stage. ValueError where it has not finished, or they were not kept."""
    name = f"{row['key'][:12]} of {store.study}"
    if row["status"] != "finished":
        raise StudyError(f"{name} has {row['status'].replace('_', ' ')}, so it has no answers to look into")
    kept = find(store, row["key"])
    if kept.stage != row["stage"]:
        raise StudyError(f"the weights of stage {row['stage']} of {name} were not kept, only those of stage {kept.stage}")
    return kept


def sets_of(store: Store, condition: Condition) -> tuple[ScoredSet, ...]:
    """The evaluation sets of the study's newest manifest, as the condition is scored on them. ValueError where there is no manifest."""
    return scored_sets(manifests.study_of(manifest_of(store)), condition)


@dataclass(frozen=True)
class Reads:
    """Strings of a set, number `first` and those that follow, and what a model with R = 1 says at the N places that are scored.

    logits [1, B, N, V]; wrong: bool [B, N], by the metric; position: int64 [B, N], of the tokens.
    """

    first: int
    batch: Batch
    wanted: Needed
    logits: Tensor
    wrong: Tensor
    position: Tensor


@torch.no_grad()
def wrong_reads(
    model: nn.Module, scored: ScoredSet, metric: str, device: torch.device, precision: str = "fp32"
) -> Iterator[Reads]:
    """The reads of a set that a model gets wrong, batch by batch, as the study scores it."""
    first = 0
    for batch in strings(scored, device):
        wanted = needed(batch, scored.task.scored_positions())
        with autocast(device, precision):
            logits = model(batch.inputs, wanted.blocks).float()
        wrong = (scored.task.wrong(logits, wanted.targets)[metric] & (wanted.weights > 0))[0]
        position = wanted.of(torch.arange(batch.inputs.shape[-1], device=device).expand_as(batch.inputs))[0]
        yield Reads(first, batch, wanted, logits, wrong, position)
        first += batch.inputs.shape[1]
