"""Lists of what belongs together."""

from collections.abc import Iterable
from typing import TypeVar

Name = TypeVar("Name")
Member = TypeVar("Member")


def grouped(pairs: Iterable[tuple[Name, Member]]) -> dict[Name, list[Member]]:
    """The values of each name; names and values in the order in which they come."""
    groups: dict[Name, list[Member]] = {}
    for name, value in pairs:
        groups.setdefault(name, []).append(value)
    return groups
