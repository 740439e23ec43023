"""What results say of distillation on grammars: strategies and horizons of students, their teachers, values of probes by step, phases."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from results.transition import accuracies

LABELS, ONE_SHOT, PROGRESSIVE, TWO = "labels", "one-shot", "progressive", "(2, T)"
PHASE_BEGIN, PHASE_END = 0.1, 0.8  # parts of the whole rise between which it is called rapid
STEEPER = 1.5  # times as steep as before and after, at least; 1 is a straight line, and the teacher of figure 4.7 has 2.8

Settings = Mapping[str, Any]


def strategy(settings: Settings) -> str | None:
    """Of a condition's options by dotted path: LABELS (a first stage), ONE_SHOT, PROGRESSIVE (several equally spaced checkpoints), TWO
    (one checkpoint, then the last), None for anything else."""
    if "stage.number" not in settings:
        return LABELS
    if settings["stage.labels"] != "teacher":
        return None
    checkpoints = settings["stage.teacher.checkpoints"]
    if not checkpoints:
        return ONE_SHOT if settings["stage.teacher.shots"] == 1 else PROGRESSIVE
    if len(checkpoints) == 1 and checkpoints[0]["at"] == "last":
        return ONE_SHOT
    return TWO if len(checkpoints) == 2 and checkpoints[1]["at"] == "last" else None


def first_checkpoint(settings: Settings) -> int | None:
    """The teacher's step that a (2, T) student begins with; None where a rule says it."""
    at = settings["stage.teacher.checkpoints"][0]["at"]
    return at if isinstance(at, int) else None


def teacher_config(config: Mapping[str, Any]) -> dict[str, Any] | None:
    """What is hashed of the teacher of a student, from what is hashed of the student; None for a first stage, or a longer chain."""
    stages = config.get("stages", [])
    if len(stages) != 2:
        return None
    before = stages[0]
    return {"task": before["task"], "model": before.get("model", config["model"]), "train": before["train"]}


def by_step(rows: pa.Table, probe: str) -> dict[str, dict[int, dict[str, float]]]:
    """Values of a probe by key, step and item. Of runs with different options the one with most rows: options are in the name."""
    named = [row for row in rows.to_pylist() if row["probe"] == probe or row["probe"].startswith(f"{probe}-")]
    counts: dict[str, int] = {}
    for row in named:
        counts[row["probe"]] = counts.get(row["probe"], 0) + 1
    chosen = max(sorted(counts), key=lambda name: counts[name], default=probe)
    found: dict[str, dict[int, dict[str, float]]] = {}
    for row in named:
        if row["probe"] == chosen:
            found.setdefault(row["key"], {}).setdefault(row["step"], {})[row["item"]] = row["value"]
    return found


def looks(evaluations: pa.Table, name: str, metric: str) -> dict[str, list[tuple[int, float]]]:
    """Accuracy by key at every look at a set, in order of the steps; looks without a number are left out."""
    rows = evaluations.filter((pc.field("set") == name) & (pc.field("metric") == metric) & (pc.field("weights") == "raw"))
    by: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows.sort_by("step").to_pylist():
        by.setdefault(row["key"], []).append(row)
    return {key: [(step, value) for step, value in accuracies(mine) if value is not None] for key, mine in by.items()}


@dataclass(frozen=True)
class Phases:
    """The rapid phase is from step `begin` to step `end`; `visible`: it is STEEPER times as steep as what comes before and after."""

    begin: float
    end: float
    visible: bool


def phases(curve: Sequence[tuple[int, float]]) -> Phases | None:
    """The three phases of a training's accuracy, or of minus its loss: hardly any change, a rapid rise, a slow rest.

    Panigrahi et al. 2025, section 4.2.8 of the thesis, says them in words; here: rapid is from where PHASE_BEGIN of the whole rise is
    reached for the first time to where PHASE_END is, between looks by straight lines. The whole rise is from the first look to the best
    one, and what comes before the rapid phase begins at the first look. None with fewer than 4 looks, and where nothing rises.
    """
    ordered = sorted(curve)
    if len(ordered) < 4:
        return None
    first, best, last = ordered[0][1], max(value for _, value in ordered), ordered[-1][0]
    if best <= first:
        return None
    begin, end = (_reached(ordered, first + part * (best - first)) for part in (PHASE_BEGIN, PHASE_END))
    if end <= begin or last <= end:
        return Phases(begin, end, False)
    before, rapid, after = (
        PHASE_BEGIN / (begin - ordered[0][0]),
        (PHASE_END - PHASE_BEGIN) / (end - begin),
        (1 - PHASE_END) / (last - end),
    )
    return Phases(begin, end, rapid >= STEEPER * before and rapid >= STEEPER * after)


def _reached(ordered: Sequence[tuple[int, float]], value: float) -> float:
    """The step at which a value above the first one is reached, between two looks by a straight line."""
    for (step, low), (later, high) in pairwise(ordered):
        if high >= value:
            return step + (later - step) * (value - low) / (high - low)
    raise ValueError(f"{value:g} is not reached")


def mean(values: Iterable[float]) -> float:
    """Of at least one value."""
    listed = list(values)
    return sum(listed) / len(listed)


def watched(evaluations: pa.Table) -> str | None:
    """The set that is looked at most often on the way; None where none is."""
    rows = evaluations.group_by(["set", "step"]).aggregate([]).to_pylist()
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["set"]] = counts.get(row["set"], 0) + 1
    found = max(sorted(counts), key=lambda name: counts[name], default=None)
    return found if found is not None and counts[found] > 1 else None
