"""The registry of tasks. A new task is one file and one name in the `TASKS` of its family's folder; a new family is one line here."""

import dataclasses
import difflib
from collections.abc import Iterable
from typing import Any

from tasks.automata import TASKS as AUTOMATA
from tasks.batch import Batch
from tasks.distillation import TASKS as DISTILLATION
from tasks.dyck import TASKS as DYCK
from tasks.flipflop import TASKS as FLIPFLOP
from tasks.generation import TASKS as GENERATION
from tasks.lego import TASKS as LEGO
from tasks.ngrams import TASKS as NGRAMS
from tasks.subsequences import TASKS as SUBSEQUENCES
from tasks.task import Task
from tasks.text import TASKS as TEXT

REGISTRY: dict[str, type[Task]] = FLIPFLOP | AUTOMATA | LEGO | DISTILLATION | TEXT | SUBSEQUENCES | NGRAMS | DYCK | GENERATION

__all__ = ["REGISTRY", "Batch", "build"]


def build(name: str, **fields: Any) -> Task:
    """Make the task called `name`, a frozen dataclass. Raises ValueError for an unknown name, field or value."""
    if name not in REGISTRY:
        raise ValueError(f"there is no task {name!r}{_nearest(name, REGISTRY)}; tasks: {', '.join(REGISTRY)}")
    options = [field.name for field in dataclasses.fields(REGISTRY[name])]
    for field in fields:
        if field not in options:
            raise ValueError(
                f"task.{field} is not an option of the task {name}{_nearest(field, options)}; options: {', '.join(options)}"
            )
    return REGISTRY[name](**{key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()})


def _nearest(word: str, names: Iterable[str]) -> str:
    match = difflib.get_close_matches(word, list(names), n=1)
    return f" (did you mean {match[0]}?)" if match else ""
