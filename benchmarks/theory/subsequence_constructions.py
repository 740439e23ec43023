"""Transformers with weights written by hand that embed subsequences; nothing is trained.

Sun et al., "Why and how LLMs hallucinate: connecting the dots with subsequence associations" (2025), Lemmas A.2 and A.3, Theorem 2.4
(A.4). A piece is a tuple of tokens; the feature of a position is the sum of the vectors of the pieces that end there. All float64.
Where the printed weights do not compute what the proof says, the printed and the corrected ones are both here.
"""

import math
from collections.abc import Callable, Iterable, Mapping

import torch
from torch import Tensor

Piece = tuple[int, ...]
Split = Callable[[Piece], tuple[Piece, Piece]]


def detector(features: Tensor, first: Tensor, second: Tensor, sharpness: float, copy: float | None = None) -> Tensor:
    """Lemma A.2: features [B, T, d] of tokens, vectors [d] of a pair → indicator [B], max over t of ReLU(<a, head 1> + <b, head 2> - 1).

    W_KQ of head 1 is sharpness · a b^T; of head 2 copy · I. Printed: copy = 1, with which head 2 averages the prefix and does not copy
    the token at t. Corrected (None): copy = sharpness.
    """
    heads = _attend(features, sharpness * features @ first, features @ second), _copy(features, copy or sharpness)
    return (heads[0] @ first + heads[1] @ second - 1).relu().amax(-1)


def halves(piece: Piece) -> tuple[Piece, Piece]:
    """The printed split: left and right half, the left no shorter."""
    middle = (len(piece) + 1) // 2
    return piece[:middle], piece[middle:]


def last(piece: Piece) -> tuple[Piece, Piece]:
    """All but the last token, and the last token."""
    return piece[:-1], piece[-1:]


def layers(wanted: Iterable[Piece], split: Split) -> list[list[Piece]]:
    """What each layer adds: the pieces of two tokens or more that `wanted` are split into, each one layer above the higher of its parts."""

    def layer(piece: Piece) -> int:
        return 0 if len(piece) == 1 else 1 + max(map(layer, split(piece)))

    pieces, waiting = set[Piece](), list(wanted)
    while waiting:
        piece = waiting.pop()
        if len(piece) > 1 and piece not in pieces:
            pieces.add(piece)
            waiting += split(piece)
    out: list[list[Piece]] = [[] for _ in range(max(map(layer, pieces), default=0))]
    for piece in sorted(pieces):
        out[layer(piece) - 1].append(piece)
    return out


def embed(
    features: Tensor, vectors: Mapping[Piece, Tensor], wanted: Iterable[Piece], sharpness: float, split: Split, printed: bool
) -> Tensor:
    """Lemma A.3 (pairs) and Theorem A.4: features [B, T, d] of tokens → those of tokens and pieces, after as many layers as `layers`.

    printed: one head looks for all left parts of a layer, W_KQ = sharpness · sum of left right^T, over the positions up to t. Otherwise
    every piece has a head of its own and attends before t only (a zero vector stands before the string), so that the parts of a piece
    do not drive out those of another one and no position serves as both parts. The other head copies, W_KQ = sharpness · I.
    vectors: of every token and piece that occurs, [d] each.
    """
    for pieces in layers(wanted, split):
        lefts, rights = (torch.stack([vectors[split(piece)[side]] for piece in pieces]) for side in (0, 1))
        lefts_read = features @ lefts.T  # [B, T, N]: the left parts that end at a position
        if printed:
            read = _attend(features, sharpness * lefts_read, features @ rights.T) @ lefts.T
        else:
            read = _each(lefts_read, features @ rights.T, sharpness)
        units = (read + _copy(features, sharpness) @ rights.T - 1).relu()
        features = features + units @ torch.stack([vectors[piece] for piece in pieces])
    return features


def _later(length: int, diagonal: int) -> Tensor:
    return torch.ones(length, length, dtype=torch.bool).triu(diagonal)


def _attend(features: Tensor, keys: Tensor, queries: Tensor) -> Tensor:
    """Causal softmax attention, values as they are; keys and queries [B, T] or [B, T, k]."""
    if keys.ndim == 2:
        keys, queries = keys[..., None], queries[..., None]
    logits = (queries @ keys.transpose(-1, -2)).masked_fill(_later(features.shape[1], 1), -math.inf)
    return logits.softmax(-1) @ features


def _copy(features: Tensor, sharpness: float) -> Tensor:
    return _attend(features, sharpness * features, features)


def _each(lefts: Tensor, rights: Tensor, sharpness: float) -> Tensor:
    """A head a piece: lefts and rights [B, T, N] → how much of the left part it reads before t, [B, T, N]."""
    keys, queries = (torch.nn.functional.pad(features.transpose(1, 2), (1, 0)) for features in (lefts, rights))  # [B, N, 1 + T]
    logits = sharpness * queries[..., 1:, None] * keys[..., None, :]
    length = lefts.shape[1]
    unseen = torch.nn.functional.pad(_later(length, 0), (1, 0))
    weights = logits.masked_fill(unseen, -math.inf).softmax(-1)
    return (weights @ keys[..., None])[..., 0].transpose(1, 2)


def latest_start(tokens: Tensor, piece: Piece) -> Tensor:
    """Corrected Theorem A.4 in 1 + ceil(log2 length) layers: tokens int64 [B, T] → int64 [B, T], the latest start (from 1; 0: none).

    That of a piece [L, R] within x_1 … x_t is that of L before the latest start of R, so that a head has one position to look up. Takes
    position encodings and a head for each part of a piece. The first layer finds the latest occurrence of each token.
    """
    starts: dict[Piece, Tensor] = {(token,): _latest(tokens, token) for token in set(piece)}
    return _start(piece, starts)[:, 1:].round().to(torch.int64)


def _start(piece: Piece, starts: dict[Piece, Tensor]) -> Tensor:
    """Starts [B, 1 + T] by looking up, at each t, the start of the left half before that of the right half."""
    if piece not in starts:
        left, right = (_start(half, starts) for half in halves(piece))
        position = torch.arange(left.shape[1], dtype=torch.float64)
        target = (right - 1).relu()
        # -(i - target)^2 without what does not depend on i: bilinear in (i, i^2) and (target, 1)
        logits = 40.0 * (2 * target[..., None] * position - position**2)
        logits = logits.masked_fill(_later(len(position), 1), -math.inf)
        starts[piece] = (logits.softmax(-1) @ left[..., None])[..., 0]
    return starts[piece]


def _latest(tokens: Tensor, token: int) -> Tensor:
    """The latest position of the token up to each, float64 [B, 1 + T]: logits grow with the position; the begin is above other tokens."""
    length = tokens.shape[1]
    position = torch.arange(length + 1, dtype=torch.float64)
    is_token = torch.nn.functional.pad((tokens == token).double(), (1, 0), value=0.5)
    logits = 40.0 * (position + 3 * length * is_token)
    logits = logits[:, None].masked_fill(_later(length + 1, 1), -math.inf)
    return (logits.softmax(-1) @ position[:, None])[..., 0]
