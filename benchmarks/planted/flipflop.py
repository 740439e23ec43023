"""Flip-flop models with a planted cause of wrong reads, in six families, and a prompt for each in which the cause is present.

A string is P = T/2 events (instruction, symbol). A defect is right at every read, with probability 1 - b, where b is a small background
of 0 to 0.1 that depends on all events a little; where its cause is present among the events before a read, the probability of the wrong
symbol is b + effect. Whatever is drawn follows from (family, number).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.planted.events import Events, events, latest_write
from benchmarks.planted.families import FAMILIES, Cause, Setting
from harness.draw import Draw
from tasks.flipflop.flipflop import READ, SYMBOL, FlipFlop

LENGTH = 128
BACKGROUND = 0.05  # mean probability of a wrong symbol without the cause


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
    setting = Setting(draw, task, instructions, bits)
    cause, truth, decoys = make(setting)
    bits = torch.where(instructions == READ, latest_write((instructions, bits)), bits)
    prompt = torch.stack([instructions, bits + SYMBOL], dim=-1).flatten()
    background = draw.normal((length // 2, 3, symbols), 14)[0] * (length / 2) ** -0.5
    return Defect(family, number, effect, task, prompt, truth, decoys, cause, background)
