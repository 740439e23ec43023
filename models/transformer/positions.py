"""The position encodings of a transformer. A new one is one function and one line of `ENCODINGS`.

An index i counts from 0. In training the shift of its replicate is added (thesis 3.4.5.2.4: one integer per batch, before the encoding).
All but the learned table are defined for every index, so a model can be evaluated on strings longer than those it is trained on.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


def sinusoidal(index: Tensor, width: int, length: int) -> Tensor:
    """index float32 [T] → [T, D]: D/2 sines, then D/2 cosines of i · 10000^(-2k/D), times D^-1/2.

    Vaswani et al. 2017 (3.5) in the layout and at the initial scale of x-transformers' ScaledSinusoidalEmbedding; nothing is trained.
    """
    angle = index[..., None] * _frequencies(width, index.device)
    return torch.cat([angle.sin(), angle.cos()], dim=-1) * width**-0.5


def linear(index: Tensor, width: int, length: int) -> Tensor:
    """index float32 [T] → [T, D]: i/T_max in the last coordinate and 0 in the others; T_max is the length the model is made for.

    Liu's thesis has one scalar feature: e(i) = i/T_max (3.6.3.1), the coordinate (t/C) e6 of Proposition 3 and the scalar p_i = i/C of
    Proposition 5. Added to every coordinate instead, it would be removed by the layer norms.
    """
    return torch.nn.functional.pad(index[..., None] / length, (width - 1, 0))


def rotary(index: Tensor, head_dim: int) -> Tensor:
    """index float32 [T] → angles [T, K/2], i · 10000^(-2k/K), of the coordinates 2k and 2k + 1 of every query and key.

    Su et al. 2021, over the whole head; x-transformers rotates half of it by default, and all with rotary_emb_dim = head dimension.
    """
    return index[..., None] * _frequencies(head_dim, index.device)


def alibi(distance: Tensor, heads: int) -> Tensor:
    """distance |i - j|, [..., 1, Q, T] or [Q, T] → [..., H, Q, T], -slope · distance.

    Press et al. 2022 with their fixed slopes: 2^(-8h/H), h = 1 … H, where H is a power of 2; else those of the power of 2 below, then
    every other one of the power above.
    """
    below = 2 ** math.floor(math.log2(heads))
    # made on the device: a copy to it can't be part of a captured graph
    exponents = torch.arange(1, below + 1, device=distance.device) * (8 / below)
    if heads > below:
        between = torch.arange(1, 2 * (heads - below), 2, device=distance.device) * (4 / below)
        exponents = torch.cat([exponents, between])
    return -torch.exp2(-exponents)[:, None, None] * distance


@dataclass(frozen=True)
class Encoding:
    """The places where an encoding enters the model; it may use any of the four.

    table: trained vectors [R, T, D] are added to the token vectors.
    vectors(index [T], width, length) → [T, D]: fixed ones are.
    angles(index [T], head_dim) → [T, K/2]: queries and keys are rotated.
    bias(distance [..., Q, T], heads) → [..., H, Q, T]: added to the scores.
    even: the size that must be even, width or head_dim.
    """

    table: bool = False
    vectors: Callable[[Tensor, int, int], Tensor] | None = None
    angles: Callable[[Tensor, int], Tensor] | None = None
    bias: Callable[[Tensor, int], Tensor] | None = None
    even: str | None = None

    @property
    def absolute(self) -> bool:
        """Whether it takes the index of a token: without one, a shift of all indices changes nothing."""
        return self.table or self.vectors is not None or self.angles is not None


ENCODINGS: dict[str, Encoding] = {
    "learned": Encoding(table=True),
    "none": Encoding(),
    "sinusoidal": Encoding(vectors=sinusoidal, even="width"),
    "linear": Encoding(vectors=linear),
    "rotary": Encoding(angles=rotary, even="head_dim"),
    "alibi": Encoding(bias=alibi),
}


def waves(angles: Tensor) -> Tensor:
    """[T, K/2] → cosines and sines, [T, 2, K/2]."""
    return torch.stack([angles.cos(), angles.sin()], dim=1)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """x [R, B, T, H, K], cosines and sines [1 or R, 1 or B, T, 1, K/2] → x with each pair of neighbouring coordinates turned."""
    first, second = x.unflatten(-1, (-1, 2)).unbind(-1)
    turned = torch.stack([first * cos - second * sin, second * cos + first * sin], dim=-1)
    return turned.flatten(-2).to(x.dtype)


def _frequencies(size: int, device: torch.device) -> Tensor:
    return 10000 ** (-torch.arange(size // 2, device=device, dtype=torch.float32) / (size // 2))
