"""How a string of brackets goes on, token by token, from the tables of its law."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from tasks.dyck.law import Law


def next_laws(law: Law, brackets: Sequence[int]) -> Iterator[np.ndarray]:
    """The probability of each bracket and of the end, [2k + 1], before each bracket and after the last; no more after one that has none."""
    stack: list[int] = []
    for written in range(len(brackets) + 1):
        chances = np.zeros(law.end + 1)
        if written <= law.length:
            chances[0 : law.end : 2] = law.steps.opens[written, len(stack)] * np.array(law.types)
            if stack:
                chances[2 * stack[-1] + 1] = law.steps.closes[written, len(stack)]
            chances[law.end] = law.steps.ends[written, len(stack)]
        yield chances
        if written < len(brackets):
            bracket = brackets[written]
            if chances[bracket] == 0:
                return
            if bracket % 2:
                stack.pop()
            else:
                stack.append(int(bracket) // 2)


def log_probability(law: Law, prefix: Sequence[int]) -> float:
    """log P(a string begins with this), of brackets with or without the end behind them; -inf where none does."""
    brackets = prefix[:-1] if len(prefix) and prefix[-1] == law.end else prefix
    chances = [float(following[token]) for following, token in zip(next_laws(law, brackets), prefix, strict=False)]
    return -math.inf if 0.0 in chances else sum(map(math.log, chances))
