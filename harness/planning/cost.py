"""What the missing part of a plan will cost: hours of a device and bytes of a store. A pure function of what was measured."""

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from harness.planning.pack import kept_steps
from harness.planning.plan import Plan
from harness.study.config import Condition, Study, keep_tail
from harness.study.stages import taken_from
from results.store.second_copy import FEW_ROWS

# bytes of a zstd Parquet file of one row and of each further row, measured on packs of 1, 16 and 64
FILE_BYTES = {"replicates": 11_000, "evaluations": 5_600, "profiles": 3_700, "curves": 2_500}
ROW_BYTES = {"replicates": 55, "evaluations": 8, "profiles": 1, "curves": 6}
# further ones where a file holds its few rows twice
COPIED_FILE_BYTES = {"replicates": 1_100, "evaluations": 100, "profiles": 100, "curves": 0}
COPIED_ROW_BYTES = {"replicates": 140, "evaluations": 40, "profiles": 29, "curves": 26}
_PROFILE_ROWS = 50  # bins of the two axes of one set of long strings
_AVERAGED_ROWS = 10  # of a look where labels are laws: the loss, and distances to some estimators
_WATCHED_ROWS = 24  # of a look: norms and gradients of some parameters, and lags of some heads

_Number = TypeVar("_Number", int, float)


@dataclass(frozen=True)
class Estimate:
    """What is missing: `slot_hours` of one device slot (a core, a GPU), `hours` until its last pack is
    done, bytes that it adds to the store.

    tables: bytes of the Parquet files; weights: bytes of kept weights; weights_meanwhile: before the study's end thins them out.
    """

    replicates: int = 0
    packs: int = 0
    slot_hours: float = 0.0
    hours: float = 0.0
    tables: int = 0
    weights: int = 0
    weights_meanwhile: int = 0


def estimate(
    plan: Plan,
    rates: Mapping[str, float],
    slots: int = 1,
    weights: Mapping[str, int] | None = None,
    saved: Mapping[str, float] | None = None,
) -> Estimate:
    """The cost of what a plan misses.

    rates: seconds that a replicate takes on one slot, evaluation included; weights: bytes of its file of weights; both by `plan.shape`.
    saved: seconds of the training that a pack's checkpoint holds, by pack id.

    `weights` is read only where the study keeps some, or later stages need them. With keep: tail(n) at most n of a condition's missing
    replicates stay. ValueError for a signature without a number.
    """
    seconds, tables, stay, meanwhile = 0.0, 0, 0, 0
    tail = keep_tail(plan.study.keep)
    by_stage: dict[int, list[float]] = {}
    kept: Counter[int] = Counter()
    parents = {replicate.parent for replicate in plan.replicates}
    taken = taken_from(plan.study.conditions)
    for pack in plan.packs:
        pack_seconds = _measured(rates, pack.shape, "seconds per replicate") * len(pack.replicates)
        pack_seconds -= (saved or {}).get(pack.id, 0.0)
        seconds += pack_seconds
        by_stage.setdefault(pack.stage, []).append(pack_seconds)
        tables += sum(FILE_BYTES.values())
        needed = any(
            plan.replicates[index].key in parents for index in pack.replicates
        )  # by a later stage, whatever `keep` says
        weight_bytes = 0 if tail == 0 and not needed else _measured(weights or {}, pack.shape, "bytes of weights")
        steps = kept_steps(plan, pack, taken)
        written: Counter[str] = Counter()
        for index in pack.replicates:
            condition = plan.replicates[index].condition
            written.update(rows_of(plan.study, plan.study.conditions[condition]))
            last = plan.study.conditions[condition].steps
            files = 1 + sum(step < last for step in steps)
            meanwhile += weight_bytes * files
            if needed or tail is None or kept[condition] < tail:
                kept[condition] += 1
                stay += weight_bytes * files
        tables += sum(ROW_BYTES[table] * rows for table, rows in written.items())
        few = {table: rows for table, rows in written.items() if 0 < rows <= FEW_ROWS}
        tables += sum(COPIED_FILE_BYTES[table] + COPIED_ROW_BYTES[table] * rows for table, rows in few.items())
    count = sum(len(pack.replicates) for pack in plan.packs)
    return Estimate(count, len(plan.packs), seconds / 3600, _makespan(by_stage, slots) / 3600, tables, stay, meanwhile)


def _makespan(seconds: Mapping[int, Sequence[float]], slots: int) -> float:
    """Seconds until all packs are done: stage by stage, the longest pack first, each on the slot that is free first.

    seconds: of each pack, by stage.
    """
    total = 0.0
    for packs in seconds.values():
        free = [0.0] * min(slots, len(packs))
        for longest in sorted(packs, reverse=True):
            heapq.heapreplace(free, free[0] + longest)
        total += max(free)
    return total


def rows_of(study: Study, condition: Condition) -> dict[str, int]:
    """Rows a replicate writes, by table: every set is scored twice where the weights are averaged too."""
    if condition.experiment is not None:
        return {"replicates": 1, "evaluations": max(1, len(study.metrics))}
    train, steps = condition.train, condition.steps
    looks = sum(1 if scored.every is None else -(-steps // scored.every) for scored in study.sets)
    most = max(len(condition.task.metrics) for condition in study.conditions)
    penalty = train.sharpen or train.consistency
    metrics = 2 + (penalty is not None and penalty.weight > 0)  # loss, lr, penalty
    watched = 0 if train.monitor is None else steps // train.monitor.every
    if study.watch is not None:
        watched += _WATCHED_ROWS * -(-steps // study.watch.every)
    averaged = max(_AVERAGED_ROWS * condition.task.soft for condition in study.conditions)
    return {
        "replicates": 1,
        "evaluations": (most + averaged) * looks * (2 if train.ema else 1),
        "profiles": min(_PROFILE_ROWS, condition.task.length) * len(study.sets),
        "curves": metrics * -(-steps // study.curve_every) + watched,
    }


def _measured(measured: Mapping[str, _Number], signature: str, what: str) -> _Number:
    if signature not in measured:
        raise ValueError(f"no measured {what} for {signature}: measure it or give one")
    return measured[signature]
