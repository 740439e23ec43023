"""What the labels show of a state: the maps φ from states to classes ("indirect supervision", figure 3.18 of Liu's thesis)."""

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tasks.automata.semiautomata import Semiautomaton


@dataclass(frozen=True)
class Observation:
    """A map from states to classes. values: the class of every state. classes: their number, whether words reach them or not."""

    values: tuple[int, ...]
    classes: int


def observation(automaton: Semiautomaton, observe: str | Sequence[int]) -> Observation:
    """The map called `observe`, or the one that lists the class of every state. Raises ValueError where the semiautomaton has none such."""
    if not isinstance(observe, str):
        return _given(automaton, tuple(observe))
    if observe == "state":
        return Observation(tuple(range(len(automaton.states))), len(automaton.states))
    maps = [name for name, (families, _) in _MAPS.items() if automaton.family in families]
    if observe not in maps:
        near = difflib.get_close_matches(observe, ["state", *maps], n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise ValueError(
            f"task.observe = {observe!r} is no map of this semiautomaton{hint}: there is {', '.join(['state', *maps])}, "
            "or a list with the class of every state"
        )
    return _MAPS[observe][1](automaton)


def _given(automaton: Semiautomaton, values: tuple[int, ...]) -> Observation:
    if len(values) != len(automaton.states):
        raise ValueError(
            f"task.observe has {len(values)} classes and the semiautomaton {len(automaton.states)} states: give one a state"
        )
    if set(values) != set(range(len(set(values)))):
        raise ValueError(f"task.observe = {list(values)} must number its classes 0, 1, … with none left out")
    return Observation(values, len(set(values)))


def _top(automaton: Semiautomaton) -> Observation:
    """0 for the empty stack, 1 + the type on top."""
    types = automaton.table.shape[1] // 2
    return Observation(tuple(1 + stack[-1] if stack else 0 for stack in automaton.states), types + 1)


def _slots(automaton: Semiautomaton) -> Observation:
    """The thesis' (k + 1)^n classes: slot by slot, the bottom the most significant, 0 for an empty one, 1 + the type otherwise."""
    base, depth = automaton.table.shape[1] // 2 + 1, max(map(len, automaton.states))
    values = []
    for stack in automaton.states:
        value = 0
        for slot in range(depth):
            value = value * base + (1 + stack[slot] if slot < len(stack) else 0)
        values.append(value)
    return Observation(tuple(values), base**depth)


def _only(state: int) -> Callable[[Semiautomaton], Observation]:
    return lambda automaton: Observation(tuple(int(index == state) for index in range(len(automaton.states))), 2)


def _ends(automaton: Semiautomaton) -> Observation:
    last = len(automaton.states) - 1
    return Observation(tuple(int(state in (0, last)) for state in automaton.states), 2)


def _first(automaton: Semiautomaton) -> Observation:
    return Observation(tuple(state[0] for state in automaton.states), len(automaton.states[0]))


def _rotation(automaton: Semiautomaton) -> Observation:
    return Observation(tuple(state[0] for state in automaton.states), len(automaton.states) // 2)


_MAPS: dict[str, tuple[tuple[str, ...], Callable[[Semiautomaton], Observation]]] = {
    "top": (("Dyck",), _top),
    "slots": (("Dyck",), _slots),
    "boundary": (("Grid",), _ends),
    "first": (("A", "S"), _first),
    "zero": (("C",), _only(0)),
    "rotation": (("D",), _rotation),
    "accept": (("abab",), _only(3)),
}
