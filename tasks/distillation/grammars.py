"""Probabilistic context-free grammars whose derivations all have one depth: the five of Allen-Zhu and Li, and cfg3b with one rule left out.

Panigrahi et al., "Progressive distillation induces an implicit curriculum" (ICLR 2025), section 4.2.8 of the thesis and its figure 4.23.
Symbols 1, 2, 3 are the terminals, 7 … 22 the non-terminals in levels of three under the start 22; the rules of a symbol are equally
probable. Levels are counted from the leaves: terminals 1, 7-9 2, 10-12 3, 13-15 4, 16-18 5, 19-21 6, 22 7. Level from the root = 7 - level.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

TERMINALS = (1, 2, 3)
START = 22
LEVELS = 7

_RULES = {
    "cfg3b": """22:21 20|20 19  21:18 16|16 18 17  20:17 16 18|16 17  19:16 17 18|17 18 16  18:15 14 13|14 13  17:14 13 15|15 13 14
        16:15 13|13 15 14  15:12 11 10|11 12 10  14:11 10 12|10 11 12  13:11 12|12 11  12:8 9 7|9 7 8  11:8 7 9|7 8 9
        10:7 9 8|9 8 7  9:3 2 1|2 1  8:3 2|3 1 2  7:3 1|1 2 3""",
    "cfg3i": """22:19 19 20|21 20 19  21:16 16 18|18 17  20:17 16 17|18 18  19:18 16 18|16 16  18:14 15 13|14 15  17:15 15|15 14
        16:13 13|14 14  15:11 11 10|11 10 12  14:10 10 10|10 10  13:12 11|10 12 11  12:7 9 9|8 7  11:7 7 7|7 7 8
        10:8 7 7|9 9  9:1 1 3|1 2  8:1 1|2 2  7:3 1 2|2 3 1""",
    "cfg3h": """22:20 20 21|19 21  21:17 17 18|17 18 17  20:18 16|17 16  19:16 17|18 17  18:15 13 13|15 14 14|14 15 15  17:13 14|15 13 15
        16:14 13|15 13  15:10 12|11 11 10  14:10 12 12|10 10|12 12 10  13:12 11|11 10  12:7 9|8 7|9 8  11:8 7 7|7 7|7 9 9
        10:8 7 9|9 7|8 8  9:2 1 3|1 3 3  8:1 2|3 3 1|1 3  7:2 3 2|1 2 3|1 3 1""",
    "cfg3g": """22:19 20|20 20 19|20 19 21  21:16 16|16 16 18|18 16  20:16 17|18 18|16 17 17  19:17 17 16|18 17 16|18 16 17
        18:15 13|15 15|14 13 15  17:14 13 14|14 15 13|15 14  16:14 13 13|13 14|13 13  15:10 11|12 10 10|12 11
        14:11 12|10 11 10|10 10  13:10 12|11 11 11|11 11  12:7 9|7 8|9 9 9  11:8 8 9|9 7|8 9 7  10:8 8 8|7 7 7|7 7
        9:2 3 3|2 3|2 1  8:1 3 2|1 3|3 3 1  7:2 3 1|1 1|2 2""",
    "cfg3f": """22:20 21|20 19 21|21 19 19|20 20  21:18 17|17 16|16 17 18|16 18  20:16 16|16 17|17 16 18  19:18 16 18|17 18|18 18
        18:14 15 13|15 13 13|13 15  17:15 14 13|14 15|15 14  16:15 15|13 15 13|14 13|14 14  15:10 11 11|11 11 10|10 10|12 12 11
        14:10 12|12 10 12|12 11|10 12 12  13:11 12|12 11 12|10 12 11  12:7 9 7|9 8|8 8 9  11:8 8|9 7|9 7 7
        10:8 9 9|9 7 9|7 9 9  9:1 2 1|3 3|1 1  8:3 1 1|1 2|3 3 1  7:2 2 1|3 2 2|3 1 2|3 2""",
}
# what the authors' public files hold: without 9 → 2 1, so that strings are longer than the thesis prints
_RULES["cfg3b_onerule"] = _RULES["cfg3b"].replace("9:3 2 1|2 1", "9:3 2 1")
NAMES = tuple(_RULES)


@dataclass(frozen=True)
class Grammar:
    """rules: {non-terminal: its right-hand sides}, every one equally probable."""

    name: str
    rules: dict[int, tuple[tuple[int, ...], ...]]

    def counts(self, root: int, leaf: Sequence[float] = (0.0, 1.0), level: int = 1) -> np.ndarray:
        """The law of a sum over the symbols of `level` below `root`, each of which adds what `leaf` says: P(0), P(1), ….

        leaf [0, 1] with level 1 gives the length of a string, [1 - p, p] the number of its tokens that a coin of p picks, and [0, 1] with
        level l the number of symbols of that level. float64, exact to rounding.
        """
        return _law(self.name, root, tuple(leaf), level)

    def lengths(self, root: int = START) -> np.ndarray:
        """P(a string from `root` has n tokens), n = 0, 1, …"""
        return self.counts(root)


def level_of(symbol: int) -> int:
    """The level of a symbol from the leaves, 1 … 7."""
    return 1 if symbol <= 3 else (symbol - 1) // 3


def symbols_of(level: int) -> tuple[int, ...]:
    """The symbols of a level from the leaves."""
    return TERMINALS if level == 1 else (START,) if level == LEVELS else tuple(range(3 * level + 1, 3 * level + 4))


@functools.cache
def grammar(name: str) -> Grammar:
    """The grammar of that name. Raises ValueError for another."""
    if name not in _RULES:
        raise ValueError(f"task.grammar = {name!r} must be {' or '.join(NAMES)}")
    rules = {}
    for word in _RULES[name].replace("\n", "  ").split("  "):
        if word.strip():
            symbol, _, sides = word.strip().partition(":")
            rules[int(symbol)] = tuple(tuple(int(child) for child in side.split()) for side in sides.split("|"))
    return Grammar(name, rules)


@functools.cache
def _law(name: str, symbol: int, leaf: tuple[float, ...], level: int) -> np.ndarray:
    if level_of(symbol) == level:
        return np.array(leaf)
    sides = []
    for side in grammar(name).rules[symbol]:
        product = np.ones(1)
        for child in side:
            product = np.convolve(product, _law(name, child, leaf, level))
        sides.append(product)
    law = np.zeros(max(map(len, sides)))
    for side_law in sides:
        law[: len(side_law)] += side_law / len(sides)
    return law
