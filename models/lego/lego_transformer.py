"""The ordinary transformer on clauses: any options of `transformer.py`, with five tokens a position.

A clause's vector is its five embeddings side by side (the blank's is zero), and the head gives the five slots of the next clause.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from models.draws import Draw
from models.lego.clauses import SLOTS, refuse_no_clauses, refuse_no_token
from models.linear import embed, parameter
from models.transformer.transformer import Decoder, Transformer


@dataclass(frozen=True)
class LegoTransformer(Transformer):
    """Options as of `Transformer`; the width is that of five slots, width/5 each.

    There are no positions by default, and never a learned table, which would have no rows for clauses beyond those of the training.
    """

    slots: ClassVar[int] = SLOTS

    layers: int = 1
    width: int = 160
    heads: int = 2
    positions: str = "none"
    activation: str = "relu"
    bias: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width % SLOTS:
            raise ValueError(f"model.width = {self.width} must be a multiple of {SLOTS}, the slots of a clause")
        if self.positions == "learned":
            raise ValueError(
                "model.positions = 'learned' has no rows for lengths beyond the training's: write none, or another"
            )
        if self.tied:
            raise ValueError("model.tied = true needs one token per position, and a clause has five: write false")

    def make(self, draw: Draw, vocabulary: int, length: int, outputs: int | None = None) -> "ClauseDecoder":
        """A pack for strings of `length` clauses; outputs: tokens that a slot can hold (None: vocabulary)."""
        refuse_no_token(vocabulary)
        return ClauseDecoder(self, draw, vocabulary, length, vocabulary if outputs is None else outputs)


class ClauseDecoder(Decoder):
    """tokens [R, B, T, 5] → logits [R, B, T, 5, V], otherwise as `Decoder`."""

    def __init__(self, config: LegoTransformer, draw: Draw, vocabulary: int, length: int, outputs: int):
        super().__init__(config, draw, vocabulary, length, SLOTS * outputs)
        std = 1.0 if config.std is None else config.std
        self.tokens = parameter(draw, "tokens", (vocabulary - 1, config.width // SLOTS), "normal", std)  # of all but the blank

    def _vectors(self, tokens: Tensor) -> Tensor:
        """[R, B, T, 5] → [R, B, T, D]"""
        refuse_no_clauses(tokens)
        blank = self.tokens.new_zeros(len(self.tokens), 1, self.tokens.shape[-1])
        return embed(torch.cat([blank, self.tokens], dim=1), tokens).flatten(3)

    def _logits(self, x: Tensor, batch: int) -> Tensor:
        """[R, B·K, D] → [R, B, K, 5, V]"""
        return super()._logits(x, batch).unflatten(-1, (SLOTS, -1))
