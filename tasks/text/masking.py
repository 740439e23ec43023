"""Masked prediction: which positions of a string are predicted, and what a model reads there.

Panigrahi et al. 2025, Definition 24 of the thesis (section 4.2.8): every position is selected with probability p; of the selected ones
80 % show the mask token, 10 % a random token and 10 % themselves.
"""

import torch
from torch import Tensor

from tasks.draws import WORD, Draw

MASKED, RANDOM = 0.8, 0.1  # of the selected; the others stay
_FEWEST = 100  # words that stand for each random token, so that rounding loses at most a hundredth of them
_SITE = 60000  # of the draws, beyond all that derivations use; part of every committed result


def refuse_rate(rate: float, kinds: int) -> None:
    """ValueError for a task.mask_rate that is no probability, or with which the words of a random token would be too few to share out."""
    least = _FEWEST * kinds / (RANDOM * WORD)
    if not least <= rate <= 1:
        raise ValueError(
            f"task.mask_rate = {rate:g} must be a probability of at least {least:.2g}, below which {kinds:,} tokens are not drawn alike"
        )


def masked(tokens: Tensor, allowed: Tensor, rate: float, mask: int, kinds: int, draw: Draw) -> tuple[Tensor, Tensor]:
    """What is read, int64 [R, B, T], and which positions were selected, bool [R, B, T].

    tokens int64 [R, B, T]; allowed bool [R, B, T]: what may be selected; rate: p; random tokens are uniform in 0 … kinds - 1. One word
    a position decides all three, so teacher and student of one data seed read the same.
    """
    words = draw.words(tokens.shape[1:], _SITE)
    # consecutive parts of [0, 2^32): mask token, each of the random tokens, unchanged, not selected
    hidden = round(rate * MASKED * WORD)
    share = round(rate * RANDOM * WORD) // kinds
    selected = (words < round(rate * WORD)) & allowed
    other = (words - hidden).clamp(min=0) // max(1, share)
    inputs = torch.where(selected & (words < hidden), mask, tokens)
    return torch.where(selected & (words >= hidden) & (other < kinds), other, inputs), selected


def mean_weights(selected: Tensor) -> Tensor:
    """Weights of the mean over each string's selected positions, float32 [R, B, T]: 1/|M|, 0 elsewhere."""
    return selected / selected.sum(-1, keepdim=True).clamp(min=1)
