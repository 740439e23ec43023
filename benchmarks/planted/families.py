"""The six families of planted causes. Each plants one into a random string, and says where it stands and which events only look like it."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.planted.events import Events, back, is_kind, seen
from harness.draw import Draw
from tasks.flipflop.flipflop import IGNORE, READ, WRITE, FlipFlop

RUN = 4  # ignores of the density trigger

Cause = Callable[[Events], Tensor]  # bool [..., P]: present for a read at that event


@dataclass(frozen=True)
class Setting:
    """A random string and dice: what a family plants its cause with."""

    draw: Draw
    task: FlipFlop
    instructions: Tensor
    symbols: Tensor

    @property
    def query(self) -> int:
        return len(self.instructions) - 1

    def dice(self, sides: int, site: int) -> int:
        return int(self.draw.integers(sides, (1,), 16 + site))

    def places(self, count: int, ordered: bool) -> list[int]:
        """Draw so many different events between the first and the query."""
        places = self.draw.subset(self.query - 1, count, (), 15)[0] + 1
        return sorted(places.tolist()) if ordered else places.tolist()

    def put(self, event: int, kind: tuple[int, int]) -> None:
        self.instructions[event], self.symbols[event] = kind


Plan = tuple[Cause, tuple[frozenset[int], ...], frozenset[int]]


def _absolute(at: Setting) -> Plan:
    """One event at one absolute position; decoys: the same event at two other positions."""
    place, *others = at.places(3, ordered=False)
    kind = (WRITE, IGNORE)[at.dice(2, 0)], at.dice(2, 1)
    for event in (place, *others):
        at.put(event, kind)

    def cause(given: Events) -> Tensor:
        happens = is_kind(given, kind)
        return seen(happens & (torch.arange(happens.shape[-1]) == place))

    return cause, (frozenset({place}),), frozenset(others)


def _offsets(at: Setting) -> Plan:
    """Two events at two distances from the read; decoys: the same two events at other distances."""
    places = at.places(4, ordered=False)
    kinds = [((WRITE, IGNORE)[at.dice(2, 2 * i)], at.dice(2, 2 * i + 1)) for i in range(2)]
    for place, kind in zip(places, kinds * 2, strict=True):
        at.put(place, kind)
    distances = [at.query - place for place in places[:2]]

    def cause(given: Events) -> Tensor:
        first, second = (back(is_kind(given, kind), far) for kind, far in zip(kinds, distances, strict=True))
        return first & second

    return cause, (frozenset(places[:2]),), frozenset(places[2:])


def _order(at: Setting) -> Plan:
    """Three events, told apart by rare symbols, in order and anywhere; decoys: the last one before them, the first one behind them."""
    places = at.places(5, ordered=True)
    first, second, third = ((IGNORE, int(symbol)) for symbol in at.draw.subset(at.task.symbols, 3, (), 16)[0])
    for place, kind in zip(places, (third, first, second, third, first), strict=True):
        at.put(place, kind)

    def cause(given: Events) -> Tensor:
        one = seen(is_kind(given, first))
        two = seen(is_kind(given, second) & one)
        return seen(is_kind(given, third) & two)

    given = at.instructions, at.symbols
    events = [torch.nonzero(is_kind(given, kind))[:, 0].tolist() for kind in (first, second, third)]
    occurrences = [frozenset({i, j, k}) for i in events[0] for j in events[1] for k in events[2] if i < j < k]
    return cause, tuple(occurrences), frozenset({places[0], places[4]})


def _guarded(at: Setting) -> Plan:
    """A write at one absolute position unless another event, so far before the read, is a write; decoys: reads of that write's symbol."""
    size = at.query + 1
    place = 1 + at.dice(size - 5, 0)
    symbol = at.dice(2, 1)
    free = [j for j in range(1, at.query) if not place <= j <= place + 2]
    guard = free[at.dice(len(free), 2)]
    at.put(place, (WRITE, symbol))
    at.put(guard, (IGNORE, at.dice(2, 3)))
    for j in (place + 1, place + 2):
        at.put(j, (READ, symbol))
    distance = at.query - guard

    def cause(given: Events) -> Tensor:
        happens = is_kind(given, (WRITE, symbol))
        return seen(happens & (torch.arange(happens.shape[-1]) == place)) & ~back(given[0] == WRITE, distance)

    return cause, (frozenset({place}),), frozenset({place + 1, place + 2})


def _density(at: Setting) -> Plan:
    """A run of RUN ignores directly before the read; decoys: a run as long, elsewhere."""
    begin = 1 + at.dice(at.query - 2 * RUN - 1, 0)
    decoys = range(begin, begin + RUN)
    run = range(at.query - RUN, at.query)
    for j in (*decoys, *run):
        at.put(j, (IGNORE, int(at.symbols[j])))

    def cause(given: Events) -> Tensor:
        ignores = given[0] == IGNORE
        return torch.stack([back(ignores, far) for far in range(1, RUN + 1)]).all(0)

    return cause, (frozenset(run),), frozenset(decoys)


def _either(at: Setting) -> Plan:
    """One of two events at their absolute positions is enough, and the prompt has both; decoys: the same events elsewhere."""
    places = at.places(4, ordered=False)
    kinds = [((WRITE, IGNORE)[at.dice(2, 2 * i)], at.dice(2, 2 * i + 1)) for i in range(2)]
    for place, kind in zip(places, kinds * 2, strict=True):
        at.put(place, kind)

    def cause(given: Events) -> Tensor:
        index = torch.arange(given[0].shape[-1])
        first, second = (is_kind(given, kind) & (index == place) for kind, place in zip(kinds, places[:2], strict=True))
        return seen(first | second)

    return cause, (frozenset(places[:1]), frozenset(places[1:2])), frozenset(places[2:])


FAMILIES: dict[str, tuple[Callable[[Setting], Plan], int]] = {  # and the number of symbols
    "absolute": (_absolute, 2),
    "offsets": (_offsets, 2),
    "order": (_order, 64),
    "guarded": (_guarded, 2),
    "density": (_density, 2),
    "either": (_either, 2),
}
