"""Grouping of values by name."""

from collections.abc import Iterable
from typing import TypeVar

Name = TypeVar("Name")
Member = TypeVar("Member")


def grouped(pairs: Iterable[tuple[Name, Member]]) -> dict[Name, list[Member]]:
    """Group values by name. Names and values keep the order in which they come."""
    groups: dict[Name, list[Member]] = {}
    for name, value in pairs:
        groups.setdefault(name, []).append(value)
    return groups
