"""The simplified two-layer transformer of Varre et al. 2025, "Learning in-context n-grams with transformers".

It is the model that they analyse; its general form and the residual models are in `models.ngrams.attention_only`.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from models.aligned import product
from models.draws import Draw
from models.linear import parameter
from models.model import Attend, Blocks, Model, refuse_below, refuse_unlisted
from models.noise import Noise
from models.plain_attention import at_positions, attention
from models.unfit import UnfitModel

FLOOR = 1e-8  # added to a probability before its logarithm, as in the paper's loss


@dataclass(frozen=True)
class SimpleDisentangled(Model):
    """Options of the analysed model.

    m: heads of the first layer (n - 1 for n-grams). qk_width: rows of Q and K, by default (m + 1)·vocabulary, which is full rank.
    merged_qk: one matrix for the product of Q and K, zero at the start. v_init: normal (variance 1/vocabulary) | identity.
    """

    attends: ClassVar[bool] = True

    m: int = 2
    qk_width: int | None = None
    merged_qk: bool = False
    v_init: str = "normal"

    def __post_init__(self) -> None:
        refuse_below(self, m=1)
        refuse_width(self.qk_width)
        if self.merged_qk and self.qk_width is not None:
            raise ValueError(f"model.qk_width = {self.qk_width} has no meaning with model.merged_qk = true: leave one out")
        refuse_unlisted(self, {"v_init": ("normal", "identity")})

    def make(self, draw: Draw, vocabulary: int, length: int, outputs: int | None = None) -> "Simple":
        """Raises ValueError for outputs other than the vocabulary: the model averages the tokens it reads."""
        if outputs not in (None, vocabulary):
            raise ValueError(
                f"simple_disentangled answers with one of its {vocabulary} tokens: {outputs} outputs are not possible"
            )
        return Simple(self, draw, vocabulary, length)


class Simple(nn.Module):
    """tokens [R, B, T] → logits [R, B, T, V]; with `needed`, blocks of positions [R, B, K] each → [R, B, sum of K, V].

        r1 = [r0, σ(A1) r0 V1, …, σ(Am) r0 Vm],  p(t) = Σ_j softmax_{j ≤ t}(r1[t] Q K r1[j]) r0[j],  logits = log(p + 1e-8)

    with r0 one-hot. The paper reads the last position alone. The softmax of these logits is p to within V·1e-8.
    """

    def __init__(self, config: SimpleDisentangled, draw: Draw, vocabulary: int, length: int):
        super().__init__()
        self.config, self.vocabulary, self.length = config, vocabulary, length
        width = (config.m + 1) * vocabulary
        self.scores = parameter(draw, "scores", (config.m, length, length), "constant", 0.0)
        self.value = parameter(draw, "value", (config.m, vocabulary, vocabulary), "normal", vocabulary**-0.5)  # [R, m, in, out]
        if config.v_init == "identity":
            self.value.data.copy_(torch.eye(vocabulary, device=self.value.device))
        if config.merged_qk:
            self.merged = parameter(draw, "merged", (width, width), "constant", 0.0)
        else:
            inner = config.qk_width or width
            self.query = parameter(draw, "query", (width, inner), "normal", width**-0.5)
            self.key = parameter(draw, "key", (width, inner), "normal", width**-0.5)

    def forward(
        self, tokens: Tensor, needed: Blocks = None, noise: Noise | None = None, attend: Attend | None = None
    ) -> Tensor:
        refuse_length(tokens, self.length)
        _, batch, length = tokens.shape
        first = self._first(length)
        if attend is not None:
            attend(0, first[:, None].expand(-1, batch, -1, -1, -1))
        if needed is not None and attend is None and sum(block.shape[2] for block in needed) < self.vocabulary:
            return torch.log(torch.cat([self._few(tokens, first, block) for block in needed], dim=2) + FLOOR)
        plain = one_hot(tokens, self.vocabulary).to(self.value.dtype)  # [R, B, T, V]
        rich = self._copied(plain, first)
        plain = plain.flatten(1, 2)
        key = rich if self.config.merged_qk else product(rich, self.key)

        def layer(queries: Tensor, positions: Tensor | None) -> tuple[Tensor, Tensor]:
            read, weights = attention(self._query(queries), key, plain, batch, 1, positions, 1.0)
            return read[:, :, 0].flatten(1, 2), weights

        blocks = [block.unflatten(1, (batch, -1)) for block in at_positions(layer, rich, needed, attend, 1)]
        return torch.log(torch.cat(blocks, dim=2) + FLOOR)

    def _first(self, length: int) -> Tensor:
        """The first layer's attention, the same for every string: [R, m, T, T]."""
        index = torch.arange(length, device=self.scores.device)
        hidden = index > index[:, None]
        return self.scores[:, :, :length, :length].masked_fill(hidden, -torch.inf).softmax(-1)

    def _copied(self, plain: Tensor, first: Tensor) -> Tensor:
        """r1, [R, B·T, (m + 1)·V], from r0 [R, B, T, V]."""
        replicates, batch, length, vocabulary = plain.shape
        heads = self.config.m
        strings = plain.transpose(1, 2).reshape(replicates, length, -1)  # [R, T, B·V]
        read = product(first.reshape(replicates, -1, length), strings).reshape(replicates, heads, length, batch, vocabulary)
        flat = read.transpose(2, 3).reshape(replicates * heads, batch * length, vocabulary)
        moved = product(flat, self.value.reshape(-1, vocabulary, vocabulary)).reshape(replicates, heads, -1, vocabulary)
        return torch.cat([plain.flatten(1, 2), moved.transpose(1, 2).flatten(2)], dim=-1)

    def _few(self, tokens: Tensor, first: Tensor, block: Tensor) -> Tensor:
        """p at the positions `block` [R, B, K] alone, [R, B, K, V].

        Each query is pulled back through Q K and the first layer's values, so that a key costs one number for each head, not a vector.
        """
        replicates, batch, count = block.shape
        heads, length, vocabulary = self.config.m, tokens.shape[2], self.vocabulary
        at = block.flatten(1)  # [R, N]
        strings = tokens[:, :, None].expand(-1, -1, count, -1).reshape(replicates, -1, length)  # [R, N, T]
        per_head = strings[:, None].expand(-1, heads, -1, -1)
        rows = first.gather(2, at[:, None, :, None].expand(-1, heads, -1, length))  # [R, m, N, T]
        read = rows.new_zeros(replicates, heads, at.shape[1], vocabulary).scatter_add(-1, per_head, rows)
        value = self.value.flatten(0, 1)
        moved = product(read.flatten(0, 1), value).view(replicates, heads, -1, vocabulary)
        own = one_hot(tokens.gather(-1, block), vocabulary).to(rows.dtype).flatten(1, 2)
        rich = torch.cat([own, moved.transpose(1, 2).flatten(2)], dim=-1)
        folded = self._query(rich)
        if not self.config.merged_qk:
            folded = product(folded, self.key.transpose(1, 2))
        own_part, others = folded[..., :vocabulary], folded[..., vocabulary:].unflatten(-1, (heads, vocabulary)).transpose(1, 2)
        wanted = product(others.flatten(0, 1), value.transpose(1, 2)).view(replicates, heads, -1, vocabulary)
        # what each token of the string is worth to the query, by head [R, N, m·T], then spread by that head's attention
        worth = wanted.gather(-1, per_head).transpose(1, 2).flatten(2)
        scores = own_part.gather(-1, strings) + product(worth, first.transpose(2, 3).flatten(1, 2))
        later = torch.arange(length, device=scores.device) > at[..., None]
        weights = (scores + later.to(scores.dtype) * torch.finfo(scores.dtype).min).softmax(-1)  # four times as fast as a fill
        law = weights.new_zeros(replicates, at.shape[1], vocabulary).scatter_add(-1, strings, weights)
        return law.view(replicates, batch, count, vocabulary)

    def _query(self, rich: Tensor) -> Tensor:
        return product(rich, self.merged if self.config.merged_qk else self.query)


def refuse_width(width: int | None) -> None:
    if width is not None and width < 1:
        raise ValueError(f"model.qk_width = {width} must be at least 1, or left out for the full width")


def refuse_length(tokens: Tensor, length: int) -> None:
    if tokens.shape[2] > length:
        raise UnfitModel(f"strings of {tokens.shape[2]} tokens are longer than the {length} positions of this model")
