"""What a law of bracket strings says after each prefix, for tests to compare with an enumeration."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from tasks.dyck.law import Law


def next_law(law: Law, prefix: Sequence[int]) -> np.ndarray:
    """Probability of each bracket and of the end after a prefix, [2k + 1]. ValueError where no string of the law begins with it."""
    *_, found = _laws(law, prefix)
    return found


def log_probability(law: Law, prefix: Sequence[int]) -> float:
    """log P(a string begins with this), of brackets with or without the end behind them; -inf where none does."""
    brackets = prefix[:-1] if len(prefix) and prefix[-1] == law.end else prefix
    try:
        laws = list(_laws(law, brackets))
    except ValueError:
        return -math.inf
    chances = [float(step[token]) for step, token in zip(laws, prefix, strict=False)]
    return -math.inf if 0.0 in chances else sum(map(math.log, chances))


def _laws(law: Law, brackets: Sequence[int]) -> Iterator[np.ndarray]:
    """The law of the next token, [2k + 1], before each bracket and after the last."""
    stack: list[int] = []
    for written in range(len(brackets) + 1):
        found = np.zeros(law.end + 1)
        if written <= law.length:
            found[0 : law.end : 2] = law.steps.opens[written, len(stack)] * np.array(law.types)
            if stack:
                found[2 * stack[-1] + 1] = law.steps.closes[written, len(stack)]
            found[law.end] = law.steps.ends[written, len(stack)]
        yield found
        if written == len(brackets):
            return
        bracket = brackets[written]
        if not (0 <= bracket < law.end and found[bracket] > 0):
            raise ValueError(f"no string of this law begins with {[int(each) for each in brackets[: written + 1]]}")
        if bracket % 2:
            stack.pop()
        else:
            stack.append(int(bracket) // 2)
