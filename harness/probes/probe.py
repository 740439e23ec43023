"""What a probe declares: what it measures, on which replicates, and what can be set.

A new probe is a function and a `Probe`, or two functions and a `PairProbe`, in a file of its family, and a name for it in `PROBES` of the
family's `__init__.py`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor

from models.model import Model
from models.transformer.transformer import Decoder
from results.plain_values import Row
from tasks.task import Task

if TYPE_CHECKING:
    from results.store.tables import Store

Rows = list[Row]  # each with layer, head, item and value, as `checked_rows` wants them


def of_place(layer: int | None, head: int | None, values: Iterable[tuple[str, float | Tensor]]) -> Rows:
    """Rows of (item, value) pairs that belong to a layer, or to one of its heads."""
    return [{"layer": layer, "head": head, "item": item, "value": float(value)} for item, value in values]


def of_model(values: Iterable[tuple[str, float]]) -> Rows:
    """Rows of (item, value) pairs that belong to the whole model, and so to no layer or head."""
    return of_place(None, None, values)


def of_heads(by_layer: Mapping[int, Tensor], items: Sequence[str]) -> Rows:
    """Rows of each layer's values by item and head, [items, H]."""
    return [
        {"layer": layer, "head": head, "item": item, "value": value}
        for layer, table in sorted(by_layer.items())
        for item, values in zip(items, table.tolist(), strict=True)
        for head, value in enumerate(values)
    ]


@dataclass(frozen=True)
class Nothing:
    """No option."""


@dataclass(frozen=True)
class Probe:
    """run(model, task, strings, settings) gives rows; `suits(model's configuration, task)`; kind: what it is for, in words.

    strings: how many it takes by default; None: it has strings of its own. every_step: at each step whose weights are kept, not at the
    last alone. beside(model, task): rows of further names. figures(store, folder): draws what the store holds of it, and returns the files
    written; None: no figures. The global generators of Python, numpy and torch are seeded alike before each call of run, and of beside.
    """

    run: Callable[[Decoder, Any, int, Any], Rows]
    suits: Callable[[Model, Task], bool]
    kind: str
    strings: int | None = 64
    settings: type = Nothing
    every_step: bool = False
    beside: Callable[[Decoder, Any], dict[str, Rows]] = lambda model, task: {}
    figures: Callable[["Store", Path], list[Path]] | None = None


@dataclass(frozen=True)
class PairProbe:
    """A probe whose rows compare two replicates of one condition: see(model, task, strings, settings) looks at each alone, and
    compare(what one showed, what the other did) gives rows. They stand under the key of the later seeds, with the other's key in
    `other_key`. The rest is as for a `Probe`.
    """

    see: Callable[[Decoder, Any, int, Any], Any]
    compare: Callable[[Any, Any], Rows]
    suits: Callable[[Model, Task], bool]
    kind: str
    strings: int = 64
    settings: type = Nothing
    every_step: ClassVar[bool] = False  # the last kept weights of both
    figures: Callable[["Store", Path], list[Path]] | None = None
