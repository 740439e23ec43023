"""Associations: one of many pairs of tokens stands somewhere in a string, in order, and has an answer of its own.

For studies of how models learn subsequences (after Sun et al. 2025, arXiv 2504.12691). A string is fillers, one pair [a, b] with a
before b and something between them, and the same final token always, where the answer is wanted. Pairs are drawn without replacement from
all combinations of first and second symbols, so that with more pairs than symbols a single token leaves the answer open.

    Associations(length=8, pairs=3, symbols=2, decoys=1)      . b1 . a0 . b0 . ∅ → the answer of [a0, b0]

Decoys are single symbols: second ones before a, first ones behind b, so that no other first symbol has a second one behind it.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from tasks.batch import Batch
from tasks.bits import at_the_end
from tasks.draws import WORD, Draw
from tasks.task import Classification, refuse_below

FINAL = 0  # token; then the first symbols, the second ones and the fillers
_MOST = 4096  # symbols

OfSeed = Callable[[int], Draw]

# sites of the draws within a step; part of every committed result
_PAIR, _PLACE, _SPLIT, _DECOY, _FILLER, _SURE, _OTHER = range(7)
_COMBINATION, _ANSWER = 0, 1  # of the table


@dataclass(frozen=True)
class Associations(Classification):
    """Strings with one pair each, answered by the pair's own answer.

    length: T, the final token included. pairs: how many there are. symbols: number of first symbols, and of second ones. fillers: number
    of kinds. outputs: number of answers. decoys: single symbols in each string. zipf: s; the frequency of pair n = 0, 1, … is
    proportional to (n + 1)^-s. sure: the probability that a string's answer is its pair's own; else it is one of the others, all equally
    probable. spread: how much lower that is for the last pair than for the first, falling evenly between them. table_seed: of the pairs
    and their answers, which all replicates share, as they share evaluation sets.
    """

    error: ClassVar[str] = "a string whose most probable answer is not the one that was drawn for it"
    vectors: ClassVar[tuple[str, ...]] = ("pairs", "decoys", "zipf", "sure", "table_seed", "spread")  # may differ within a pack

    length: int = 16
    pairs: int = 64
    symbols: int = 16
    fillers: int = 16
    outputs: int = 16
    decoys: int = 0
    zipf: float = 0.0
    sure: float = 1.0
    table_seed: int = 0
    spread: float = 0.0

    def __post_init__(self) -> None:
        refuse_below(self, pairs=1, symbols=1, fillers=1, outputs=2, decoys=0, table_seed=0)
        if self.table_seed >= 2**63:
            raise ValueError(f"task.table_seed = {self.table_seed} must be below 2^63")
        if self.symbols > _MOST:
            raise ValueError(f"task.symbols = {self.symbols} must be at most {_MOST}: the pairs are drawn from their square")
        if self.pairs > self.symbols**2:
            raise ValueError(
                f"task.pairs = {self.pairs} must be at most {self.symbols**2}: task.symbols = {self.symbols} first and as many second "
                "symbols make no more"
            )
        if self.length < self.decoys + 4:
            raise ValueError(
                f"task.length = {self.length} has no room for a pair, a filler between its tokens, task.decoys = {self.decoys} and the "
                f"final token: write at least {self.decoys + 4}"
            )
        if not 0 < self.sure <= 1:
            raise ValueError(
                f"task.sure = {self.sure:g} must be a probability above 0: 1 gives each pair its own answer always"
            )
        if not 0 <= self.spread < self.sure:
            raise ValueError(
                f"task.spread = {self.spread:g} must be at least 0 and below task.sure = {self.sure:g}, of which it is taken"
            )
        if not 0 <= self.zipf < float("inf"):
            raise ValueError(f"task.zipf = {self.zipf:g} must be a number of 0 or more: 0 makes all pairs equally frequent")
        if float(self.frequencies()[-1]) < 2 / WORD:
            raise ValueError(
                f"task.zipf = {self.zipf:g} makes the last of task.pairs = {self.pairs} so rare that it is never drawn: lower one of them"
            )

    @property
    def vocabulary(self) -> int:
        return 1 + 2 * self.symbols + self.fillers

    def frequencies(self) -> Tensor:
        """The probability that a string has each pair, float64 [pairs]; strings are drawn with it to within 2^-32."""
        weights = torch.arange(1, self.pairs + 1, dtype=torch.float64) ** -float(self.zipf)
        return weights / weights.sum()

    def table(self, of_seed: OfSeed) -> Tensor:
        """First token, second token and own answer of each pair, int64 [pairs, 3]. of_seed: `Draw.of_seed` of any draw."""
        return _table(self.pairs, self.symbols, self.outputs, self.table_seed, of_seed)

    def law(self, of_seed: OfSeed) -> Tensor:
        """P(answer | the pair is in the string), float64 [pairs, outputs]: exact, since a string has one pair."""
        sure = self.sureness()[:, None]
        own = torch.nn.functional.one_hot(self.table(of_seed)[:, 2], self.outputs).double()
        return sure * own + (1 - sure) / (self.outputs - 1) * (1 - own)

    def sureness(self) -> Tensor:
        """P(a pair's own answer | the pair is in the string), float64 [pairs]."""
        return self.sure - self.spread * torch.arange(self.pairs, dtype=torch.float64) / max(1, self.pairs - 1)

    def sample(self, draw: Draw, batch: int) -> Batch:
        """`batch` strings a replicate: inputs, targets [R, B, T] int64, weights [R, B, T], 1 at the last position and 0 elsewhere."""
        return self.holding(draw, draw.categorical(self.frequencies(), (batch,), _PAIR))

    def holding(self, draw: Draw, pairs: Tensor) -> Batch:
        """Strings as of `sample` that hold the pairs of these numbers, int64 [R, B]."""
        batch, device = pairs.shape[1], pairs.device
        first, second, answers = self.table(draw.of_seed).to(device)[pairs].unbind(-1)
        inputs = 1 + 2 * self.symbols + draw.integers(self.fillers, (batch, self.length), _FILLER)
        inputs[..., -1] = FINAL

        marks, before = self.decoys + 2, draw.integers(self.decoys + 1, (batch,), _SPLIT)[..., None]
        rank = torch.arange(marks, device=device)
        # drawn from one place fewer; b and all after it then move by one, so that something is between a and b
        places = draw.subset(self.length - 2, marks, (batch,), _PLACE).sort(-1).values + (rank > before)
        tokens = 1 + draw.integers(self.symbols, (batch, marks), _DECOY) + self.symbols * (rank < before)
        tokens = torch.where(rank == before, first[..., None], tokens)
        tokens = torch.where(rank == before + 1, second[..., None], tokens)
        inputs = inputs.scatter(-1, places, tokens)

        if self.sure < 1 or self.spread:
            other = draw.integers(self.outputs - 1, (batch,), _OTHER)
            own = draw.words((batch,), _SURE) < (self.sureness() * WORD).round().long().to(device)[pairs]
            answers = torch.where(own, answers, other + (other >= answers))
        return at_the_end(inputs, answers)


@functools.lru_cache(maxsize=64)
def _table(pairs: int, symbols: int, answers: int, seed: int, of_seed: OfSeed) -> Tensor:
    draw = of_seed(seed).named("associations")
    combination = draw.subset(symbols**2, pairs, (), _COMBINATION)[0]
    own = draw.integers(answers, (pairs,), _ANSWER)[0]
    return torch.stack([1 + combination // symbols, 1 + symbols + combination % symbols, own], dim=-1)
