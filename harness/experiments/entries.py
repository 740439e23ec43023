"""What a replicate of an experiment returns: named numbers and arrays, with the step, the set and the count they belong to, checked.

{"accuracy": 0.93, "loss": 0.2}                              # one entry
{"step": 100, "set": "test", "count": 500, "accuracy": 0.9}  # with a place of its own
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.study.config import Metric, nearest
from results.rows.measures import ARRAY, RESULT, label
from results.store.schema import MOST_VALUE
from results.store.shapes import LARGEST

PLACES = ("step", "set", "count")
MOST_ENTRIES = 1_000_000  # of a replicate
MOST_ARRAY = 2**28  # bytes of an array
Array = NDArray[Any]
_A = {"number": "a number", "flag": "a flag", ARRAY: "an array"}


class BadResult(ValueError):
    """A function or a script returned what is no result; the replicate fails with this sentence."""


@dataclass(frozen=True)
class Entry:
    """values: by metric, with its kind (number or flag). count: cases that the values are means over. arrays: by name; kept: the names of
    those that are in the store already."""

    step: int
    set: str
    count: int | None
    values: Mapping[str, tuple[float, str]]
    arrays: Mapping[str, Array] = field(default_factory=dict)
    kept: tuple[str, ...] = ()

    def kinds(self) -> list[tuple[str, str]]:
        """(metric, kind) of its values and arrays."""
        return [*((name, kind) for name, (_, kind) in self.values.items()), *((name, ARRAY) for name in self.arrays)]

    def as_json(self) -> list[Any]:
        """All but the arrays."""
        values = {name: list(value) for name, value in self.values.items()}
        return [self.step, self.set, self.count, values, list(self.kept)]


def entry_from_json(data: list[Any]) -> Entry:
    """The inverse of `Entry.as_json`."""
    step, name, count, values, *kept = data  # a checkpoint of an older version has no `kept`
    numbers = {metric: (value, kind) for metric, (value, kind) in values.items()}
    return Entry(step, name, count, numbers, kept=tuple(kept[0]) if kept else ())


def entry_of(returned: Any, known: Mapping[str, Metric]) -> Entry:
    """One mapping of names to numbers, checked against the metrics that are known. BadResult where it is something else."""
    if not isinstance(returned, Mapping):
        raise BadResult(
            f"a result is of type {type(returned).__name__}, and must be a mapping of names to numbers, such as {{'accuracy': 0.9}}"
        )
    if odd := [name for name in returned if not isinstance(name, str) or not name.isprintable() or not name.strip()]:
        raise BadResult(f"a result has the name {odd[0]!r}, and a metric is called by a printable word")
    named = {name: value for name, value in returned.items() if name not in PLACES}
    arrays = {name: _array(name, value) for name, value in named.items() if getattr(value, "ndim", 0)}
    values = {name: _number(name, value) for name, value in named.items() if name not in arrays}
    if not named:
        raise BadResult("a result has no metric: return at least one number by name, such as {'accuracy': 0.9}")
    step, name, count = (_plain(returned.get(place)) for place in PLACES)
    if step is not None and (type(step) is not int or not 0 <= step <= LARGEST):
        raise BadResult(f"step = {step!r} must be a whole number of at least 0")
    if name is not None and (not isinstance(name, str) or not name or not name.isprintable()):
        raise BadResult(f"set = {name!r} must be a printable word")
    if count is not None and (type(count) is not int or not 1 <= count <= LARGEST):
        raise BadResult(f"count = {count!r} must be a whole number of at least 1: the cases that the numbers are means over")
    entry = Entry(step or 0, name or RESULT, count, values, arrays)
    for metric, kind in entry.kinds():
        if metric in known and known[metric].kind not in ("", kind):
            raise BadResult(
                f"the metric {metric} is {_A[kind]} here and was {_A[known[metric].kind]} in the replicates before: return one kind"
            )
    return entry


def _each(returned: Any) -> Iterable[Any]:
    return [returned] if isinstance(returned, Mapping) or not isinstance(returned, Iterable) else returned


def entries_of(returned: Any, known: Mapping[str, Metric], latest: int = 0) -> Iterator[Entry]:
    """The entries of one mapping, or of an iterator of them, one at a time. BadResult where there are none.

    latest: the largest step so far. A result without a step is at that step, since the last value counts.
    """
    for number, part in enumerate(_each(returned), 1):
        if number > MOST_ENTRIES:
            raise BadResult(f"there are more than {MOST_ENTRIES:,} results of one replicate: return them at fewer steps")
        entry = entry_of(part, known)
        yield entry if part.get("step") is not None else replace(entry, step=latest)
        latest = max(latest, entry.step)


def entries_of_pack(returned: Any, size: int, known: Mapping[str, Metric], latest: int = 0) -> Iterator[list[Entry]]:
    """As `entries_of`, of a function that measures a pack: every value has a leading axis of `size`, one entry per replicate."""
    for part in _each(returned):
        if not isinstance(part, Mapping):
            raise BadResult(
                f"a result is of type {type(part).__name__}, and must be a mapping of names to arrays of {size} numbers"
            )
        columns = {name: _column(name, value, size) for name, value in part.items() if name not in PLACES}
        places = {name: part[name] for name in PLACES if name in part}
        if places.get("step") is None:
            places["step"] = latest
        entries = [entry_of({name: column[slot] for name, column in columns.items()} | places, known) for slot in range(size)]
        yield entries
        latest = max(latest, entries[0].step)


def checked(entries: list[Entry], kinds: dict[str, str]) -> list[Entry]:
    """All entries of a replicate, of which at least one has a number. kinds: of the metrics so far, to which those of it are added."""
    if not entries:
        raise BadResult("there is no result: return a mapping of names to numbers, or yield some")
    if not any(entry.values for entry in entries):
        raise BadResult("there are arrays alone: return at least one number too, such as {'accuracy': 0.9}")
    labels: dict[str, tuple[str, str]] = {}
    for place, name in ((entry.set, name) for entry in entries for name, _ in entry.kinds()):
        if labels.setdefault(label(place, name), (place, name)) != (place, name):
            raise BadResult(f"two metrics are called {label(place, name)!r}, one of them by its set: rename one")
    for name, kind in (pair for entry in entries for pair in entry.kinds()):
        if kinds.setdefault(name, kind) != kind:
            raise BadResult(
                f"the metric {name} is {_A[kind]} here and was {_A[kinds[name]]} in a result before: return one kind"
            )
    return entries


def last_values(entries: Iterable[Entry]) -> dict[tuple[str, str], tuple[int, float]]:
    """{(set, metric): (step, value)}: of each the value at its largest step, and of several there the last."""
    latest: dict[tuple[str, str], tuple[int, float]] = {}
    for entry in entries:
        for name, (value, _) in entry.values.items():
            if entry.step >= latest.get((entry.set, name), (0, 0.0))[0]:
                latest[entry.set, name] = (entry.step, value)
    return latest


def each_value(entries: Iterable[Entry]) -> list[tuple[Entry, str, float, str]]:
    """(entry, metric, value, kind) of every value; of several at one step of one set, the last."""
    latest = {(e.set, name, e.step): (e, name, value, kind) for e in entries for name, (value, kind) in e.values.items()}
    return list(latest.values())


def diverged_at(entries: Iterable[Entry]) -> int | None:
    """The step at which a last value is no finite number; None where all are."""
    return min((step for step, value in last_values(entries).values() if not math.isfinite(value)), default=None)


def _plain(value: Any) -> Any:
    """A scalar of numpy, torch or JAX as Python's; anything else as it is."""
    return value.item() if getattr(value, "ndim", None) == 0 else value


