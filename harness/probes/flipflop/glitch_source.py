"""What `manyseeds glitches` looks into: a committed replicate with kept weights, a set of its study, and its sisters."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow.compute as pc

from harness.planning.pack import ScoredSet
from harness.probes.flipflop.wrong_reads import row_of, sets_of, weights_of
from harness.study.config import Condition, condition_of, name_of
from harness.training import weights as artifacts
from results.errors import StudyError
from results.plain_values import Row
from results.store.manifest import as_planned
from results.store.tables import Store, committed, read
from tasks.flipflop.flipflop import FlipFlop
from tasks.flipflop.simulation import Simulation


@dataclass(frozen=True)
class Source:
    """A replicate whose glitches are asked for.

    row: of `replicates`. errors, reads: what the study committed for the set at the end. steps: with kept weights, ascending. sisters: rows
    of the other finished replicates of the condition with weights of that stage, in the order of their seeds.
    """

    store: Store
    row: Row
    condition: Condition
    scored: ScoredSet
    errors: int
    reads: int
    steps: list[int]
    sisters: list[Row]


def source(stores: Sequence[Store], key: str, set_name: str | None) -> Source:
    """Find a replicate, the set and its sisters. ValueError in one sentence.

    key: 32 digits, or as many as tell it apart; set_name: default the set with the most errors.
    """
    store, row = row_of(stores, key)
    condition = condition_of(row)
    if not isinstance(condition.task, FlipFlop | Simulation):
        raise StudyError(
            f"manyseeds glitches is for replicates of flipflop and flipflop_simulation, and {row['key'][:12]} of {store.study} is one of "
            f"{name_of(condition.task)}"
        )
    weights_of(store, row)
    scored, errors, reads = _set(store, row, condition, set_name)
    steps = artifacts.steps_of(store, row["key"], row["stage"])
    return Source(store, row, condition, scored, errors, reads, steps, _sisters(store, row))


def _sisters(store: Store, row: Row) -> list[Row]:
    """The other finished replicates of the condition with weights of that stage, in the order of their seeds."""
    same = [
        sister
        for sister in as_planned(store, committed(store)).to_pylist()
        if (sister["config"], sister["stage"], sister["status"]) == (row["config"], row["stage"], "finished")
        and sister["key"] != row["key"]
        and artifacts.steps_of(store, sister["key"], sister["stage"])
    ]
    return sorted(same, key=lambda sister: (sister["init_seed"], sister["data_seed"], sister["key"]))


def _set(store: Store, row: Row, condition: Condition, name: str | None) -> tuple[ScoredSet, int, int]:
    """The set and this replicate's committed (errors, reads) on it. ValueError where it was not scored on such a set."""
    sets = sets_of(store, condition)
    ended = (pc.field("key") == row["key"]) & (pc.field("stage") == row["stage"]) & (pc.field("step") == row["steps"])
    rows = read(
        store, "evaluations", filter=ended & (pc.field("metric") == condition.task.metrics[0]) & (pc.field("weights") == "raw")
    ).to_pylist()
    scores = {}
    for scored in sets:
        own = [
            score
            for score in rows
            if (score["set"], score["set_hash"]) == (scored.name, scored.hash) and score["errors"] is not None
        ]
        if len(own) == 1:
            scores[scored.name] = scored, own[0]["errors"], own[0]["count"]
    if not scores or (name is not None and name not in scores):
        raise StudyError(
            f"{row['key'][:12]} of {store.study} has no scores on a set {name or 'of its manifest'}: "
            f"give --set with one of {', '.join(scores) or 'none'}"
        )
    return scores[name] if name is not None else max(scores.values(), key=lambda score: score[1])
