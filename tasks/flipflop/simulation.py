"""Simulation of the flip-flop automaton: say the state after every input.

Liu, Ash, Goel, Krishnamurthy, Zhang, "Exposing attention glitches with flip-flop language modeling" (NeurIPS 2023), Definition 11 and the
mechanistic part. A string is T inputs of {⊥, s0, s1}. The answer at t is q_t, the state after input t: s0 and s1 set it, ⊥ keeps it.

    s1 ⊥ ⊥ s0 ⊥ s1      T = 6
    1  1 1 0  0 1       all scored

The first input is a write, so the state is always defined. The paper names neither this nor the laws of s0 and s1; here both writes are
equally likely.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from tasks.batch import Batch
from tasks.draws import Draw
from tasks.task import Task, refuse_below

IGNORE, WRITE = 0, 1  # token of the write of state 0; the write of state q is token 1 + q

# sites of the draws within a step; part of every committed result
_INPUT, _STATE = 0, 1


@dataclass(frozen=True)
class Simulation(Task):
    """Strings of T inputs, tokens 0 (⊥), 1 (s0) and 2 (s1), answered by one of two states at every position.

    length: T, at least 1. p_ignore: probability of ⊥ at each position but the first; what is left is halved between s0 and s1.
    """

    metrics: ClassVar[tuple[str, ...]] = ("read",)
    error: ClassVar[str] = "a position where the more probable state is not the state after its input"
    vectors: ClassVar[tuple[str, ...]] = ("p_ignore",)  # may differ within a pack
    vocabulary: ClassVar[int] = 3
    outputs: ClassVar[int] = 2

    length: int = 500
    p_ignore: float = 0.5

    def __post_init__(self) -> None:
        refuse_below(self, length=1)
        if not 0 <= self.p_ignore <= 1:
            raise ValueError(f"task.p_ignore = {self.p_ignore} must be a probability")

    def sample(self, draw: Draw, batch: int) -> Batch:
        """`batch` strings a replicate: inputs [R, B, T], targets [R, B, T] in {0, 1}, weights [R, B, T], all 1.

        about: since_write [R, B, T], distance in inputs to the latest write (0 at a write).
        """
        shape = (batch, self.length)
        writes = draw.words(shape, _INPUT) >= int(self.p_ignore * 2**32)
        writes[..., 0] = True
        inputs = torch.where(writes, WRITE + draw.integers(2, shape, _STATE), IGNORE)
        index = torch.arange(self.length, device=inputs.device)
        latest = torch.where(writes, index, 0).cummax(-1).values
        targets = inputs.gather(-1, latest) - WRITE
        return Batch(inputs, targets, torch.ones(inputs.shape, device=inputs.device), {"since_write": index - latest})

    def wrong(self, logits: Tensor, targets: Tensor) -> dict[str, Tensor]:
        """Which predictions are wrong; logits [..., 2], targets [...].

        The metric is called read, as in the language: every position reads the state, and reports and claims are made from that name.
        """
        return {"read": logits.argmax(-1) != targets}
