"""Where a string of brackets goes wrong: the first token after which it can't become a valid one, and what that token did.

A token is the end (4) or a bracket as in `bracket_strings`. A string is valid if it has `length` brackets, all closed by their own, and the
end after them.
"""

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from tasks.generation.bracket_strings import END, BracketStrings

KINDS = ("wrong_type", "nothing_open", "too_deep", "unclosable", "early_end", "late_end")
_TYPE, _UNDERFLOW, _DEEP, _UNCLOSABLE, _EARLY, _LATE = range(6)


@dataclass(frozen=True)
class FirstErrors:
    """place int64 [N]: the token of the first error, counted from 0, or the length of a string without one; kind int64 [N]: its number in
    `KINDS`, or -1."""

    place: Tensor
    kind: Tensor


def first_errors(task: BracketStrings, strings: Tensor, lengths: Tensor) -> FirstErrors:
    """The first errors of strings int64 [N, H], of which `lengths` [N] tokens count; a string that is cut short is no error by itself."""
    successor, level, spoils = _tables(task)
    kind, place = torch.full_like(lengths, -1), lengths.clone()
    state = torch.zeros_like(lengths)
    for number in range(int(lengths.max()) if len(lengths) else 0):
        token = strings[:, number]
        ends, bracket = token == END, token.clamp(max=END - 1)
        if number >= task.length:
            found = torch.where(ends, -1, _LATE)
        else:
            found = spoils[state, bracket]
            state = successor[state, bracket]
            found = torch.where((found < 0) & (level[state] > task.length - number - 1), _UNCLOSABLE, found)
            found = torch.where(ends, _EARLY, found)
        fresh = (kind < 0) & (number < lengths) & (found >= 0)
        kind, place = torch.where(fresh, found, kind), torch.where(fresh, number, place)
    return FirstErrors(place, kind)


@lru_cache(maxsize=8)
def _tables(task: BracketStrings) -> tuple[Tensor, Tensor, Tensor]:
    """By the state of `tasks.generation.processes.brackets`: the state after a bracket [S, 4], how many are open [S], and the kind of error
    of a bracket [S, 4], -1 of a right one."""
    successor = task.law.successor
    spoilt = len(successor) - 1
    level = torch.log2(torch.arange(1, spoilt + 2).double()).long()
    level[spoilt] = 0
    kinds = torch.full_like(successor, -1)
    for bracket in range(4):
        wrong = torch.where(level == 0, _UNDERFLOW, _TYPE) if bracket % 2 else torch.full_like(level, _DEEP)
        kinds[:, bracket] = torch.where(successor[:, bracket] == spoilt, wrong, -1)
    return successor, level, kinds


def valid(task: BracketStrings, strings: Tensor, lengths: Tensor) -> Tensor:
    """Whether each is a whole string of the language with its end, bool [N]."""
    return (first_errors(task, strings, lengths).kind < 0) & (lengths == task.length + 1)
