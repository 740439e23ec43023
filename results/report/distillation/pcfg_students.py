"""The students of a study of distillation on grammars as its report draws them: their strategies, teachers and accuracies."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from results.claims.distillation.strategies import LABELS, TWO, strategy, teacher_config
from results.claims.evidence import Condition, Evidence
from results.plain_values import Tree
from results.report.distillation import pcfg_thesis as thesis
from results.statistics.intervals import Floats

VARIED = {"task.grammar": "{}", "task.level": "level {}", "task.mask_rate": "mask rate {}", "model.heads": "heads: {}"}


@dataclass(frozen=True)
class Student:
    """A condition that learns from a teacher. kind: its strategy. teacher: the teacher's condition."""

    condition: Condition
    kind: str
    teacher: Condition

    @property
    def settings(self) -> Tree:
        """The options of the student's condition."""
        return self.condition.settings

    @property
    def about(self) -> tuple[Any, ...]:
        """The options of task and model that studies vary."""
        return tuple(self.settings[name] for name in VARIED)


def distilled(evidence: Evidence) -> list[Student]:
    """The students of the study whose teacher is a condition of it too."""
    students = []
    for condition in evidence.conditions:
        config, kind = teacher_config(condition.config), strategy(condition.settings)
        teacher = next((other for other in evidence.conditions if config is not None and other.config == config), None)
        if teacher is not None and kind is not None:
            students.append(Student(condition, kind, teacher))
    return students


def arms(evidence: Evidence, students: Sequence[Student], test: str) -> dict[tuple[Any, ...], dict[str, dict[float, Floats]]]:
    """Accuracies of the replicates by student, strategy and steps over the teacher's; of several conditions the one with the best mean.

    thesis.TEACHER: models like the teacher's on labels, at their own steps.
    """
    accuracies: dict[tuple[Any, ...], dict[str, dict[float, Floats]]] = {}
    for about in dict.fromkeys(student.about for student in students):
        group = [student for student in students if student.about == about]
        whole = group[0].teacher.settings
        models = {LABELS: group[0].settings, thesis.TEACHER: whole}
        members = [(student.kind, student.condition) for student in group if student.kind != TWO]
        for kind, like in models.items():
            same = [name for name in like if name.startswith(("task.", "model."))]
            members += [
                (kind, condition)
                for condition in evidence.conditions
                if strategy(condition.settings) == LABELS
                and all(condition.settings.get(option) == like[option] for option in same)
            ]
        for kind, condition in members:
            values = condition.accuracies(test)
            cells = accuracies.setdefault(about, {}).setdefault(kind, {})
            at = condition.settings["train.steps"] / whole["train.steps"]
            if values.size and (at not in cells or values.mean() > cells[at].mean()):
                cells[at] = values
    return accuracies


def title_of(students: Sequence[Student], about: tuple[Any, ...]) -> str:
    """The title of a panel: the number of heads, and what else differs between students."""
    shown = []
    for place, (name, text) in enumerate(VARIED.items()):
        if name == "model.heads" or len({student.about[place] for student in students}) > 1:
            shown.append(text.format(about[place]))
    return ", ".join(shown)
