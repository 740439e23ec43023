"""States of a semiautomaton after every token by parallel composition, in 2 log2 T rounds.

A token is a map Q → Q, a prefix the composition of its tokens' maps. Where the transition monoid (all maps that words make) is small,
maps are numbers and composing two is one look-up in the monoid's product table; otherwise they are composed as maps, which costs as many
look-ups as there are states, so that beyond `MOST_MAPPED` of them words are walked token by token instead.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from tasks.automata.semiautomata import Semiautomaton

MOST_ELEMENTS = 5000  # of a product table: 100 MB of int32
MOST_MAPPED = 64
_MAP_ENTRIES = 2**22  # entries of the maps that are composed at once


@dataclass(frozen=True, eq=False)
class Monoid:
    """The maps that words make. They are numbered as a breadth-first search from the identity, number 0, finds them.

    product: int32 [M · M], the element "a then b" at a · M + b. tokens: int32 [S], the element of each token. states: int64 [M], the
    state that each element leads to from the start.
    """

    product: Tensor
    tokens: Tensor
    states: Tensor

    def to(self, device: torch.device) -> "Monoid":
        return Monoid(self.product.to(device), self.tokens.to(device), self.states.to(device))


def prefixes(compose: Callable[[Tensor, Tensor], Tensor], parts: Tensor) -> Tensor:
    """[N, T, …] → [N, T, …], the composition of the parts up to each one; `compose(a, b)` is "a then b", associative.

    About 2 T compositions in 2 log2 T rounds: neighbours are composed, the prefixes of the pairs found, and the others filled in.
    """
    length = parts.shape[1]
    if length == 1:
        return parts
    odd = prefixes(compose, compose(parts[:, 0 : length - 1 : 2], parts[:, 1::2]))
    out = torch.empty_like(parts)
    out[:, 0], out[:, 1::2] = parts[:, 0], odd
    if length > 2:
        out[:, 2::2] = compose(odd[:, : (length - 1) // 2], parts[:, 2::2])
    return out


def states_after(automaton: Semiautomaton, tokens: Tensor) -> Tensor:
    """The state after each token of words that are valid: tokens int64 [..., T] → int64 [..., T]."""
    words = tokens.flatten(0, -2)
    monoid = _monoid_on(automaton, tokens.device)
    if monoid is not None:
        states = _by_number(monoid, words)
    elif len(automaton.table) > MOST_MAPPED:
        states = _by_walk(automaton.table.to(tokens.device), automaton.start, words)
    else:
        rows = max(1, _MAP_ENTRIES // (words.shape[1] * len(automaton.table)))
        maps = _total(automaton).to(tokens.device)
        states = torch.cat([_by_map(maps, automaton.start, part) for part in words.split(rows)])
    return states.view(tokens.shape)


def _by_number(monoid: Monoid, words: Tensor) -> Tensor:
    size = len(monoid.states)

    def compose(first: Tensor, then: Tensor) -> Tensor:
        return monoid.product.index_select(0, (first * size + then).flatten()).view(first.shape)

    elements = monoid.tokens.index_select(0, words.flatten()).view(words.shape)
    return monoid.states.index_select(0, prefixes(compose, elements).flatten())


def _by_map(maps: Tensor, start: int, words: Tensor) -> Tensor:
    """maps: int64 [S, Q], total; words [N, T]."""
    whole = prefixes(lambda first, then: then.gather(-1, first), maps[words])
    return whole[..., start]


def _by_walk(table: Tensor, start: int, words: Tensor) -> Tensor:
    """table: int64 [Q, S]; words [N, T]."""
    along = words.T.contiguous()
    states, state = torch.empty_like(along), torch.full_like(along[0], start)
    for t, token in enumerate(along):
        state = states[t] = table[state, token]
    return states.T.contiguous()


def _total(automaton: Semiautomaton) -> Tensor:
    """The map of each token, int64 [S, Q]. Where a token is not valid it keeps the state; valid words never get there."""
    stay = torch.arange(len(automaton.table))[:, None]
    return torch.where(automaton.valid, automaton.table, stay).T.contiguous()


@functools.cache
def transition_monoid(automaton: Semiautomaton, most: int = MOST_ELEMENTS) -> Monoid | None:
    """The maps that words make, None where they are more than `most` or where some token is not valid somewhere."""
    if automaton.masked:
        return None
    maps = automaton.table.numpy().T  # [S, Q]
    size = maps.shape[1]
    elements = [np.arange(size)]
    number = {elements[0].tobytes(): 0}
    then: list[list[int]] = []  # element and token → element
    parents = [(0, 0)]  # the element and the token that an element was found by
    for element, image in enumerate(elements):  # grows while it is walked
        then.append([])
        for token, step in enumerate(maps):
            after = step[image]
            name = after.tobytes()
            if name not in number:
                if len(elements) == most:
                    return None
                number[name] = len(elements)
                elements.append(after)
                parents.append((element, token))
            then[element].append(number[name])
    right = np.array(then, dtype=np.int32)  # [M, S]
    product = np.empty((len(elements), len(elements)), dtype=np.int32)
    product[:, 0] = np.arange(len(elements))
    for element, (parent, token) in enumerate(parents[1:], start=1):
        product[:, element] = right[product[:, parent], token]
    states = np.array([image[automaton.start] for image in elements], dtype=np.int64)
    return Monoid(torch.from_numpy(product.reshape(-1)), torch.from_numpy(right[0].copy()), torch.from_numpy(states))


@functools.cache
def _monoid_on(automaton: Semiautomaton, device: torch.device) -> Monoid | None:
    monoid = transition_monoid(automaton)
    return None if monoid is None else monoid.to(device)
