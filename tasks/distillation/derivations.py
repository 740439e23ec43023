"""Strings of a grammar and their parse trees, drawn for all strings at once, two levels of rules a step.

A symbol and the rules of its children are one draw from a table of all such pairs, so a string of depth 7 takes three steps whatever
its length. A string depends on its row of the draw alone.
"""

import functools
import itertools
from dataclasses import dataclass

import torch
from torch import Tensor

from tasks.distillation.grammars import LEVELS, grammar, level_of, symbols_of
from tasks.draws import WORD, Draw

_SITES = 8  # of one attempt; the first attempt has sites 0 … 7 of a draw


@dataclass(frozen=True)
class Trees:
    """tokens int64 [R, B, T], 0, 1, 2 for the terminals 1, 2, 3 (0 beyond a string's end); lengths int64 [R, B].

    ends uint8 [R, B, T]: the highest level, from the leaves 1 … 7, of which a span ends at the token; 0 beyond the end. Every token ends
    its own span of level 1. ancestors uint8 [R, B, T, 7]: the symbol of level l over the token at index l - 1, 0 above the root and
    beyond the end; None where not asked for. A span of level l reaches from behind a token with ends ≥ l to the next such one.
    """

    tokens: Tensor
    lengths: Tensor
    ends: Tensor
    ancestors: Tensor | None


def derive(name: str, root: int, draw: Draw, batch: int, room: int, ancestors: bool = False) -> Trees:
    """Draw `batch` strings a replicate of at most `room` tokens; a longer one is drawn again, from further sites of its row."""
    trees = _attempt(name, root, draw, batch, room, ancestors, 0)
    attempt = 1
    while bool((long := trees.lengths > room).any()):
        other = _attempt(name, root, draw, batch, room, ancestors, attempt)
        trees = _replaced(trees, other, long)
        attempt += 1
    return trees


def _replaced(old: Trees, new: Trees, which: Tensor) -> Trees:
    """Replace the strings that `which` [R, B] marks in `old` by those of `new`."""
    ancestors = old.ancestors
    if ancestors is not None and new.ancestors is not None:
        ancestors = torch.where(which[..., None, None], new.ancestors, ancestors)
    tokens, ends = (torch.where(which[..., None], b, a) for a, b in ((old.tokens, new.tokens), (old.ends, new.ends)))
    return Trees(tokens, torch.where(which, new.lengths, old.lengths), ends, ancestors)


@dataclass(frozen=True)
class _Table:
    """The expansions of a level's symbols by one or two levels of rules; rows are ordered by symbol, then by rule.

    bounds int64 [rows]: a row is drawn where symbol · 2^32 + word lies below its bound and not below the one before. children uint8
    [rows, W]: numbers of the symbols that result, within their level, filled up with _NONE. middles uint8 [rows, W]: numbers of their
    parents. ranks uint8 [rows, W]: how many of the symbols above a child, up to `levels`, end with it.
    """

    bounds: Tensor
    children: Tensor
    middles: Tensor
    ranks: Tensor
    levels: int


_NONE = 255


@functools.lru_cache(maxsize=256)
def _table(name: str, level: int, device: torch.device) -> _Table:
    """Two levels of rules from `level`, or the last one alone where there are no two."""
    rules, two = grammar(name).rules, level > 2
    bounds, rows = [], []
    for index, symbol in enumerate(symbols_of(level)):
        total = 0.0
        for side in rules[symbol]:
            for below in itertools.product(*(rules[child] for child in side)) if two else [tuple((token,) for token in side)]:
                probability = 1 / len(rules[symbol])
                row = []
                for place, (parent, children) in enumerate(zip(side, below, strict=True)):
                    if two:
                        probability /= len(rules[parent])
                    for at, child in enumerate(children):
                        last = at == len(children) - 1
                        rank = int(last) + int(last and place == len(side) - 1) if two else int(place == len(side) - 1)
                        row.append((_number(child), _number(parent), rank))
                total += probability
                bounds.append(index * WORD + min(WORD, round(total * WORD)))
                rows.append(row)
    width = max(map(len, rows))
    padded = torch.tensor([row + [(_NONE, 0, 0)] * (width - len(row)) for row in rows], dtype=torch.uint8)
    parts = [part.contiguous().to(device) for part in padded.unbind(-1)]
    return _Table(torch.tensor(bounds, device=device), parts[0], parts[1], parts[2], 2 if two else 1)


