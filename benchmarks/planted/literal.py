"""A planted cause for tracing by token identity, as in the paper: a large vocabulary, three tokens in order with anything between them.

The model gives the target token the probability b + effect where the three tokens have stood in the string in order, else b, a background
of 0 to 0.1 that depends on all tokens a little. Tokens have embeddings in groups of ten, so that each has neighbours.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.planted.events import seen
from benchmarks.planted.flipflop import BACKGROUND
from harness.draw import Draw

VOCABULARY, GROUP, WIDTH = 200, 10, 16
LENGTH = 24


@dataclass(frozen=True)
class Literal:
    """prompt int64 [n]; cause: three tokens in order; target: the token that they make likely; embeddings [V, D]."""

    number: int
    effect: float
    prompt: Tensor
    cause: tuple[int, int, int]
    target: int
    decoys: frozenset[int]
    embeddings: Tensor
    background: Tensor  # float32 [n, V]

    family = "literal"

    def __call__(self, tokens: Tensor, needed: Sequence[Tensor] | None = None) -> Tensor:
        """tokens int64 [R, B, T] → logits [R, B, T, V] of the next token, or at the positions `needed`, blocks of [R, B, K], alone."""
        one = (tokens == self.cause[0]).cummax(-1).values
        two = ((tokens == self.cause[1]) & seen(one)).cummax(-1).values
        three = ((tokens == self.cause[2]) & seen(two)).cummax(-1).values
        terms = self.background[torch.arange(tokens.shape[-1]) % len(self.background), tokens]
        p = BACKGROUND * (1 + terms.cumsum(-1).tanh()) + self.effect * three
        if needed is not None:
            p = p.gather(-1, torch.cat(list(needed), dim=-1))
        logits = ((1 - p) / (VOCABULARY - 1)).log()[..., None].expand(*p.shape, VOCABULARY).clone()
        logits[..., self.target] = p.log()
        return logits


def plant_literal(number: int, effect: float) -> Literal:
    """Literal defect `number`; the prompt does not depend on the effect. Decoys: the third token before, the first one behind the three."""
    if not 0 <= effect <= 1 - 2 * BACKGROUND:
        raise ValueError(f"effect {effect} is outside 0 … {1 - 2 * BACKGROUND}: with the background it is a probability")
    draw = Draw(torch.tensor([number]), "evaluate").named("planted literal")
    tokens = draw.subset(VOCABULARY, 4, (), 0)[0].tolist()
    cause, target = (tokens[0], tokens[1], tokens[2]), tokens[3]
    prompt = draw.integers(VOCABULARY, (LENGTH,), 1)[0]
    others = [token for token in range(VOCABULARY) if token not in tokens]
    prompt = torch.tensor([others[token % len(others)] for token in prompt.tolist()])
    places = sorted(draw.subset(LENGTH, 5, (), 2)[0].tolist())
    for place, token in zip(places, (cause[2], *cause, cause[0]), strict=True):
        prompt[place] = token
    centres = draw.normal((VOCABULARY // GROUP, WIDTH), 3)[0].repeat_interleave(GROUP, 0)
    embeddings = centres + 0.3 * draw.normal((VOCABULARY, WIDTH), 4)[0]
    background = draw.normal((LENGTH, VOCABULARY), 5)[0] * LENGTH**-0.5
    return Literal(number, effect, prompt, cause, target, frozenset({places[0], places[4]}), embeddings, background)
