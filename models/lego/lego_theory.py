"""The model that Huang et al. 2025 analyse, "Transformers provably learn chain-of-thought reasoning with length generalization", section 3.

One layer, one head, no residual, norm, positions, value or output map. Clauses are one-hot in each of five slots, the blank a zero vector:

    Attn(j → k) = softmax_{k ≤ j} ( Z_j Q Z_k ),  X_j = Σ_k Attn(j → k) Z_k,  F[i, v] = min( Σ_r sReLU( W[i, v, r] X + b ), clip )

and of Q only the blocks (4, 3) and (4, 4) differ from zero (assumption 3.5): the answered variable of the query against the input
variable of a predicate, and against the answered variable of an answer.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from models.aligned import product
from models.draws import Draw
from models.lego.clauses import SLOTS, refuse_no_clauses, refuse_no_token
from models.lego.lego_relu import smoothed_relu
from models.linear import parameter
from models.model import Attend, Blocks, Model, refuse_below
from models.noise import Noise
from models.plain_attention import at_positions, attention

INPUT, VARIABLE = 2, 3  # slots 3 and 4 of a clause, counted from 0


@dataclass(frozen=True)
class LegoTheory(Model):
    """Options of the analysed model.

    neurons: m, for each slot and token. power, knee, leak, floor: of the smoothed ReLU (`lego_relu.py`).
    clip: the largest logit as a multiple of log d (assumption 3.4), with d the vocabulary. learns: both | feed_forward | attention, the
    part that training changes (algorithm 1: the feed-forward first, then attention).
    """

    attends: ClassVar[bool] = True
    slots: ClassVar[int] = SLOTS
    heads: ClassVar[int] = 1

    neurons: int = 8
    power: int = 4
    knee: float = 0.5
    leak: float = 0.0
    floor: float = 1.0
    clip: float = 10.0
    learns: str = "both"

    def __post_init__(self) -> None:
        refuse_below(self, neurons=1)
        if self.power < 2 or self.power % 2:
            raise ValueError(f"model.power = {self.power} must be an even number of at least 2")
        for name in ("knee", "floor", "clip"):
            if not getattr(self, name) > 0:
                raise ValueError(f"model.{name} = {getattr(self, name)} must be above 0")
        if not 0 <= self.leak < self.floor:
            raise ValueError(f"model.leak = {self.leak} must be 0 or more and below model.floor = {self.floor}")
        if self.learns not in ("both", "feed_forward", "attention"):
            raise ValueError(f"model.learns = {self.learns!r} must be both, feed_forward or attention")

    def make(self, draw: Draw, vocabulary: int, length: int, outputs: int | None = None) -> "Theory":
        """Raises ValueError for outputs other than the vocabulary; length is not used, as there are no positions."""
        refuse_no_token(vocabulary)
        if outputs not in (None, vocabulary):
            raise ValueError(f"lego_theory answers with its {vocabulary} tokens: {outputs} outputs are not possible")
        return Theory(self, draw, vocabulary)


class Theory(nn.Module):
    """tokens [R, B, T, 5] → logits [R, B, T, 5, V]; with `needed`, blocks of clauses [R, B, K] each → [R, B, sum of K, 5, V].

    to_input, to_answered: the blocks (4, 3) and (4, 4) of Q, [R, V, V], zero at first. feed_forward: W as [R, 5·V (slot and token read),
    5·V·m (slot and token answered, neuron)], N(0, 1/V) at first. The bias V^(-1/2) log V is fixed.
    """

    def __init__(self, config: LegoTheory, draw: Draw, vocabulary: int):
        super().__init__()
        self.config, self.vocabulary = config, vocabulary
        scale = vocabulary**-0.5
        self.bias = scale * math.log(vocabulary)
        self.clip = config.clip * math.log(vocabulary)
        self.to_input = parameter(draw, "to_input", (vocabulary, vocabulary), "constant", 0.0)
        self.to_answered = parameter(draw, "to_answered", (vocabulary, vocabulary), "constant", 0.0)
        wide = SLOTS * vocabulary
        self.feed_forward = parameter(draw, "feed_forward", (wide, wide * config.neurons), "normal", scale)

    def forward(
        self, tokens: Tensor, needed: Blocks = None, noise: Noise | None = None, attend: Attend | None = None
    ) -> Tensor:
        refuse_no_clauses(tokens)
        batch = tokens.shape[1]
        clauses = one_hot(tokens, self.vocabulary).to(self.feed_forward.dtype)
        clauses[..., 0] = 0  # the blank
        clauses = clauses.flatten(1, 2)  # [R, B·T, 5, V]
        whole, keys = clauses.flatten(2), clauses[:, :, [INPUT, VARIABLE]].flatten(2)
        asked = clauses[:, :, VARIABLE]
        blocks = at_positions(partial(self._attend, keys, whole, batch), asked, needed, attend)
        return torch.cat([self._logits(block, batch) for block in blocks], dim=2)

    def _attend(
        self, keys: Tensor, whole: Tensor, batch: int, asked: Tensor, positions: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Attend from queries with answered variables `asked` [R, B·K, V]: the clauses read [R, B·K, 5·V], and weights [R, B, 1, K, T]."""
        blocks = torch.cat([self.to_input, self.to_answered], dim=-1)
        query = product(asked, blocks.detach() if self.config.learns == "feed_forward" else blocks)
        read, weights = attention(query, keys, whole, batch, 1, positions, 1.0)
        return read[:, :, 0].flatten(1, 2), weights

    def _logits(self, read: Tensor, batch: int) -> Tensor:
        """[R, B·K, 5·V] → [R, B, K, 5, V]"""
        config = self.config
        weight = self.feed_forward.detach() if config.learns == "attention" else self.feed_forward
        active = smoothed_relu(product(read, weight) + self.bias, config.power, config.knee, config.leak, config.floor)
        logits = active.view(len(read), batch, -1, SLOTS, self.vocabulary, config.neurons).sum(-1)
        return logits.clamp(max=self.clip)
