"""Finite semiautomata (Q, Σ, δ, q0) as transition tables, and the checks of a user's own table.

Liu, Ash, Goel, Krishnamurthy, Zhang, "Transformers learn shortcuts to automata" (ICLR 2023), and ch. 3.4 of Liu's thesis (CMU-ML-24-110).
Those of the paper are made by name in `tasks/automata/named_automata.py`.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

MOST_STATES = 5000


@dataclass(frozen=True, eq=False)
class Semiautomaton:
    """A semiautomaton. table: int64 [states, tokens], δ(q, σ), -1 where σ is not valid in q. start: q0.

    family: the name without its numbers, such as C, Dyck or table. states: what each state is, such as a permutation or a stack.
    """

    family: str
    states: tuple[Any, ...]
    table: Tensor
    start: int = 0

    @property
    def valid(self) -> Tensor:
        """bool [states, tokens]: which tokens may be read in which state."""
        return self.table >= 0

    @property
    def masked(self) -> bool:
        """Whether some token is not valid somewhere."""
        return bool((self.table < 0).any())


@dataclass(frozen=True)
class Table:
    """A user's own semiautomaton: `table[q][σ]` is the state after token σ in state q, -1 where σ may not come; `start` is q0."""

    table: tuple[tuple[int, ...], ...]
    start: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", tuple(tuple(row) for row in self.table))


def from_table(given: Table) -> Semiautomaton:
    """Make a semiautomaton of a user's table.

    Raises ValueError where the table is no function, leads out of its states, or has states that no word reaches or leaves.
    """
    where, rows = "task.automaton.table", given.table
    if not rows or not rows[0]:
        raise ValueError(f"{where} is empty: give one row per state and in it one next state per token")
    for state, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise ValueError(
                f"{where} is no function: state {state} has {len(row)} entries and state 0 has {len(rows[0])}; "
                "give every state one entry per token, -1 for a token that may not come there"
            )
        for token, after in enumerate(row):
            if type(after) is not int or not -1 <= after < len(rows):
                raise ValueError(
                    f"{where}[{state}][{token}] = {after!r} is no state: there are 0 … {len(rows) - 1}, and -1 for a token "
                    "that may not come there"
                )
        if max(row) < 0:
            raise ValueError(f"{where}[{state}] has no valid token: a word that comes to state {state} could not go on")
    if not 0 <= given.start < len(rows):
        raise ValueError(f"task.automaton.start = {given.start} is no state: there are 0 … {len(rows) - 1}")
    if len(rows) > MOST_STATES:
        raise ValueError(f"{where} has {len(rows)} states, and at most {MOST_STATES} are supported")
    table = torch.tensor(rows, dtype=torch.int64)
    lost = sorted(set(range(len(rows))) - _reached(rows, given.start))
    if lost:
        raise ValueError(
            f"{where}: no word leads from the start {given.start} to state{'s'[: len(lost) > 1]} {', '.join(map(str, lost[:10]))}"
            f"{' …' if len(lost) > 10 else ''}: leave what is never reached out and number the states anew"
        )
    return Semiautomaton("table", tuple(range(len(rows))), table, given.start)


def _reached(rows: Sequence[Sequence[int]], start: int) -> set[int]:
    seen, queue = {start}, deque([start])
    while queue:
        for after in rows[queue.popleft()]:
            if after >= 0 and after not in seen:
                seen.add(after)
                queue.append(after)
    return seen
