"""What results say of distillation on grammars: strategies and horizons of students, their teachers, values of probes by step, phases."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

LABELS, ONE_SHOT, PROGRESSIVE, TWO = "labels", "one-shot", "progressive", "(2, T)"
RAPID, FLAT = 0.05, 0.025  # of the training: the stretch that is called rapid, and one before it that must be flat
STEEPER = 2.0  # times as steep as before and after, at least

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


@dataclass(frozen=True)
class Phases:
    """The rapid phase is from step `begin` to step `end`; `visible`: it is STEEPER times as steep as what comes before and after."""

    begin: float
    end: float
    visible: bool


def phases(losses: Sequence[tuple[int, float]], warmup: int) -> Phases | None:
    """The three phases of a training's loss: hardly any change, a rapid drop, a slow rest.

    Panigrahi et al. 2025, section 4.2.8 of the thesis, says them in words; here: rapid is the stretch of RAPID of the training, after the
    warm-up, over which the loss falls most. Before it the flattest stretch of FLAT of the training counts, from the middle of the warm-up
    on, since the frequencies of tokens are learned first; behind it all that is left. Between points the loss is a straight line.
    None with fewer than 4 points, and where nothing falls.
    """
    points = np.array(
        sorted((step, loss) for step, loss in losses if 2 * step >= warmup and np.isfinite(loss)), dtype=np.float64
    )
    if len(points) < 4:
        return None
    steps, last = points[:, 0], points[-1, 0]
    long, short = RAPID * last, FLAT * last

    def fall(begin: Any, width: float) -> Any:
        """Mean fall a step over `width` steps."""
        return (np.interp(begin, steps, points[:, 1]) - np.interp(begin + width, steps, points[:, 1])) / width

    starts = steps[(steps >= warmup) & (steps + long < last)]
    if not starts.size or (falls := fall(starts, long)).max() <= 0:
        return None
    rapid, begin = float(falls.max()), float(starts[int(falls.argmax())])
    before = fall(steps[steps + short <= begin], short)
    after = fall(begin + long, last - begin - long)
    return Phases(begin, float(begin + long), bool(before.size and rapid >= STEEPER * max(before.min(), after)))


def mean(values: Iterable[float]) -> float:
    """Of at least one value."""
    listed = list(values)
    return sum(listed) / len(listed)


def losses(curves: pa.Table) -> dict[str, list[tuple[int, float]]]:
    """The training loss by key, in order of the steps, of a table of `curves`."""
    found: dict[str, list[tuple[int, float]]] = {}
    for row in curves.filter(pc.field("metric") == "loss").sort_by("step").to_pylist():
        found.setdefault(row["key"], []).append((row["step"], row["value"]))
    return found