def _number(name: str, value: Any) -> tuple[float, str]:
    """A value and its kind. One beyond MOST_VALUE counts as infinite, and so its replicate as diverged."""
    value = _plain(value)
    if type(value) is bool:
        return float(value), "flag"
    if isinstance(value, int | float):
        return math.inf * (value > 0 or -1) if abs(value) > MOST_VALUE else float(value), "number"
    if isinstance(value, Mapping):
        raise BadResult(
            f"the metric {name} is a mapping, which is no number: give each of its numbers a name of its own, such as {name}/train"
        )
    if isinstance(value, list | tuple):
        raise BadResult(
            f"the metric {name} is a {type(value).__name__}, which is no number: return its mean, or keep it whole as a numpy array"
        )
    raise BadResult(
        f"the metric {name} is {repr(value)[:60]}, which is no number{nearest(name, PLACES, '')}: return a number, and leave out what "
        "has none"
    )


def _array(name: str, value: Any) -> Array:
    """An array as it is kept: in the order of bytes and axes that files have."""
    array = _numpy(value)
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise BadResult(f"the array {name} has elements of {array.dtype}: return whole numbers, floats or booleans")
    if array.nbytes > MOST_ARRAY:
        raise BadResult(f"the array {name} has {array.nbytes:,} bytes, and at most {MOST_ARRAY:,} are kept: return less")
    return np.ascontiguousarray(array, array.dtype.newbyteorder("=")).copy()  # the function may go on writing into its own


def _column(name: str, value: Any, size: int) -> list[Any]:
    """One number or array a seed."""
    array = _numpy(value)
    if array.shape[:1] != (size,):
        raise BadResult(
            f"the metric {name} has the shape {list(array.shape)}, and must have one number for each of {size} seeds, [{size}], or one "
            f"array, [{size}, …]"
        )
    return list(array) if array.ndim > 1 else array.tolist()


def _numpy(value: Any) -> Array:
    try:
        return value.detach().cpu().numpy() if hasattr(value, "detach") else np.asarray(value)
    except TypeError:
        raise BadResult(f"an array of {value.dtype} can't be kept: convert it first, as with .float()") from None
