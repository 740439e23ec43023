"""What a sampler may ask: a generator for the law of the next token, and a verifier whether a prefix may go on.

Rows N are strings int64 [N, H] of which the first `lengths` [N] tokens count; whatever stands after them is not read. `rows` [N] numbers
the strings of a whole batch, R · B of them replicate by replicate, so that an oracle can tell whose they are.
"""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from tasks.generation.processes import Process


class Generator(Protocol):
    """A writer of strings of `horizon` tokens at most; one that writes `end` is done (None: strings have one length)."""

    @property
    def horizon(self) -> int: ...

    @property
    def tokens(self) -> int: ...

    @property
    def end(self) -> int | None: ...

    def law(self, strings: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        """Probabilities of the next token, float64 [N, A]."""


class Verifier(Protocol):
    def accepts(self, strings: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        """Whether each prefix may go on, bool [N]."""


@dataclass(frozen=True)
class Written:
    """The process itself as a generator. batch: B, strings of a replicate. other: a law of the tokens in place of the process's own."""

    process: Process
    batch: int
    other: Tensor | None = None
    end: None = None

    @property
    def horizon(self) -> int:
        return self.process.horizon

    @property
    def tokens(self) -> int:
        return self.process.tokens

    def law(self, strings: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        table = self.process.law if self.other is None else self.other
        return table[_replicate_of(table, rows, self.batch), lengths, states(self.process, strings, lengths)]


@dataclass(frozen=True)
class Judged:
    """A verifier by a table over heights and states, [R, H + 1, S]: yes where it is positive."""

    process: Process
    value: Tensor
    batch: int

    def accepts(self, strings: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        return self.value[_replicate_of(self.value, rows, self.batch), lengths, states(self.process, strings, lengths)] > 0


def states(process: Process, strings: Tensor, lengths: Tensor) -> Tensor:
    """The state of each prefix, int64 [N]."""
    state = torch.zeros_like(lengths)
    for place in range(int(lengths.max()) if len(lengths) else 0):
        state = torch.where(place < lengths, process.successor[state, strings[:, place]], state)
    return state


def _replicate_of(table: Tensor, rows: Tensor, batch: int) -> Tensor:
    """The replicate of each row, as an index into a table; 0 where one table is for all."""
    return rows // batch if len(table) > 1 else torch.zeros_like(rows)
