"""Lists of what belongs together."""

from collections.abc import Iterable
from typing import TypeVar

Name = TypeVar("Name")
Value = TypeVar("Value")


def grouped(pairs: Iterable[tuple[Name, Value]]) -> dict[Name, list[Value]]:
    """The values of each name; names and values in the order in which they come."""
    groups: dict[Name, list[Value]] = {}
    for name, value in pairs:
        groups.setdefault(name, []).append(value)
    return groups