def _number(symbol: int) -> int:
    """A symbol's place in its level, from 0."""
    return symbol - symbols_of(level_of(symbol))[0]


def _attempt(name: str, root: int, draw: Draw, batch: int, room: int, ancestors: bool, attempt: int) -> Trees:
    device = draw.seeds.device
    strings, level = draw.replicates * batch, level_of(root)
    # the symbols of all strings behind one another, as their numbers in the level
    symbols = torch.full((strings,), _number(root), dtype=torch.uint8, device=device)
    counts = torch.ones(strings, dtype=torch.int64, device=device)
    ends = torch.full((strings,), level, dtype=torch.uint8, device=device)
    above = {level: symbols + symbols_of(level)[0]} if ancestors else {}
    while level > 1:
        table = _table(name, level, device)
        most = len(grammar(name).counts(root, level=level)) - 1
        words = draw.words((batch, most), attempt * _SITES + level).reshape(strings, most)
        if most > 1:
            words = words[torch.arange(most, device=device) < counts[:, None]]
        row = torch.searchsorted(table.bounds, symbols.long() * WORD + words.flatten(), right=True)
        children, ranks = table.children[row], table.ranks[row]
        keep = children != _NONE
        fanout = keep.sum(-1)
        owner = torch.arange(strings, device=device).repeat_interleave(counts)
        counts = torch.zeros_like(counts).index_add_(0, owner, fanout)
        below = level - table.levels
        whole = ranks == table.levels  # such a child ends what its grandparent ends
        ends = torch.where(whole, ends[:, None], below + ranks)[keep]
        symbols = children[keep]
        if ancestors:
            above = {above_level: values.repeat_interleave(fanout) for above_level, values in above.items()}
            if table.levels == 2:
                above[level - 1] = table.middles[row][keep] + symbols_of(level - 1)[0]
            above[below] = symbols + symbols_of(below)[0]
        level = below
    shape = (draw.replicates, batch)
    width = max(room, int(counts.max()))
    mask = torch.arange(width, device=device) < counts[:, None]

    def padded(flat: Tensor) -> Tensor:
        out = torch.zeros(strings, width, dtype=torch.uint8, device=device).masked_scatter_(mask, flat)
        return out[:, :room].reshape(*shape, room)

    tree = None
    if ancestors:
        none = torch.zeros_like(symbols)
        tree = torch.stack([padded(above.get(above_level, none)) for above_level in range(1, LEVELS + 1)], dim=-1)
    return Trees(padded(symbols).long(), counts.view(shape), padded(ends), tree)


@dataclass(frozen=True)
class Spans:
    """The spans of one level, N in all: int64 [N] each. first … last are positions of the string, both of the span."""

    replicate: Tensor
    string: Tensor
    first: Tensor
    last: Tensor
    symbol: Tensor


def spans(trees: Trees, level: int) -> Spans:
    """The spans of a level from the leaves, string after string, from left to right.

    Raises ValueError for trees without their ancestors and for a level that none of them has.
    """
    if trees.ancestors is None:
        raise ValueError("these trees hold no symbols over the tokens: draw them with ancestors = True")
    if not 1 <= level <= int(trees.ends.max()):
        raise ValueError(f"level = {level} must be from 1, the tokens, to {int(trees.ends.max())}, the root of these trees")
    ends = trees.ends >= level
    begins = torch.cat([torch.ones_like(ends[..., :1]), ends[..., :-1]], dim=-1) & (trees.ends > 0)
    replicate, string, last = ends.nonzero().unbind(-1)
    return Spans(replicate, string, begins.nonzero()[:, -1], last, trees.ancestors[..., level - 1][ends].long())
