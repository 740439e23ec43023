"""Finite groups that act on values, as tables: cyclic, symmetric, alternating and dihedral ones by name, and a user's own tables.

Huang, Wen, Singh, Chi, Chen, "Transformers provably learn chain-of-thought reasoning with length generalization" (2025): an action is
*simply transitive* where exactly one element leads from each value to each other one (C6), a *symmetry* where all permutations of the
values are there (S5).
"""

import difflib
import functools
import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

FORMS = "C<n>, S<n>, A<n>, D<2n>, and S<n>_regular, A<n>_regular, D<2n>_regular"
MOST_ACTIONS = 1024
MOST_VALUES = 1024

Rows = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Actions:
    """A user's own group action: `table[g][y]` is the value after action g on value y, with a row for each element of the group."""

    table: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", tuple(tuple(row) for row in self.table))


@dataclass(frozen=True, eq=False)
class GroupAction:
    """table: int64 [actions, values], g(y)."""

    name: str
    table: Tensor

    @property
    def actions(self) -> int:
        return self.table.shape[0]

    @property
    def values(self) -> int:
        return self.table.shape[1]

    @property
    def symmetry(self) -> bool:
        """Whether the actions are all permutations of the values, each once."""
        return len({tuple(row) for row in self.table.tolist()}) == self.actions == math.factorial(self.values)


@functools.cache
def group_action(given: "str | Actions") -> GroupAction:
    """The action of a name or of a table, made once a process. ValueError where there is none."""
    return from_table(given) if isinstance(given, Actions) else from_name(given)


def from_name(name: str) -> GroupAction:
    """The action called `name`, one of `FORMS`. ValueError where there is none."""
    regular = name.removesuffix("_regular")
    for pattern, make in _FAMILIES:
        match = re.fullmatch(pattern, regular)
        if match and not (regular != name and name[0] == "C"):
            rows = make(name, int(match[1]))
            return GroupAction(name, torch.tensor(rows if regular == name else _regular(rows), dtype=torch.int64))
    names = ("C5", "C6", "S3", "S4", "S5", "A5", "D6", "S3_regular", "S4_regular")
    near = difflib.get_close_matches(name[:1].upper() + name[1:], names, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    own = "; a cyclic group acts on itself already: leave _regular out" if regular != name and name[0] == "C" else ""
    raise ValueError(f"task.group = {name!r} is not known{hint}{own}; there is {FORMS}, or a table of your own")


def from_table(given: Actions) -> GroupAction:
    """Make a group action of a user's table.

    Raises ValueError where the table is no function, is no group of permutations, or has values that no action reaches.
    """
    where, rows = "task.group.table", given.table
    if not rows or not rows[0]:
        raise ValueError(f"{where} is empty: give one row per action and in it the value after the action for every value")
    values = len(rows[0])
    if len(rows) > MOST_ACTIONS or not 2 <= values <= MOST_VALUES:
        raise ValueError(
            f"{where} has {len(rows)} actions on {values} values: at most {MOST_ACTIONS} actions and 2 … {MOST_VALUES} values"
        )
    for action, row in enumerate(rows):
        if len(row) != values:
            raise ValueError(
                f"{where} is no function: action {action} has {len(row)} entries and action 0 has {values}; "
                "give every action one entry per value"
            )
        for value, after in enumerate(row):
            if type(after) is not int or not 0 <= after < values:
                raise ValueError(f"{where}[{action}][{value}] = {after!r} is no value: there are 0 … {values - 1}")
        if len(set(row)) < values:
            after, _ = Counter(row).most_common(1)[0]
            both = [value for value in range(values) if row[value] == after][:2]
            raise ValueError(
                f"{where} is no group action: action {action} leads from values {both[0]} and {both[1]} to {after}, "
                "and an element of a group is a permutation"
            )
    _refuse_no_group(where, rows)
    reached = {row[0] for row in rows}
    if lost := sorted(set(range(values)) - reached):
        raise ValueError(
            f"{where}: no action leads from value 0 to value{'s'[: len(lost) > 1]} {', '.join(map(str, lost[:10]))}"
            f"{' …' if len(lost) > 10 else ''}: leave what is never reached out and number the values anew"
        )
    return GroupAction("table", torch.tensor(rows, dtype=torch.int64))


def _refuse_no_group(where: str, rows: Rows) -> None:
    """Raise ValueError unless these permutations are the action of a group.

    A finite set of permutations is a group if it holds the product of any two. Every permutation must belong to equally many elements.
    """
    array = np.array(rows, dtype=np.int64)
    times = Counter(row.tobytes() for row in array)
    for first, row in enumerate(array):
        then = array[:, row]  # then[g] = g after `first`
        for second, product in enumerate(then):
            if product.tobytes() not in times:
                raise ValueError(
                    f"{where} is no group action: action {first} followed by action {second} is none of the table's; "
                    "give a row for every element of the group"
                )
    if len(set(times.values())) > 1:
        raise ValueError(
            f"{where} is no group action: some maps are there {max(times.values())} times and others {min(times.values())}; "
            "in a group every map belongs to equally many elements"
        )


def _cyclic(name: str, n: int) -> Rows:
    """C_n on 0 … n-1: action k adds k."""
    _limit(name, 2 <= n <= 256, "C2 … C256")
    return [[(k + y) % n for y in range(n)] for k in range(n)]


def _symmetric(name: str, n: int) -> Rows:
    """S_n on n points: all permutations in lexicographic order."""
    _limit(name, 3 <= n <= 6, "S3 … S6")
    return list(itertools.permutations(range(n)))


def _alternating(name: str, n: int) -> Rows:
    """A_n on n points: the even permutations in lexicographic order."""
    _limit(name, 4 <= n <= 6, "A4 … A6")
    return [p for p in itertools.permutations(range(n)) if sum(a > b for a, b in itertools.combinations(p, 2)) % 2 == 0]


def _dihedral(name: str, order: int) -> Rows:
    """D_2n on the n corners of a polygon: y + s for s = 0 … n-1, then s - y."""
    _limit(name, order % 2 == 0 and 6 <= order <= 256, "D6, D8 … D256 name the order 2n of the group")
    n = order // 2
    return [[(s + sign * y) % n for y in range(n)] for sign in (1, -1) for s in range(n)]


def _regular(rows: Rows) -> Rows:
    """The group on itself from the left: the value after g on h is the number of "h, then g"."""
    number = {tuple(row): index for index, row in enumerate(rows)}
    return [[number[tuple(g[y] for y in h)] for h in rows] for g in rows]


def _limit(name: str, fits: bool, rule: str) -> None:
    if not fits:
        raise ValueError(f"task.group = {name!r} is out of range: {rule}")


_FAMILIES: tuple[tuple[str, Callable[[str, int], Rows]], ...] = (
    (r"C([1-9]\d*)", _cyclic),
    (r"S([1-9]\d*)", _symmetric),
    (r"A([1-9]\d*)", _alternating),
    (r"D([1-9]\d*)", _dihedral),
)
