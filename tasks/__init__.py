"""What is learned. A new task is one file and one line of `REGISTRY`."""

import dataclasses
import difflib
from collections.abc import Iterable
from typing import Any

from tasks.automata.automata import Automaton
from tasks.batch import Batch
from tasks.distillation.hierarchical_parity import HierarchicalParity
from tasks.distillation.parity import SparseParity
from tasks.distillation.pcfg import PCFG
from tasks.flipflop.flipflop import FlipFlop
from tasks.flipflop.simulation import Simulation
from tasks.lego.lego import Lego
from tasks.subsequences.associations import Associations
from tasks.task import Task
from tasks.text.corpus import Corpus

REGISTRY: dict[str, type[Task]] = {
    "flipflop": FlipFlop,
    "flipflop_simulation": Simulation,
    "automaton": Automaton,
    "lego": Lego,
    "sparse_parity": SparseParity,
    "hierarchical_parity": HierarchicalParity,
    "pcfg": PCFG,
    "corpus": Corpus,
    "associations": Associations,
}

__all__ = ["REGISTRY", "Batch", "build"]


def build(name: str, **fields: Any) -> Task:
    """The task called `name`, a frozen dataclass. Raises ValueError for an unknown name, field or value."""
    if name not in REGISTRY:
        raise ValueError(f"there is no task {name!r}{_nearest(name, REGISTRY)}; tasks: {', '.join(REGISTRY)}")
    known = [field.name for field in dataclasses.fields(REGISTRY[name])]
    for field in fields:
        if field not in known:
            raise ValueError(
                f"task.{field} is not an option of the task {name}{_nearest(field, known)}; options: {', '.join(known)}"
            )
    return REGISTRY[name](**{key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()})


def _nearest(word: str, known: Iterable[str]) -> str:
    match = difflib.get_close_matches(word, list(known), n=1)
    return f" (did you mean {match[0]}?)" if match else ""
