"""The floor under the error of a model that sees the last tokens alone, against every string."""

import itertools
from collections import Counter

import pytest

from results.claims.flipflop.context import floor


def _least_error(p: float, context: int, instructions: int, symbols: int) -> float:
    """Expected errors over expected reads of the best guess from the last `context` tokens, by enumerating every string."""
    answers: dict[tuple[str, ...], Counter[int]] = {}
    total = 0.0
    ordinary = [(kind, symbol) for kind in "wri" for symbol in range(symbols)]
    for first in range(symbols):
        for middle in itertools.product(ordinary, repeat=instructions - 2):
            tokens, memory, weight = ["w", str(first)], first, 1 / symbols
            asked: list[tuple[tuple[str, ...], int]] = []
            for kind, symbol in [*middle, ("r", None)]:
                if kind == "r":
                    asked.append((tuple([*tokens, "r"][-context:]), memory))
                    symbol = memory if symbol in (memory, None) else -1
                if symbol == -1:
                    weight = 0.0  # a read says what is stored: another symbol never follows
                    break
                weight *= (
                    1
                    if kind == "r" and len(tokens) == 2 * instructions - 2
                    else {"w": (1 - p) / 2 / symbols, "r": (1 - p) / 2, "i": p / symbols}[kind]
                )
                memory = symbol if kind == "w" else memory
                tokens += [kind, str(symbol)]
            for seen, answer in asked if weight else []:
                answers.setdefault(seen, Counter())[answer] += weight
                total += weight
    return sum(sum(votes.values()) - max(votes.values()) for votes in answers.values()) / total


@pytest.mark.parametrize("p", [0.1, 0.8, 0.98])
@pytest.mark.parametrize(("symbols", "instructions"), [(2, 5), (3, 4)])
@pytest.mark.parametrize("context", [1, 2, 3, 4, 5, 6])
def test_the_floor_is_the_error_of_the_best_guess_from_the_last_tokens(p, symbols, instructions, context) -> None:
    assert floor(p, context, 2 * instructions, symbols) == pytest.approx(
        _least_error(p, context, instructions, symbols), abs=1e-12
    )
