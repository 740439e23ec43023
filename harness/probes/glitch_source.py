"""What `manyseeds glitches` looks into: a committed replicate with kept weights, a set of its study, and its sisters."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc

import harness.manifest as manifests
from harness import artifacts
from harness.configuration import Condition, condition_of, name_of
from harness.exchange.replicate import find, resolve_key
from harness.pack import ScoredSet
from results.manifest import newest_manifest
from results.store import Store, committed, read
from results.summary import METRIC
from tasks.flipflop import FlipFlop
from tasks.simulation import Simulation


@dataclass(frozen=True)
class Source:
    """row: of `replicates`. errors, reads: what the study committed for the set at the end. steps: with kept weights, ascending.

    sisters: rows of the other finished replicates of the condition with weights of that stage, in the order of their seeds.
    """

    store: Store
    row: dict[str, Any]
    condition: Condition
    scored: ScoredSet
    errors: int
    reads: int
    steps: list[int]
    sisters: list[dict[str, Any]]


def source(stores: Sequence[Store], key: str, set_name: str | None) -> Source:
    """Find it; key: or as many digits as tell it apart, set_name: default the set with the most errors. ValueError in one sentence."""
    full = resolve_key(stores, key)
    store = next(each for each in stores if full in set(committed(each)["key"].to_pylist()))
    everyone = committed(store).to_pylist()
    row = max((each for each in everyone if each["key"] == full), key=lambda each: each["stage"])
    condition = condition_of(row)
    name = f"{full[:12]} of {store.study}"
    if not isinstance(condition.task, FlipFlop | Simulation):
        task = name_of(condition.task)
        raise ValueError(
            f"manyseeds glitches is for replicates of flipflop and flipflop_simulation, and {name} is one of {task}"
        )
    if row["status"] != "finished":
        raise ValueError(f"{name} has {row['status'].replace('_', ' ')}, so it has no answers to look into")
    kept = find(store, full).stage
    if kept != row["stage"]:
        raise ValueError(f"the weights of stage {row['stage']} of {name} were not kept, only those of stage {kept}")
    scored, errors, reads = _set(store, row, condition, set_name)
    steps = artifacts.steps_of(store, full, row["stage"])
    return Source(store, row, condition, scored, errors, reads, steps, _sisters(store, row, everyone))


def _sisters(store: Store, row: dict[str, Any], everyone: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The other finished replicates of the condition with weights of that stage, in the order of their seeds."""
    same = [
        each
        for each in everyone
        if (each["config"], each["stage"], each["status"]) == (row["config"], row["stage"], "finished")
        and each["key"] != row["key"]
        and artifacts.steps_of(store, each["key"], each["stage"])
    ]
    return sorted(same, key=lambda each: (each["init_seed"], each["data_seed"], each["key"]))


def _set(store: Store, row: dict[str, Any], condition: Condition, name: str | None) -> tuple[ScoredSet, int, int]:
    """The set and this replicate's committed (errors, reads) on it. ValueError where it was not scored on such a set."""
    newest = newest_manifest(store)
    if newest is None:
        raise ValueError(f"{store.path('manifests')} has no manifest, so the study's evaluation sets are not known")
    study = manifests.study_of(newest[1])
    ended = (pc.field("key") == row["key"]) & (pc.field("stage") == row["stage"]) & (pc.field("step") == row["steps"])
    rows = read(
        store, "evaluations", filter=ended & (pc.field("metric") == METRIC) & (pc.field("weights") == "raw")
    ).to_pylist()
    found = {}
    for each in study.sets:
        digest = each.hash(condition.task, study.evaluate_seed)
        own = [one for one in rows if (one["set"], one["set_hash"]) == (each.name, digest) and one["errors"] is not None]
        if len(own) == 1:
            scored = ScoredSet(each.name, each.task(condition.task), each.sequences, None, digest)
            found[each.name] = scored, own[0]["errors"], own[0]["count"]
    if not found or (name is not None and name not in found):
        raise ValueError(
            f"{row['key'][:12]} of {store.study} has no scores on a set {name or 'of its manifest'}: "
            f"give --set with one of {', '.join(found) or 'none'}"
        )
    return found[name] if name is not None else max(found.values(), key=lambda each: each[1])
