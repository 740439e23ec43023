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
    """The first error of each of N strings.

    place int64 [N]: its token, counted from 0; the length of a string without an error. kind int64 [N]: its number in `KINDS`, or -1.
    """

    place: Tensor
    kind: Tensor


def first_errors(task: BracketStrings, strings: Tensor, lengths: Tensor) -> FirstErrors:
    """Find the first errors of strings int64 [N, H], of which the first `lengths` [N] tokens count. Being cut short is no error."""
    successor, level, spoils = _tables(task)
    kind, place = torch.full_like(lengths, -1), lengths.clone()
    state = torch.zeros_like(lengths)
    for number in range(int(lengths.max()) if len(lengths) else 0):
        token = strings[:, number]
        ends, bracket = token == END, token.clamp(max=END - 1)
        if number >= task.length:
            error = torch.where(ends, -1, _LATE)
        else:
            error = spoils[state, bracket]
            state = successor[state, bracket]
            error = torch.where((error < 0) & (level[state] > task.length - number - 1), _UNCLOSABLE, error)
            error = torch.where(ends, _EARLY, error)
        first = (kind < 0) & (number < lengths) & (error >= 0)
        kind, place = torch.where(first, error, kind), torch.where(first, number, place)
    return FirstErrors(place, kind)


@lru_cache(maxsize=8)
def _tables(task: BracketStrings) -> tuple[Tensor, Tensor, Tensor]:
    """Tables over the S states of `tasks.generation.processes.brackets`.

    The state after each bracket [S, 4], the number of open brackets [S], and the kind of error of each bracket [S, 4], -1 for none.
    """
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
    """Which of the strings are whole strings of the language with their end, bool [N]; arguments as of `first_errors`."""
    return (first_errors(task, strings, lengths).kind < 0) & (lengths == task.length + 1)
