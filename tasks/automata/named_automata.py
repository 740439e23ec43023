"""The semiautomata of Liu et al. by name: groups, Dyck languages, gridworlds and (abab)*, with their numbers of states and tokens.

Where the thesis leaves a choice open, what is chosen here is said in `docs/explanation/automata.md`.
"""

import difflib
import functools
import itertools
import math
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

import torch

from tasks.automata.semiautomata import MOST_STATES, Semiautomaton, Table, from_table

FORMS = "C<n>, C<n>^<k>, D<2n>, A<n>, S<n>, S<n>_<generators>, Q8, Dyck_<depth>_<types>, Grid<n>, abab"
NINETEEN = (*(f"C{n}" for n in range(2, 9)), *"C2^2 C2^3 D6 D8 Q8 A4 A5 S4 S5 Dyck_4_2 Grid4 Grid9".split())


def from_name(name: str) -> Semiautomaton:
    """The semiautomaton called `name`, one of `FORMS`. ValueError where there is none."""
    for pattern, make in _FAMILIES:
        match = re.fullmatch(pattern, name)
        if match:
            return make(name, *(int(group) for group in match.groups()))
    names = (*NINETEEN, "S5_5", "Dyck_4_8", "abab")
    near = difflib.get_close_matches(name, names, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    raise ValueError(f"task.automaton = {name!r} is not known{hint}; there is {FORMS}, or a table of your own")


_State = TypeVar("_State")
_Token = TypeVar("_Token")


def _make(
    family: str,
    states: Sequence[_State],
    tokens: Sequence[_Token],
    step: Callable[[_State, _Token], _State | None],
    start: _State,
) -> Semiautomaton:
    """`step(state, token)` is the state after, None where the token is not valid."""
    number: dict[_State | None, int] = {state: index for index, state in enumerate(states)}
    rows = [[number.get(step(state, token), -1) for token in tokens] for state in states]
    return Semiautomaton(family, tuple(states), torch.tensor(rows, dtype=torch.int64), number[start])


def _limit(name: str, states: int, fits: bool, rule: str) -> None:
    if not fits or states > MOST_STATES:
        raise ValueError(f"task.automaton = {name!r} is out of range: {rule}, and at most {MOST_STATES} states")


def _cyclic(name: str, n: int, power: int = 1) -> Semiautomaton:
    """C_n^k: state and token are k digits of base n, the first the most significant; digits are added mod n."""
    _limit(name, n ** min(power, 13), n >= 2 and power >= 1 and n ** min(power, 13) <= 256, "n >= 2 and n^k <= 256")
    digits = list(itertools.product(range(n), repeat=power))
    made = _make("C", digits, digits, lambda q, s: tuple((a + b) % n for a, b in zip(q, s, strict=True)), (0,) * power)
    return made if power > 1 else Semiautomaton("C", tuple(range(n)), made.table)


def _dihedral(name: str, order: int) -> Semiautomaton:
    """D_2n: state (s, b) is number s where b = 1 and n + s where b = -1; token 0 advances s by b mod n, token 1 flips b."""
    _limit(name, order, order % 2 == 0 and order >= 6, "D6, D8, D10 … name the order 2n of the group")
    n = order // 2
    states = [(s, b) for b in (1, -1) for s in range(n)]
    return _make("D", states, (0, 1), lambda q, s: (q[0], -q[1]) if s else ((q[0] + q[1]) % n, q[1]), (0, 1))


def _permute(q: tuple[int, ...], s: tuple[int, ...]) -> tuple[int, ...]:
    """The token permutes the places: place i then holds what place s[i] held."""
    return tuple(q[i] for i in s)


def _even(p: Sequence[int]) -> bool:
    return sum(a > b for a, b in itertools.combinations(p, 2)) % 2 == 0


def _alternating(name: str, n: int) -> Semiautomaton:
    """A_n: the even permutations of 0 … n-1 in lexicographic order; tokens are the 3-cycles (1 2 i), i = 3 … n."""
    _limit(name, math.factorial(min(n, 9)) // 2, 4 <= n <= 6, "A4, A5, A6")
    states = [p for p in itertools.permutations(range(n)) if _even(p)]
    tokens = []
    for i in range(2, n):
        cycle = list(range(n))
        cycle[0], cycle[1], cycle[i] = 1, i, 0
        tokens.append(tuple(cycle))
    return _make("A", states, tokens, _permute, states[0])


def _symmetric(name: str, n: int, generators: int = 8) -> Semiautomaton:
    """S_n: the permutations in lexicographic order; tokens: (1 2), (1 2 … n), then the first others of that order."""
    _limit(name, math.factorial(min(n, 9)), 4 <= n <= 6 and 2 <= generators <= 8, "S4, S5, S6, with 2 … 8 generators")
    states = list(itertools.permutations(range(n)))
    least = [(1, 0, *range(2, n)), (*range(1, n), 0)]
    others = [p for p in states[1 : generators + 2] if p not in least]
    return _make("S", states, [*least, *others][:generators], _permute, states[0])


def _quaternions(name: str) -> Semiautomaton:
    """Q8: states 1, i, j, k, -1, -i, -j, -k; tokens 1, i, j, k multiply from the right."""
    units = [(sign, unit) for sign in (1, -1) for unit in range(4)]

    def times(q: tuple[int, int], unit: int) -> tuple[int, int]:
        sign, left = q
        if 0 in (left, unit):
            return sign, left + unit
        if left == unit:
            return -sign, 0
        return (sign if (unit - left) % 3 == 1 else -sign), 6 - left - unit

    return _make("Q", units, range(4), times, (1, 0))


def _dyck(name: str, depth: int, types: int) -> Semiautomaton:
    """Stacks, the bottom first, by height and then lexicographic; token 2i opens and 2i + 1 closes type i."""
    _limit(
        name,
        sum(types**i for i in range(min(depth, 13) + 1)),
        1 <= depth <= 12 and types >= 1,
        "Dyck_<depth>_<types>, depth 1 … 12",
    )
    stacks = [stack for height in range(depth + 1) for stack in itertools.product(range(types), repeat=height)]

    def read(stack: tuple[int, ...], token: int) -> tuple[int, ...] | None:
        kind = token // 2
        if token % 2 == 0:
            return (*stack, kind) if len(stack) < depth else None
        return stack[:-1] if stack[-1:] == (kind,) else None

    return _make("Dyck", stacks, range(2 * types), read, ())


def _grid(name: str, n: int) -> Semiautomaton:
    """Grid_n: a walk on 0 … n-1 that stays at its ends; token 0 is -1, token 1 is +1."""
    _limit(name, n, 2 <= n <= 256, "Grid2 … Grid256")
    return _make("Grid", range(n), (-1, 1), lambda q, s: min(max(q + s, 0), n - 1), 0)


def _abab(name: str) -> Semiautomaton:
    """(abab)*: states 0 … 3 go round while a and b (tokens 0 and 1) alternate, anything else leads to 4 forever; starts in 3."""
    return _make("abab", range(5), (0, 1), lambda q, s: (q + 1) % 4 if q < 4 and (q + 1) % 2 == s else 4, 3)


_FAMILIES: tuple[tuple[str, Callable[..., Semiautomaton]], ...] = (
    (r"C([1-9]\d*)", _cyclic),
    (r"C([1-9]\d*)\^([1-9]\d*)", _cyclic),
    (r"D([1-9]\d*)", _dihedral),
    (r"A([1-9]\d*)", _alternating),
    (r"S([1-9]\d*)", _symmetric),
    (r"S([1-9]\d*)_([1-9]\d*)", _symmetric),
    (r"Q8", _quaternions),
    (r"Dyck_([1-9]\d*)_([1-9]\d*)", _dyck),
    (r"Grid([1-9]\d*)", _grid),
    (r"abab", _abab),
)


@functools.cache
def semiautomaton(given: str | Table) -> Semiautomaton:
    """The semiautomaton of a name or of a table, made once a process. ValueError where there is none."""
    return from_table(given) if isinstance(given, Table) else from_name(given)
