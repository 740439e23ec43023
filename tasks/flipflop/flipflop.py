"""Flip-flop language modelling, FFL(T, p): remember the last bit that was written.

Liu, Ash, Goel, Krishnamurthy, Zhang, "Exposing attention glitches with flip-flop language modeling" (NeurIPS 2023), Definition 11.

A string is T/2 pairs (instruction, symbol). The first instruction is `w`, the last is `r`, the others are independent draws from
(p_w, p_r, p_i). Symbols after `w` and `i` are uniform; the symbol after `r` must be the one after the latest `w`:

    w 1 i 0 r 1 w 0 i 1 i 1 r 0          T = 14; scored: the symbols after the two r
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from tasks.batch import Batch
from tasks.draws import Draw
from tasks.task import Task, refuse_below, refuse_unlisted

WRITE, READ, IGNORE = 0, 1, 2
SYMBOL = 3  # token of symbol 0; symbol s is token 3 + s

# sites of the draws within a step; part of every committed result
_INSTRUCTION, _SYMBOL, _MIXTURE = 0, 1, 2


@dataclass(frozen=True)
class FlipFlop(Task):
    """FFL(T, p) over `symbols` data symbols; vocabulary w, r, i, then the symbols.

    length: T in tokens, even, at least 4.
    p_ignore: p_i, or a tuple: each string takes one of them with equal probability (a mixture of distributions).
    p_write, p_read: default (1 - p_i)/2 each; one given, the other is what is left.
    mode: "deterministic" scores only the symbol after each `r`; "generative" trains on every next token. Evaluation is always of reads.
    """

    metrics: ClassVar[tuple[str, ...]] = ("read", "read_restricted")
    error: ClassVar[str] = (
        "a read (the position after an “r”) where the most probable token of the whole vocabulary "
        "is not the bit of the last write"
    )
    vectors: ClassVar[tuple[str, ...]] = ("p_ignore", "p_write", "p_read")  # may differ within a pack

    length: int = 512
    p_ignore: float | tuple[float, ...] = 0.8
    p_write: float | None = None
    p_read: float | None = None
    mode: str = "deterministic"
    symbols: int = 2

    def __post_init__(self) -> None:
        if self.length < 4 or self.length % 2:
            raise ValueError(
                f"task.length = {self.length} is not an even number of tokens of at least 4: a string is (instruction, symbol) pairs"
            )
        refuse_unlisted(self, {"mode": ("deterministic", "generative")})
        refuse_below(self, symbols=2)
        if isinstance(self.p_ignore, tuple) and not self.p_ignore:
            raise ValueError("task.p_ignore is an empty list: give a probability or a list of them")
        for law in self.laws():
            if not 0 <= law[2] <= 1:
                raise ValueError(f"task.p_ignore = {law[2]:g} must be a probability")
            if min(law) < 0 or abs(sum(law) - 1) > 1e-9:
                raise ValueError(
                    f"task.p_write, p_read, p_ignore = {law[0]:g}, {law[1]:g}, {law[2]:g} must be non-negative and sum to 1: "
                    "change one, or give p_write and p_read as null, half of the rest each"
                )

    @property
    def vocabulary(self) -> int:
        return SYMBOL + self.symbols

    @property
    def answers_ahead(self) -> bool:
        """An answer is the next token."""
        return True

    def laws(self) -> list[tuple[float, float, float]]:
        """(p_w, p_r, p_i) of each distribution of the mixture."""
        mixture = self.p_ignore if isinstance(self.p_ignore, tuple) else (self.p_ignore,)
        laws = []
        for p_ignore in mixture:
            left = 1 - p_ignore
            if self.p_write is not None:
                write = self.p_write
                read = _rest(left, write) if self.p_read is None else self.p_read
            else:
                read = left / 2 if self.p_read is None else self.p_read
                write = _rest(left, read)
            laws.append((float(write), float(read), float(p_ignore)))
        return laws

    def evaluation(self) -> "FlipFlop":
        """The task that an evaluation set of this one holds: the same strings, reads scored."""
        return FlipFlop(self.length, self.p_ignore, self.p_write, self.p_read, "deterministic", self.symbols)

    def scored_positions(self) -> int | None:
        """Positions per string that the loss needs, K: the 0.999 quantile of the number of reads, rounded up to 8; None = all.

        A property of the distribution alone: a string with more reads is finished in further blocks of K.
        """
        if self.mode == "generative":
            return None
        most = max(_binomial_quantile(self.length // 2 - 2, read, 0.999) for _, read, _ in self.laws())
        return min(self.length, -(-(1 + most) // 8) * 8)

    def sample(self, draw: Draw, batch: int) -> Batch:
        """`batch` strings a replicate: inputs [R, B, T], targets [R, B, T], weights [R, B, T].

        targets[t] = inputs[t + 1]; the last position has no target and weight 0, so the model sees x_1 … x_{T-1}.
        about: since_write and since_event [R, B, T], distance in instructions from a read to the latest write and to the latest
        instruction that is no ignore (0 where nothing is read).
        """
        pairs = self.length // 2
        laws = torch.tensor(self.laws(), dtype=torch.float64)
        bounds = (laws.cumsum(-1)[:, :2] * 2**32).floor().to(torch.int64).to(draw.seeds.device)  # [M, 2]
        words = draw.words((batch, pairs), _INSTRUCTION)
        if len(laws) == 1:
            below_write, below_read = bounds[0]
        else:
            component = draw.integers(len(laws), (batch, 1), _MIXTURE)
            below_write, below_read = bounds[component].unbind(-1)
        instructions = torch.where(words < below_write, WRITE, torch.where(words < below_read, READ, IGNORE))
        instructions[..., 0] = WRITE
        instructions[..., -1] = READ
        symbols = draw.integers(self.symbols, (batch, pairs), _SYMBOL)
        last_write, last_event = _latest(instructions == WRITE), _latest(instructions != IGNORE)
        reads = instructions == READ
        symbols = torch.where(reads, symbols.gather(-1, last_write), symbols)

        inputs = torch.stack([instructions, symbols + SYMBOL], dim=-1).flatten(-2)
        targets = torch.zeros_like(inputs)
        targets[..., :-1] = inputs[..., 1:]
        if self.mode == "generative":
            weights = torch.ones(inputs.shape, device=inputs.device)
            weights[..., -1] = 0
        else:
            weights = _at_instructions(reads).to(torch.float32)
        index = torch.arange(pairs, device=inputs.device)
        before = torch.cat([torch.zeros_like(last_event[..., :1]), last_event[..., :-1]], dim=-1)
        about = {
            "since_write": _at_instructions(torch.where(reads, index - last_write, 0)),
            "since_event": _at_instructions(torch.where(reads, index - before, 0)),
        }
        return Batch(inputs, targets, weights, about)

    def wrong(self, logits: Tensor, targets: Tensor) -> dict[str, Tensor]:
        """Which predictions are wrong, by metric; logits [..., V], targets [...].

        read: argmax over the whole vocabulary (the reported error). read_restricted: argmax over the data symbols alone.
        """
        return {
            "read": logits.argmax(-1) != targets,
            "read_restricted": logits[..., SYMBOL:].argmax(-1) + SYMBOL != targets,
        }


def _rest(whole: float, part: float) -> float:
    """What is left of a probability: 0 where rounding alone makes it negative, as in 1 - 0.9 - 0.1."""
    rest = whole - part
    return 0.0 if -1e-9 < rest < 0 else rest


def _latest(happens: Tensor) -> Tensor:
    """Index of the latest True at or before each position of the last axis (0 before the first)."""
    index = torch.arange(happens.shape[-1], device=happens.device)
    return torch.where(happens, index, 0).cummax(-1).values


def _at_instructions(values: Tensor) -> Tensor:
    """[..., T/2] values of the pairs to [..., T], zero at the symbols."""
    return torch.stack([values, torch.zeros_like(values)], dim=-1).flatten(-2)


def _binomial_quantile(trials: int, probability: float, level: float) -> int:
    """Smallest k with P(Binomial(trials, probability) <= k) >= level."""
    if probability in (0.0, 1.0):
        return int(probability) * trials
    log_p, log_q = math.log(probability), math.log1p(-probability)
    total, ways = 0.0, 1  # ways: C(trials, k), exact
    for k in range(trials + 1):
        total += math.exp(math.log(ways) + k * log_p + (trials - k) * log_q)
        if total >= level:
            return k
        ways = ways * (trials - k) // (k + 1)
    return trials
