"""What a replicate of an experiment returns: named numbers, with the step, the set and the count they belong to, checked.

{"accuracy": 0.93, "loss": 0.2}                              # one entry
{"step": 100, "set": "test", "count": 500, "accuracy": 0.9}  # with a place of its own
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.study.config import Metric, nearest

PLACES = ("step", "set", "count")
RESULT = "result"  # the set of what names none
MOST_ENTRIES = 1_000_000  # of a replicate
_LARGEST = 2**63 - 1


class BadResult(ValueError):
    """A function or a script returned what is no result; the replicate fails with this sentence."""


@dataclass(frozen=True)
class Entry:
    """values: by metric, with its kind (number or flag). count: cases that the values are means over."""

    step: int
    set: str
    count: int | None
    values: Mapping[str, tuple[float, str]]

    def as_json(self) -> list[Any]:
        return [self.step, self.set, self.count, {name: list(value) for name, value in self.values.items()}]


def entry_from_json(data: list[Any]) -> Entry:
    """The inverse of `Entry.as_json`."""
    step, name, count, values = data
    return Entry(step, name, count, {metric: (value, kind) for metric, (value, kind) in values.items()})


def entry_of(returned: Any, known: Mapping[str, Metric]) -> Entry:
    """One mapping of names to numbers, checked against the metrics that are known. BadResult where it is something else."""
    if not isinstance(returned, Mapping):
        raise BadResult(
            f"a result is a {type(returned).__name__}, and must be a mapping of names to numbers, such as {{'accuracy': 0.9}}"
        )
    if odd := next((name for name in returned if not isinstance(name, str) or not name.isprintable() or not name), None):
        raise BadResult(f"a result has the name {odd!r}, and a metric is called by a printable word")
    values = {name: _number(name, value) for name, value in returned.items() if name not in PLACES}
    if not values:
        raise BadResult("a result has no metric: return at least one number by name, such as {'accuracy': 0.9}")
    for name, (_, kind) in values.items():
        if name in known and known[name].kind not in ("", kind):
            raise BadResult(
                f"the metric {name} is a {kind} here and was a {known[name].kind} in the replicates before: return one kind"
            )
    step, name, count = (returned.get(place) for place in PLACES)
    if step is not None and (type(step) is not int or not 0 <= step <= _LARGEST):
        raise BadResult(f"step = {step!r} must be a whole number of at least 0")
    if name is not None and (not isinstance(name, str) or not name or not name.isprintable()):
        raise BadResult(f"set = {name!r} must be a printable word")
    if count is not None and (type(count) is not int or not 1 <= count <= _LARGEST):
        raise BadResult(f"count = {count!r} must be a whole number of at least 1: the cases that the numbers are means over")
    return Entry(step or 0, name or RESULT, count, values)


def entries_of(returned: Any, known: Mapping[str, Metric]) -> Iterator[Entry]:
    """The entries of one mapping, or of an iterator of them, one at a time. BadResult where there are none."""
    parts: Iterable[Any] = [returned] if isinstance(returned, Mapping) or not isinstance(returned, Iterable) else returned
    number = 0
    for number, part in enumerate(parts, 1):
        if number > MOST_ENTRIES:
            raise BadResult(f"there are more than {MOST_ENTRIES:,} results of one replicate: return them at fewer steps")
        yield entry_of(part, known)
    if not number:
        raise BadResult("there is no result: return a mapping of names to numbers, or yield some")


def entries_of_pack(returned: Any, size: int, known: Mapping[str, Metric]) -> Iterator[list[Entry]]:
    """As `entries_of`, of a function that measures a pack: every value has a leading axis of `size`, one entry a replicate."""
    parts: Iterable[Any] = [returned] if isinstance(returned, Mapping) or not isinstance(returned, Iterable) else returned
    for part in parts:
        if not isinstance(part, Mapping):
            raise BadResult(f"a result is a {type(part).__name__}, and must be a mapping of names to arrays of {size} numbers")
        columns = {name: _column(name, value, size) for name, value in part.items() if name not in PLACES}
        places = {name: part[name] for name in PLACES if name in part}
        yield [entry_of({name: column[slot] for name, column in columns.items()} | places, known) for slot in range(size)]


def last_values(entries: Iterable[Entry]) -> dict[tuple[str, str], tuple[int, float]]:
    """{(set, metric): (step, value)}: of each the value at its largest step, and of several there the last."""
    found: dict[tuple[str, str], tuple[int, float]] = {}
    for entry in entries:
        for name, (value, _) in entry.values.items():
            if entry.step >= found.get((entry.set, name), (0, 0.0))[0]:
                found[entry.set, name] = (entry.step, value)
    return found


def each_value(entries: Iterable[Entry]) -> list[tuple[Entry, str, float, str]]:
    """(entry, metric, value, kind) of every value; of several at one step of one set, the last."""
    found = {(e.set, name, e.step): (e, name, value, kind) for e in entries for name, (value, kind) in e.values.items()}
    return list(found.values())


def diverged_at(entries: Iterable[Entry]) -> int | None:
    """The step at which a last value is no finite number; None where all are."""
    return min((step for step, value in last_values(entries).values() if not math.isfinite(value)), default=None)


def _number(name: str, value: Any) -> tuple[float, str]:
    if getattr(value, "ndim", None) == 0:  # of numpy, torch or JAX
        value = value.item()
    if type(value) is bool:
        return float(value), "flag"
    if isinstance(value, int | float):
        return float(value), "number"
    raise BadResult(f"the metric {name} is {str(value)[:60]!r}, which is no number{nearest(name, PLACES, '')}")


def _column(name: str, value: Any, size: int) -> list[Any]:
    array = value.detach().cpu().numpy() if hasattr(value, "detach") else np.asarray(value)
    if array.shape != (size,):
        raise BadResult(
            f"the metric {name} has the shape {list(array.shape)}, and must have one number for each of {size} seeds, [{size}]"
        )
    found: list[Any] = array.tolist()
    return found
