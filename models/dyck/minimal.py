"""A transformer for Dyck languages whose first layer is a rule: it reads each bracket's type and depth, and one attention layer learns.

Li, "Mathematical foundations of data-training-inference interaction in language modeling" (CMU-ML-25-120), Assumption 2.2.1 and section
2.2.3. With k types and depth D there are 2kD + 2 kinds of tokens, here called slots, each with a fixed vector e:

    logits = head(norm(Σ_j α_j (W_V e_j + b_V))),    α = softmax_{j ≤ t}(W_K e_j · (W_Q e_t + b_Q) / √width)

with no residual, no feed-forward and no positions. Tokens with the same slot get the same score, so attention is computed over the slots
and the numbers of tokens in them: a string of T tokens costs T · (2kD + 2), not T².
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from models.aligned import product
from models.draws import Draw
from models.linear import Linear, Norm, embed
from models.model import Attend, Blocks, Model, refuse_below, refuse_unlisted
from models.noise import Noise
from models.unfit import UnfitModel


@dataclass(frozen=True)
class Minimal(Model):
    """Options of the model with a first layer by rule.

    depth: D, the depth of the deepest bracket. width: of queries, keys and values. attention: learned | uniform, where every token read
    has the same weight and there are no queries.
    encoding: pair (2.55), one-hot over type and depth; parts (2.56), the one-hot token beside the one-hot depth; angle (2.57), the
    one-hot token beside (cos θ, sin θ) with θ = arctan(d / (D + 2 - d)). As in the authors' code, a closing bracket has the depth before
    it in pair and parts, and the depth after it in angle.
    """

    attends: ClassVar[bool] = True

    depth: int = 4
    width: int = 50
    encoding: str = "pair"
    attention: str = "learned"

    def __post_init__(self) -> None:
        refuse_below(self, depth=1, width=1)
        refuse_unlisted(self, {"encoding": tuple(_ENCODINGS), "attention": ("learned", "uniform")})

    def make(self, draw: Draw, vocabulary: int, length: int, outputs: int | None = None) -> "FirstLayerByRule":
        if vocabulary < 4 or vocabulary % 2:
            raise ValueError(f"minimal_first_layer reads an even number of tokens as the task dyck has, not {vocabulary}")
        return FirstLayerByRule(self, draw, vocabulary, length, vocabulary if outputs is None else outputs)


class FirstLayerByRule(nn.Module):
    """tokens [R, B, T] → logits [R, B, T, V]; with `needed`, blocks of positions [R, B, K] each → [R, B, sum of K, V]."""

    encodings: Tensor
    logarithms: Tensor

    def __init__(self, config: Minimal, draw: Draw, vocabulary: int, length: int, outputs: int):
        super().__init__()
        self.config, self.types = config, (vocabulary - 2) // 2
        vectors = _ENCODINGS[config.encoding](self.types, config.depth)
        features, device = vectors.shape[1], draw.seeds.device
        self.register_buffer("encodings", vectors.to(device), persistent=False)
        # a table, since the bits of a logarithm depend on what is computed beside it
        self.register_buffer("logarithms", torch.arange(length + 1, device=device).double().log(), persistent=False)
        if config.attention == "learned":
            self.query = Linear(draw, "query", features, config.width)
            self.key = Linear(draw, "key", features, config.width, bias=False)  # a bias is the same for all keys
        self.value = Linear(draw, "value", features, config.width)
        self.norm = Norm(draw, "norm", config.width)
        self.head = Linear(draw, "head", config.width, outputs)

    def forward(
        self, tokens: Tensor, needed: Blocks = None, noise: Noise | None = None, attend: Attend | None = None
    ) -> Tensor:
        length = tokens.shape[2]
        slots = self.slots(tokens)
        counts = one_hot(slots, len(self.encodings)).cumsum(2)  # [R, B, T, S]
        places = None if needed is None else torch.cat(list(needed), dim=2)
        query_slots, query_counts = slots, counts
        if places is not None and attend is None:
            query_slots = slots.gather(2, places)
            query_counts = counts.gather(2, places[..., None].expand(-1, -1, -1, counts.shape[-1]))
        weights = (self._scores(query_slots) + self._log(query_counts, length)).softmax(-1)
        if attend is not None:
            attend(0, self._token_weights(weights, slots, counts))
            if places is not None:
                weights = weights.gather(2, places[..., None].expand(-1, -1, -1, counts.shape[-1]))
        values = self.values().to(weights.dtype)
        sizes = [weights.shape[2]] if needed is None else [block.shape[2] for block in needed]
        # block by block: another K would change the bits of every weight gradient
        return torch.cat([self._logits(part, values) for part in weights.split(sizes, dim=2)], dim=2)

    def _logits(self, weights: Tensor, values: Tensor) -> Tensor:
        """weights [R, B, K, S] of slots whose values are [R, S, D] → [R, B, K, V]"""
        read = product(weights.flatten(1, 2), values)
        return self.head(self.norm(read)).view(*weights.shape[:3], self.head.weight.shape[-1])

    def slots(self, tokens: Tensor) -> Tensor:
        """The slot of each token, int64 [R, B, T]. Raises UnfitModel for strings deeper than D.

        Slot type · D + depth - 1 is an opening bracket; the closing brackets follow in the same order, then the end and the start.
        """
        types, deepest = self.types, self.config.depth
        bracket, closing = tokens < 2 * types, tokens % 2
        depth = torch.where(bracket, 1 - 2 * closing, 0).cumsum(-1)
        level = depth + closing  # of a closing bracket, the depth before it
        if not (tokens.is_cuda and torch.cuda.is_current_stream_capturing()):
            fits = (level >= 1) & (level <= deepest) | ~bracket
            if not bool(fits.all()):
                raise UnfitModel(
                    f"model.depth = {deepest} and a string that is not of brackets down to that depth: give task.depth the same value"
                )
        return torch.where(
            bracket, (closing * types + tokens // 2) * deepest + level - 1, 2 * types * deepest + tokens - 2 * types
        )

    def score_table(self) -> Tensor:
        """The score of each key for each query by their slots, [R, S, S]."""
        encodings = self._replicate_encodings()
        if self.config.attention == "uniform":
            return encodings.new_zeros(encodings.shape[0], encodings.shape[1], encodings.shape[1])
        keys = self.key(encodings).transpose(1, 2)
        return product(self.query(encodings), keys) * self.config.width**-0.5

    def values(self) -> Tensor:
        """The value vector of each slot, [R, S, D]."""
        return self.value(self._replicate_encodings())

    def _replicate_encodings(self) -> Tensor:
        """The encodings of all slots, the same for each replicate: [R, S, features]."""
        return self.encodings.to(self.head.weight.dtype).expand(self.head.weight.shape[0], -1, -1)

    def _scores(self, slots: Tensor) -> Tensor:
        """The score of every slot for queries in these slots, [R, B, K] → [R, B, K, S]."""
        if self.config.attention == "uniform":
            return self.head.weight.new_zeros(*slots.shape, len(self.encodings))
        return embed(self.score_table(), slots)

    def _log(self, counts: Tensor, length: int) -> Tensor:
        """The logarithms of counts of tokens in strings of `length`; -inf for 0."""
        table = self.logarithms  # up to the length of training strings; those of an evaluation set may be longer
        if length >= len(table):
            table = torch.arange(length + 1, device=table.device).double().log()
        return table.to(self.head.weight.dtype)[counts]

    def _token_weights(self, weights: Tensor, slots: Tensor, counts: Tensor) -> Tensor:
        """The attention of each token to each token, [R, B, 1, T, T], from the weights of slots [R, B, T, S]."""
        share = weights / counts.clamp(min=1)
        pairs = share.gather(3, slots[:, :, None].expand(-1, -1, slots.shape[2], -1))
        return pairs.tril()[:, :, None]


def _depths(types: int, deepest: int) -> tuple[Tensor, Tensor, Tensor]:
    """Token, depth before a closing bracket or after an opening one, and depth after the token, of each slot, int64 [2kD + 2]."""
    brackets = [
        (2 * kind + closing, level, level - closing)
        for closing in (0, 1)
        for kind in range(types)
        for level in range(1, deepest + 1)
    ]
    token, level, depth = zip(*brackets, (2 * types, 0, 0), (2 * types + 1, 0, 0), strict=True)
    return torch.tensor(token), torch.tensor(level), torch.tensor(depth)


def _pair(types: int, deepest: int) -> Tensor:
    return torch.eye(2 * types * deepest + 2, dtype=torch.float64)


def _parts(types: int, deepest: int) -> Tensor:
    token, level, _ = _depths(types, deepest)
    return torch.cat([one_hot(token, 2 * types + 2), one_hot(level, deepest + 1)], dim=-1).double()


def _angle(types: int, deepest: int) -> Tensor:
    token, _, depth = _depths(types, deepest)
    angle = torch.atan(depth.double() / (deepest + 2 - depth))
    return torch.cat([one_hot(token, 2 * types + 2).double(), angle.cos()[:, None], angle.sin()[:, None]], dim=-1)


_ENCODINGS: dict[str, Callable[[int, int], Tensor]] = {"pair": _pair, "parts": _parts, "angle": _angle}
