"""The prompt of a wrong read: a flip-flop string up to the read, as events."""

from dataclasses import dataclass
from functools import cached_property
from zlib import crc32

import torch
from torch import Tensor

from harness.draw import Draw
from tasks.flipflop.flipflop import READ, SYMBOL, WRITE, FlipFlop


@dataclass(frozen=True)
class Prompt:
    """Events (instruction, symbol) 0 … P - 1 of a string of `task`, of which the last is the read in question.

    instructions, symbols: int64 [P]; the symbol of the read is the right one.
    """

    task: FlipFlop
    instructions: Tensor
    symbols: Tensor

    @property
    def query(self) -> int:
        """The number of the read's event; it is no candidate for a cause, since without it nothing is asked."""
        return len(self.instructions) - 1

    @property
    def room(self) -> int:
        """Events that fit in front before the string is longer than the task's."""
        return self.task.length // 2 - len(self.instructions)

    @cached_property
    def tokens(self) -> Tensor:
        """int64 [2P], the right symbol included."""
        return torch.stack([self.instructions, self.symbols + SYMBOL], dim=-1).flatten()

    @property
    def truth(self) -> int:
        return int(self.symbols[-1])

    @property
    def last_write(self) -> int:
        """The event that answers the read."""
        return int(torch.nonzero(self.instructions == WRITE)[-1])

    def draw(self, seed: int) -> Draw:
        """Randomness of a trace of this prompt: a function of its tokens and the corpus seed."""
        return Draw(torch.tensor([seed]), "evaluate", 2**31 + (crc32(bytes(self.tokens.tolist())) >> 1))


def prompt_of(task: FlipFlop, tokens: Tensor, position: int | None = None) -> Prompt:
    """The prompt of the read whose instruction stands at `position` (None: the last token but one) of a string, tokens int64 [T].

    Raises ValueError where that is no read of a flip-flop string, or nothing stands before it but the first write.
    """
    position = len(tokens) - 2 if position is None else position
    if position % 2 or not 4 <= position < len(tokens) - 1 or int(tokens[position]) != READ or int(tokens[0]) != WRITE:
        raise ValueError(
            f"position {position} is no read behind at least two events of a flip-flop string of {len(tokens)} tokens"
        )
    events = tokens[: position + 2].view(-1, 2)
    return Prompt(task, events[:, 0].clone(), events[:, 1] - SYMBOL)
