"""The report's figures of measures of kept weights on grammars: the (2, T) sweep beside its teacher's, and progress of students."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from results.claims.distillation.strategies import LABELS, ONE_SHOT, PROGRESSIVE, TWO, first_checkpoint, strategy
from results.claims.evidence import Evidence
from results.report.distillation import pcfg_thesis as thesis
from results.report.distillation.pcfg_students import VARIED, Student
from results.report.family import Drawn
from results.report.plots.lines_and_maps import BANDS, Panels, add_line, common_points, drawn_lines
from results.rows.accuracy_curves import looks, watched
from results.rows.probe_values import parts
from results.rows.summary import of_replicates
from results.statistics.intervals import Floats

Steps = Mapping[str, Mapping[int, Mapping[str, float]]]


def sweep(students: Sequence[Student], test: str, ngrams: Steps, evaluations: pa.Table) -> list[Drawn]:
    """(2, T) students by their first checkpoint, beside the teacher's L_robust and accuracy at that checkpoint."""
    two = [student for student in students if student.kind == TWO and first_checkpoint(student.settings) is not None]
    if not two:
        return []
    teacher = two[0].teacher
    steps, horizon = teacher.settings["train.steps"], two[0].settings["train.steps"]
    points: dict[str, list[tuple[float, Floats]]] = {}
    like = ("train.steps", "stage.temperature", *VARIED)
    last = [
        student
        for student in students
        if student.kind == ONE_SHOT and all(student.settings[name] == two[0].settings[name] for name in like)
    ]
    for student in [*two, *last]:
        first = student.settings["stage.teacher.checkpoints"]
        name = f"T = {first[0]['steps']}" if student.kind == TWO else "the last alone"
        at = first[0]["at"] if student.kind == TWO else steps
        values = student.condition.accuracies(test)
        if values.size:
            points.setdefault(name, []).append((100 * at / steps, values))
    panels: Panels = {}
    _add(panels, "Student's accuracy by its first checkpoint", points)
    if teacher.settings["task.grammar"] == "cfg3b" and teacher.settings["task.objective"] == "masked":
        theirs = {f"{name}": values for name, values in (("thesis, best T", thesis.SWEEP), ("thesis, L_robust", thesis.ROBUST))}
        of_thesis = {
            name: [(100 * at / thesis.STEPS, np.array([value])) for at, value in row.items()] for name, row in theirs.items()
        }
        _add(panels, "The same in figure 4.7 of the thesis", of_thesis)
    rows = of_replicates(teacher.replicates, ngrams)
    for item in ("robust n=3 tv", "close n=3 tv"):
        name = f"L_{item.split()[0]} of 3-grams"
        add_line(panels, f"Teacher's {name}", name, common_points([{at: row[at][item] for at in row} for row in rows], steps))
    watching = watched(evaluations)
    if watching is not None:
        curves = looks(evaluations, watching)
        mean = [dict(curve) for curve in of_replicates(teacher.replicates, curves)]
        add_line(panels, "Teacher's accuracy", "teacher", common_points(mean, steps))
    caption = (
        f"Students of {horizon} steps in all, on “{test}”; L_robust and L_close are medians over strings and positions, half the L1 "
        f"distance. {BANDS}"
    )
    title, label = "The first checkpoint of (2, T) students, and their teacher there", "per cent of the teacher's steps"
    return drawn_lines("sweep", title, caption, panels, label, value="", shared="none")


def measures(evidence: Evidence, students: Sequence[Student], ngrams: Steps, symbols: Steps) -> list[Drawn]:
    """Progress measures of students at the longest horizon up to their teacher's: figure 4.8."""
    plain = [student for student in students if student.kind in (ONE_SHOT, PROGRESSIVE)]
    longest = max((student.settings["train.steps"] for student in plain if _fits(student)), default=None)
    chosen = {student.condition.name for student in plain if student.settings["train.steps"] == longest}
    like = next((student.settings for student in plain if student.condition.name in chosen), {})
    chosen |= {
        each.name
        for each in evidence.conditions
        if strategy(each.settings) == LABELS
        and all(each.settings.get(k) == v for k, v in like.items() if not k.startswith("stage."))
    }
    panels: Panels = {}
    for title, table, prefix, ending in (
        ("L_robust by n", ngrams, "robust n=", " tv"),
        ("L_close by n", ngrams, "close n=", " tv"),
        ("Probe of non-terminals by level from the root", symbols, "level=", " boundary"),
    ):
        points = {}
        for condition in evidence.conditions:
            rows = of_replicates(condition.replicates if condition.name in chosen else (), table)
            lasts = [_numbered(row[max(row)], prefix, ending) for row in rows]
            if lasts:
                points[condition.name] = common_points(lasts)
        _add(panels, title, points)
    caption = f"Students of {longest} steps at their end; L_robust and L_close are medians over strings and positions. {BANDS}"
    title, label = "Progress measures of students", "n, or level"
    return drawn_lines("measures", title, caption, panels, label, value="", shared="none")


def _fits(student: Student) -> bool:
    return bool(student.settings["train.steps"] <= student.teacher.settings["train.steps"])


def _numbered(items: Mapping[str, float], prefix: str, ending: str) -> dict[int, float]:
    """{3: …} of "robust n=3 tv"."""
    return {int(gaps[0]): value for item, value in items.items() if (gaps := parts(item, f"{prefix}{{n}}{ending}"))}


def _add(panels: Panels, panel: str, points: Mapping[str, Sequence[tuple[float, Floats]]]) -> None:
    for line, row in points.items():
        add_line(panels, panel, line, row)
