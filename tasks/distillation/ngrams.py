"""How much a prediction rests on its neighbours: L_robust and L_close of n-grams, as functions of logits.

Panigrahi et al. 2025, Definition 25 of the thesis and equations 4.100-4.101 (M_robust and M_close in the published paper). A measure
compares a model's prediction of token i under two sets of hidden positions; here are the sets, the distance and its median.

    robust   only i is hidden        against   the whole window of i is hidden      high: the local window is used
    close    only i is hidden        against   all but the window is hidden, and i  high: more than the window is used

A window that reaches over an end of the string is cut there: the printed indices mix counting from 0 and from 1.
"""

import torch
from torch import Tensor


def window(place: int, n: int, length: int) -> tuple[int, int]:
    """First and last position of the n-gram around `place`, from 0: ⌈(n-1)/2⌉ before it and ⌊(n-1)/2⌋ behind it, cut at the ends.

    n = 2 is {i - 1, i}, n = 4 is i - 2 … i + 1. Raises ValueError for n below 2 or a place outside the string.
    """
    _refuse(place, n, length)
    return max(place - n // 2, 0), min(place + (n - 1) // 2, length - 1)


def hidden(measure: str, place: int, n: int, length: int, begin: int = 0) -> tuple[Tensor, Tensor]:
    """The positions hidden in the two passes of masked prediction that `measure` (robust | close) compares, bool [length] each.

    begin: positions at the front that are no part of the string (1 for a start token); they are never hidden, nor counted.
    """
    first, last = window(place - begin, n, length - begin)
    index = torch.arange(length) - begin
    around = (index >= first) & (index <= last)
    alone = index == place - begin
    if measure == "robust":
        return alone, around
    if measure == "close":
        return alone, (~around & (index >= 0)) | alone
    raise ValueError(f"measure = {measure!r} must be robust or close")


def causally_hidden(measure: str, place: int, n: int, length: int) -> tuple[Tensor, Tensor]:
    """As `hidden`, for a causal model that predicts token `place` from those before it: the positions it may not read, bool [length] each.

    close: only the n - 1 tokens before i are left. robust ("skip n-gram"): the tokens i - n + 1 … i - 2 are hidden, so the last token
    and what is before the window stay. Positions are not shifted: hide them in attention.
    """
    _refuse(place, n, length)
    index = torch.arange(length)
    future = index >= place
    if measure == "robust":
        return future, future | ((index > place - n) & (index < place - 1))
    if measure == "close":
        return future, future | (index <= place - n)
    raise ValueError(f"measure = {measure!r} must be robust or close")


def shift(one: Tensor, other: Tensor) -> dict[str, Tensor]:
    """Total variation of the predictions of two sets of logits [..., V], in both conventions, each [...].

    tv: half the L1 distance, at most 1. l1: the whole of it, at most 2, as in the authors' script.
    """
    if one.shape != other.shape:
        raise ValueError(f"logits {list(one.shape)} and {list(other.shape)} must be of the same predictions")
    distance = (one.float().softmax(-1) - other.float().softmax(-1)).abs().sum(-1)
    return {"tv": distance / 2, "l1": distance}


def median(values: Tensor) -> Tensor:
    """The median over strings and positions, [R, ...] → [R]; of an even number the mean of the middle two."""
    ordered = values.flatten(1).sort(1).values
    count = ordered.shape[1]
    return (ordered[:, (count - 1) // 2] + ordered[:, count // 2]) / 2


def _refuse(place: int, n: int, length: int) -> None:
    if n < 2:
        raise ValueError(f"n = {n} must be at least 2: a window of one token holds no neighbour")
    if not 0 <= place < length:
        raise ValueError(f"position {place} is outside a string of {length} tokens")
