"""The feed-forward n-gram model of Bengio et al. 2003, "A neural probabilistic language model" (JMLR 3): it sees the last n tokens alone.

Each of these tokens is looked up in a table; the n vectors side by side go through one hidden tanh layer. There are no connections around
that layer (the paper's W = 0).
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from models.draws import Draw
from models.linear import Linear, embed, parameter
from models.model import Attend, Blocks, Model, refuse_below
from models.noise import Noise


@dataclass(frozen=True)
class NgramMLP(Model):
    """Options. context: n, the last tokens that an answer depends on, the one at its own position among them. width: of a token's vector.
    hidden: units of the hidden layer."""

    context: int = 5
    width: int = 32
    hidden: int = 128

    def __post_init__(self) -> None:
        refuse_below(self, context=1, width=1, hidden=1)

    def make(self, draw: Draw, vocabulary: int, length: int, outputs: int | None = None) -> "NgramPerceptron":
        return NgramPerceptron(self, draw, vocabulary, vocabulary if outputs is None else outputs)


class NgramPerceptron(nn.Module):
    """tokens [R, B, T] → logits [R, B, T, V]; with `needed`, blocks of positions [R, B, K] each → [R, B, sum of K, V].

    T may be any length.
    """

    def __init__(self, config: NgramMLP, draw: Draw, vocabulary: int, outputs: int):
        super().__init__()
        self.config = config
        self.before = vocabulary  # the row of the table for places before the string
        self.table = parameter(draw, "table", (vocabulary + 1, config.width), "normal", 1.0)
        self.hidden = Linear(draw, "hidden", config.context * config.width, config.hidden)
        self.head = Linear(draw, "head", config.hidden, outputs)

    def forward(
        self, tokens: Tensor, needed: Blocks = None, noise: Noise | None = None, attend: Attend | None = None
    ) -> Tensor:
        if attend is not None:
            raise ValueError("the ngram_mlp has no attention to hand out: leave out the penalty or probe that asks for it")
        n = self.config.context
        padded = nn.functional.pad(tokens, (n - 1, 0), value=self.before)
        seen = padded.unfold(2, n, 1)  # [R, B, T, n], the last n tokens at each position
        if needed is None:
            return self._logits(seen)
        # block by block: another K would change the bits of every weight gradient
        return torch.cat([self._logits(seen.gather(2, block[..., None].expand(*block.shape, n))) for block in needed], dim=2)

    def _logits(self, seen: Tensor) -> Tensor:
        """[R, B, K, n] → [R, B, K, V]"""
        x = embed(self.table, seen).flatten(3).flatten(1, 2)  # [R, B·K, n · width]
        logits: Tensor = self.head(torch.tanh(self.hidden(x)))
        return logits.view(*seen.shape[:-1], -1)
