"""How much of a planted cause a method found."""

from collections.abc import Collection, Sequence

import torch
from torch import Tensor


def recall(traced: Collection[int], truth: Sequence[frozenset[int]]) -> float:
    """The largest share of one of the sets of the truth that was found: a cause that stands in a prompt twice needs finding once."""
    return max(len(one & set(traced)) / len(one) for one in truth)


def expected_recall(scores: Tensor, k: int, truth: Sequence[frozenset[int]]) -> float:
    """Recall of the k events with the largest scores [P]; where events tie at the cut, of a random choice among them, on average.

    Largest over the sets of the truth of the expected share, so that a tie gains nothing over being guessed.
    """
    cut = scores.topk(k).values[-1]
    above, tied = scores > cut, scores == cut
    chance = torch.where(above, 1.0, torch.where(tied, (k - int(above.sum())) / int(tied.sum()), 0.0))
    return max(float(chance[sorted(one)].sum()) / len(one) for one in truth)
