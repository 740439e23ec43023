"""The one-layer transformer without positions that reads and writes whole clauses (Huang et al. 2025, section 6).

One clause of five tokens is one position: its vector is the five token embeddings side by side, and five heads give the logits of the
next clause's five slots in one pass. Token 0 is the blank, whose embedding is the zero vector and is not trained.

The paper leaves widths and norms open. By default there are a residual and pre-norms. Studies of attention use `residual: false, norm:
none`, since with a residual the query's own clause reaches the feed-forward whether or not it is attended to.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, layer_norm, relu

from models.aligned import one_layout, product
from models.draws import Draw
from models.lego.lego_relu import smoothed_relu
from models.linear import Linear, Norm, embed, parameter
from models.model import Attend, Blocks, Model, refuse_below, refuse_unlisted
from models.noise import Noise
from models.plain_attention import at_positions, attention

SLOTS = 5

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": relu, "gelu": gelu, "smoothed_relu": smoothed_relu}


@dataclass(frozen=True)
class Clauses(Model):
    """Options of the one-layer transformer on clauses.

    width: of one slot's embedding, so that a clause has 5·width, which heads must divide. feed_forward: its inner width. residual: around
    attention and feed-forward. norm: pre | none (pre: before attention, feed-forward and output). activation:
    relu | gelu | smoothed_relu (`lego_relu.py`).
    """

    attends: ClassVar[bool] = True
    slots: ClassVar[int] = SLOTS

    width: int = 32
    heads: int = 2
    feed_forward: int = 640
    residual: bool = True
    norm: str = "pre"
    activation: str = "relu"

    def __post_init__(self) -> None:
        refuse_below(self, width=1, heads=1, feed_forward=1)
        if SLOTS * self.width % self.heads:
            raise ValueError(
                f"model.heads = {self.heads} does not divide a clause's {SLOTS} · model.width = {SLOTS * self.width}: change one"
            )
        refuse_unlisted(self, {"norm": ("pre", "none"), "activation": _ACTIVATIONS})

    def make(self, draw: Draw, vocabulary: int, length: int, outputs: int | None = None) -> "ClauseTransformer":
        """outputs: number of tokens that a slot can hold, default `vocabulary`; length is not used, as there are no positions."""
        refuse_no_token(vocabulary)
        if outputs is not None and outputs < 1:
            raise ValueError(f"the clauses model needs at least 1 output a slot, not {outputs}")
        return ClauseTransformer(self, draw, vocabulary, vocabulary if outputs is None else outputs)


class ClauseTransformer(nn.Module):
    """tokens [R, B, T, 5] → logits [R, B, T, 5, V]; with `needed`, blocks of clauses [R, B, K] each → [R, B, sum of K, 5, V].

    Attention is causal. Predicates come first, so every answer sees all of them, and the answers up to itself.
    """

    def __init__(self, config: Clauses, draw: Draw, vocabulary: int, outputs: int):
        super().__init__()
        self.config = config
        width = SLOTS * config.width
        self.tokens = parameter(draw, "tokens", (vocabulary - 1, config.width), "normal", 1.0)  # of all but the blank
        self.query = Linear(draw, "query", width, width)
        self.key = Linear(draw, "key", width, width)
        self.value = Linear(draw, "value", width, width)
        self.out = Linear(draw, "out", width, width)
        self.up = Linear(draw, "up", width, config.feed_forward)
        self.down = Linear(draw, "down", config.feed_forward, width)
        self.head = Linear(draw, "head", width, SLOTS * outputs)
        pre = config.norm == "pre"
        self.norm1 = Norm(draw, "norm1", width) if pre else None
        self.norm2 = Norm(draw, "norm2", width) if pre else None
        self.norm = Norm(draw, "norm", width) if pre else None

    def forward(
        self, tokens: Tensor, needed: Blocks = None, noise: Noise | None = None, attend: Attend | None = None
    ) -> Tensor:
        refuse_no_clauses(tokens)
        batch = tokens.shape[1]
        table = torch.cat([self.tokens.new_zeros(self.tokens.shape[0], 1, self.config.width), self.tokens], dim=1)
        x = embed(table, tokens).flatten(3).flatten(1, 2)  # [R, B·T, 5·width]
        key, value = _after(self.norm1, self.key, x), _after(self.norm1, self.value, x)
        blocks = at_positions(partial(self._answer, key, value, batch), x, needed, attend)
        return torch.cat([self._logits(block, batch) for block in blocks], dim=2)

    def _answer(self, key: Tensor, value: Tensor, batch: int, x: Tensor, positions: Tensor | None) -> tuple[Tensor, Tensor]:
        """The layer's outputs for the queries x [R, B·K, D] at `positions`, and the attention [R, B, H, K, T]."""
        config = self.config
        query = _after(self.norm1, self.query, x)
        scale = (query.shape[-1] // config.heads) ** -0.5
        read, weights = attention(query, key, value, batch, config.heads, positions, scale)
        joined = read.transpose(2, 3).reshape(x.shape)  # [R, B, H, K, E] → [R, B·K, D]
        mixed = product(joined, self.out.weight, self.out.bias)
        x = x + mixed if config.residual else mixed
        hidden = _ACTIVATIONS[config.activation](one_layout(_after(self.norm2, self.up, x)))
        changed = product(hidden, self.down.weight, self.down.bias)
        return (x + changed if config.residual else changed), weights

    def _logits(self, x: Tensor, batch: int) -> Tensor:
        """[R, B·K, D] → [R, B, K, 5, V]"""
        logits = _after(self.norm, self.head, x)
        return logits.reshape(x.shape[0], batch, x.shape[1] // batch, SLOTS, -1)


def refuse_no_clauses(tokens: Tensor) -> None:
    if tokens.dim() != 4 or tokens.shape[-1] != SLOTS:
        raise ValueError(f"a model of clauses reads [R, B, T, {SLOTS}] tokens, {SLOTS} a clause, not {list(tokens.shape)}")


def refuse_no_token(vocabulary: int) -> None:
    if vocabulary < 2:
        raise ValueError(f"a model of clauses needs the blank and at least one other token, not a vocabulary of {vocabulary}")


def _after(norm: Norm | None, linear: Linear, x: Tensor) -> Tensor:
    """linear(norm(x)), the norm's gain and bias folded into the map."""
    if norm is None:
        return product(x, linear.weight, linear.bias)
    weight, bias = norm.fold(linear.weight, linear.bias)
    return product(layer_norm(x, x.shape[-1:]), weight, bias)
