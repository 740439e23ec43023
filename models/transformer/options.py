"""The options of a transformer, and the checks that their values fit together."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from models.model import Model, refuse_below, refuse_unlisted
from models.transformer.feedforward import ACTIVATIONS
from models.transformer.positions import ENCODINGS

_CHOICES: dict[str, Collection[str]] = {
    "positions": ENCODINGS,
    "activation": ACTIVATIONS,
    "norm": ("pre", "none", "post", "branch", "feed_forward"),
    "join": ("concatenate", "average"),
    "head": ("linear", "transform"),
    "initial": ("library", "gpt2"),
}


@dataclass(frozen=True)
class Options(Model):
    """Options of a transformer: layers L, width D, heads H, head_dim K (None: D/H).

    positions: learned | none | sinusoidal | linear | rotary | alibi (`positions.py`). shift: in training, one integer per replicate and
    step, uniform in 0 … shift, is added to all position indices; a learned table has as many rows more.
    activation: gelu | relu | glu | geglu | reglu | swiglu (`feedforward.py`). feed_forward: its inner width (None: 4·D; 0: no
    feed-forward); gated forms keep it and so have half as many weights again.
    norm: pre | none | post | branch | feed_forward (`block.py`). final_norm: a norm before the head, with pre and branch alone.
    causal: a token sees itself and those before it; false is an encoder. residual: whether the branches are added to their input.
    join: how heads become one vector, concatenate, or average (then `out` is [K, D]).
    bias: of query, key, value and out. embedding_norm: a norm after tokens + positions. tied: the head's weight is the token table.
    head: linear | transform (dense, activation, norm, then linear, as in BERT). head_bias: of its last map.
    initial: library (x-transformers and torch.nn.Linear) | gpt2 (N(0, 0.02²), what adds to the residual stream N(0, 0.02²/2L), biases 0,
    learned positions not scaled).
    Dropout, in [0, 1), in training alone: embedding (after tokens + positions and their norm), attention (of the weights), residual
    (of each branch), feed_forward (after the activation).
    """

    vectors: ClassVar[tuple[str, ...]] = ("embedding_dropout", "attention_dropout", "residual_dropout", "feed_forward_dropout")
    attends: ClassVar[bool] = True
    hides: ClassVar[bool] = True  # keys: see `Decoder.forward`

    layers: int = 6
    width: int = 512
    heads: int = 8
    head_dim: int | None = None
    positions: str = "learned"
    activation: str = "gelu"
    norm: str = "pre"
    causal: bool = True
    shift: int = 0
    feed_forward: int | None = None
    final_norm: bool = True
    residual: bool = True
    join: str = "concatenate"
    bias: bool = False
    embedding_norm: bool = False
    tied: bool = False
    head: str = "linear"
    head_bias: bool = True
    initial: str = "library"
    embedding_dropout: float = 0.0
    attention_dropout: float = 0.0
    residual_dropout: float = 0.0
    feed_forward_dropout: float = 0.0

    def __post_init__(self) -> None:
        refuse_below(self, layers=1, width=1, heads=1)
        if self.head_dim is None and self.width % self.heads:
            raise ValueError(
                f"model.heads = {self.heads} does not divide model.width = {self.width}: change one or give model.head_dim"
            )
        if self.head_dim is not None and self.head_dim < 1:
            raise ValueError(f"model.head_dim = {self.head_dim} must be at least 1")
        refuse_unlisted(self, _CHOICES)
        self._refuse_positions()
        self._refuse_feed_forward()
        for name in self.vectors:
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"model.{name} = {getattr(self, name)} must be at least 0 and below 1")

    def _refuse_positions(self) -> None:
        encoding = ENCODINGS[self.positions]
        sizes = {"width": self.width, "head_dim": self.head_dim or self.width // self.heads}
        if encoding.even is not None and sizes[encoding.even] % 2:
            raise ValueError(
                f"model.positions = {self.positions!r} needs an even model.{encoding.even}, and it is {sizes[encoding.even]}"
            )
        if self.shift < 0:
            raise ValueError(f"model.shift = {self.shift} must be at least 0")
        if self.shift and not encoding.absolute:
            fitting = ", ".join(name for name, other in ENCODINGS.items() if other.absolute)
            raise ValueError(
                f"model.shift = {self.shift} changes nothing with model.positions = {self.positions!r}: write 0, or positions {fitting}"
            )

    def _refuse_feed_forward(self) -> None:
        if self.feed_forward is not None and self.feed_forward < 0:
            raise ValueError(f"model.feed_forward = {self.feed_forward} must be at least 1, or 0 for none")
        if self.feed_forward == 0 and self.feed_forward_dropout:
            raise ValueError(
                f"model.feed_forward_dropout = {self.feed_forward_dropout} has no place in a model with model.feed_forward = 0: write 0"
            )
        if self.head == "transform" and ACTIVATIONS[self.activation].gated:
            plain = " or ".join(name for name, other in ACTIVATIONS.items() if not other.gated)
            raise ValueError(
                f"model.head = 'transform' has the model's activation, which can't be the gated {self.activation!r}: write {plain}"
            )

    @property
    def std(self) -> float | None:
        """Standard deviation of the initial weights, None where each has its own."""
        return 0.02 if self.initial == "gpt2" else None
