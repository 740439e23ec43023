"""The students of a study of distillation on grammars as its report draws them: their strategies, teachers and accuracies."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from results.claims.distillation.strategies import LABELS, TWO, strategy, teacher_config
from results.plain_values import Options
from results.report.distillation import pcfg_thesis as thesis
from results.rows.task_conditions import TaskConditions, accuracy
from results.statistics.intervals import Floats
from results.store.manifest import Manifest, label, stage_of

VARIED = {"task.grammar": "{}", "task.level": "level {}", "task.mask_rate": "mask rate {}", "model.heads": "heads: {}"}


@dataclass(frozen=True)
class Student:
    """A condition that is distilled. `kind`: its strategy; `teacher`: the label of its teacher's condition."""

    label: str
    kind: str
    settings: Options
    teacher: str

    @property
    def about(self) -> tuple[Any, ...]:
        """The task and the model, as far as studies vary them."""
        return tuple(self.settings[name] for name in VARIED)


def distilled(conditions: TaskConditions, manifest: Manifest) -> list[Student]:
    """The students of the study whose teacher is a condition of it too."""
    configs = {label(condition["name"], stage_of(condition)): condition["config"] for condition in manifest["conditions"]}
    students = []
    for name, settings in conditions.settings.items():
        config, kind = teacher_config(configs[name]), strategy(settings)
        teacher = next((other_name for other_name, other in configs.items() if config is not None and other == config), None)
        if teacher is not None and kind is not None:
            students.append(Student(name, kind, settings, teacher))
    return students


def arms(
    conditions: TaskConditions, students: Sequence[Student], test: str
) -> dict[tuple[Any, ...], dict[str, dict[float, Floats]]]:
    """Accuracies of the replicates by student, strategy and steps over the teacher's; of several conditions the one with the best mean.

    thesis.TEACHER: models like the teacher's on labels, at their own steps.
    """
    accuracies: dict[tuple[Any, ...], dict[str, dict[float, Floats]]] = {}
    for about in dict.fromkeys(student.about for student in students):
        group = [student for student in students if student.about == about]
        whole = conditions.settings[group[0].teacher]
        models = {LABELS: group[0].settings, thesis.TEACHER: whole}
        members = [(student.kind, student.label, student.settings) for student in group if student.kind != TWO]
        for kind, like in models.items():
            same = [name for name in like if name.startswith(("task.", "model."))]
            members += [
                (kind, name, settings)
                for name, settings in conditions.settings.items()
                if strategy(settings) == LABELS and all(settings.get(option) == like[option] for option in same)
            ]
        for kind, name, settings in members:
            values = accuracy(conditions.members[name], test)
            cells = accuracies.setdefault(about, {}).setdefault(kind, {})
            at = settings["train.steps"] / whole["train.steps"]
            if values.size and (at not in cells or values.mean() > cells[at].mean()):
                cells[at] = values
    return accuracies


def title_of(students: Sequence[Student], about: tuple[Any, ...]) -> str:
    """The heads, and what else differs between students."""
    shown = []
    for place, (name, text) in enumerate(VARIED.items()):
        if name == "model.heads" or len({student.about[place] for student in students}) > 1:
            shown.append(text.format(about[place]))
    return ", ".join(shown)
