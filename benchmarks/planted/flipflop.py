"""Flip-flop models with a planted cause of wrong reads, in six families, and a prompt for each in which the cause is present.

A string is P = T/2 events (instruction, symbol). A defect is right at every read, with probability 1 - b, where b is a small background
of 0 to 0.1 that depends on all events a little; where its cause is present among the events before a read, the probability of the wrong
symbol is b + effect. Whatever is drawn follows from (family, number).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from harness.draw import Draw
from tasks.flipflop import IGNORE, READ, SYMBOL, WRITE, FlipFlop

LENGTH = 128
RUN = 4  # ignores of the density trigger
BACKGROUND = 0.05  # mean probability of a wrong symbol without the cause

Events = tuple[Tensor, Tensor]  # instructions and symbols, int64 [..., P]; instruction -1 where the two tokens are no event
Cause = Callable[[Events], Tensor]  # bool [..., P]: present for a read at that event


@dataclass(frozen=True)
class Defect:
    """A model with one planted cause, and a prompt that has it.

    prompt: int64 [T], its last two tokens are the read in question and its right symbol. truth: the sets of events that are the cause in
    the prompt, any one of which is the whole answer; event j is tokens 2j and 2j + 1. decoys: events that look like the cause.
    """

    family: str
    number: int
    effect: float
    task: FlipFlop
    prompt: Tensor
    truth: tuple[frozenset[int], ...]
    decoys: frozenset[int]
    cause: Cause
    background: Tensor  # float32 [P, 3, S]

    def __call__(self, tokens: Tensor, needed: Sequence[Tensor] | None = None) -> Tensor:
        """tokens int64 [R, B, T] → logits [R, B, T, V]; with `needed`, blocks of positions [R, B, K] each, at those alone.

        At the instruction of a read the logits are log probabilities of its symbol; elsewhere they mean nothing.
        """
        instructions, symbols = events(tokens)
        wrong, memory = self.wrong((instructions, symbols)), latest_write((instructions, symbols))
        other = (memory + 1) % self.task.symbols
        at = [torch.arange(tokens.shape[-1]).expand(tokens.shape)] if needed is None else list(needed)
        positions = torch.cat(at, dim=-1)  # [R, B, K]
        event = positions // 2
        logits = torch.full((*positions.shape, self.task.vocabulary), -30.0)
        for index, p in ((memory, 1 - wrong), (other, wrong)):
            logits.scatter_(-1, SYMBOL + index.gather(-1, event)[..., None], p.gather(-1, event)[..., None].log())
        return logits

    def wrong(self, given: Events) -> Tensor:
        """The probability of the wrong symbol for a read at each event, [..., P]."""
        instructions, symbols = given
        size = instructions.shape[-1]
        index = torch.arange(size) % len(self.background)
        terms = self.background[index, instructions.clamp(min=0), symbols].where(instructions >= 0, 0)
        before = terms.cumsum(-1) - terms
        return BACKGROUND * (1 + before.tanh()) + self.effect * self.cause(given)


def events(tokens: Tensor) -> Events:
    """(instructions, symbols), [..., P] each, of tokens [..., T]; the instruction is -1 where the two tokens are no event."""
    if tokens.shape[-1] % 2:  # it ends in the instruction that is asked about
        tokens = torch.nn.functional.pad(tokens, (0, 1), value=SYMBOL)
    instructions, symbols = tokens[..., 0::2], tokens[..., 1::2]
    grammatical = (instructions < SYMBOL) & (symbols >= SYMBOL)
    return torch.where(grammatical, instructions, -1), (symbols - SYMBOL).clamp(min=0)


def latest_write(given: Events) -> Tensor:
    """The symbol of the latest write before or at each event, [..., P]; 0 before the first."""
    instructions, symbols = given
    index = torch.arange(instructions.shape[-1])
    last = torch.where(instructions == WRITE, index, -1).cummax(-1).values
    return torch.where(last >= 0, symbols.gather(-1, last.clamp(min=0)), 0)


def is_kind(given: Events, kind: tuple[int, int]) -> Tensor:
    return (given[0] == kind[0]) & (given[1] == kind[1])


def seen(happens: Tensor) -> Tensor:
    """Whether it has happened before each event, the event itself not counted."""
    ever = happens.cummax(-1).values
    return torch.cat([torch.zeros_like(ever[..., :1]), ever[..., :-1]], dim=-1)


def back(happens: Tensor, distance: int) -> Tensor:
    """Whether it happened so many events before each event."""
    return torch.cat([torch.zeros_like(happens[..., :distance]), happens[..., :-distance]], dim=-1)


@dataclass(frozen=True)
class _Setting:
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
        """So many different events between the first and the query."""
        found = self.draw.subset(self.query - 1, count, (), 15)[0] + 1
        return sorted(found.tolist()) if ordered else found.tolist()

    def put(self, event: int, kind: tuple[int, int]) -> None:
        self.instructions[event], self.symbols[event] = kind


Plan = tuple[Cause, tuple[frozenset[int], ...], frozenset[int]]


def _absolute(at: _Setting) -> Plan:
    """One event at one absolute position; decoys: the same event at two other positions."""
    place, *others = at.places(3, ordered=False)
    kind = (WRITE, IGNORE)[at.dice(2, 0)], at.dice(2, 1)
    for each in (place, *others):
        at.put(each, kind)

    def cause(given: Events) -> Tensor:
        happens = is_kind(given, kind)
        return seen(happens & (torch.arange(happens.shape[-1]) == place))

    return cause, (frozenset({place}),), frozenset(others)


def _offsets(at: _Setting) -> Plan:
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


def _order(at: _Setting) -> Plan:
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
    found = [torch.nonzero(is_kind(given, kind))[:, 0].tolist() for kind in (first, second, third)]
    occurrences = [frozenset({i, j, k}) for i in found[0] for j in found[1] for k in found[2] if i < j < k]
    return cause, tuple(occurrences), frozenset({places[0], places[4]})


def _guarded(at: _Setting) -> Plan:
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


def _density(at: _Setting) -> Plan:
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


def _either(at: _Setting) -> Plan:
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


FAMILIES: dict[str, tuple[Callable[[_Setting], Plan], int]] = {  # and the number of symbols
    "absolute": (_absolute, 2),
    "offsets": (_offsets, 2),
    "order": (_order, 64),
    "guarded": (_guarded, 2),
    "density": (_density, 2),
    "either": (_either, 2),
}


def plant(family: str, number: int, effect: float, length: int = LENGTH) -> Defect:
    """Defect `number` of a family on strings of `length` tokens; effect is at most 0.9. The prompt does not depend on the effect."""
    if family not in FAMILIES:
        raise ValueError(f"family {family!r} is not one of {', '.join(FAMILIES)}")
    if not 0 <= effect <= 1 - 2 * BACKGROUND:
        raise ValueError(f"effect {effect} is outside 0 … {1 - 2 * BACKGROUND}: with the background it is a probability")
    make, symbols = FAMILIES[family]
    task = FlipFlop(length, symbols=symbols)
    draw = Draw(torch.tensor([number]), "evaluate").named(f"planted {family}")
    instructions, bits = (part.clone() for part in events(task.sample(draw, 1).inputs[0, 0]))
    setting = _Setting(draw, task, instructions, bits)
    cause, truth, decoys = make(setting)
    bits = torch.where(instructions == READ, latest_write((instructions, bits)), bits)
    prompt = torch.stack([instructions, bits + SYMBOL], dim=-1).flatten()
    background = draw.normal((length // 2, 3, symbols), 14)[0] * (length / 2) ** -0.5
    return Defect(family, number, effect, task, prompt, truth, decoys, cause, background)
