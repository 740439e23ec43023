"""Do traced events act on log P(wrong) one by one? Additive regression beside one with products of pairs, on the search's own strings.

Proposition 2.3 of Sun et al. 2025 has log P(answer | string) as a sum of a term for each subsequence.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

FOLDS = 5
_LEAST = torch.finfo(torch.float64).eps  # below it 1 - P(right) has no digits


@dataclass(frozen=True)
class Additivity:
    """R² of ln P(wrong | string), each string predicted by coefficients fitted on others: r2 by which events stand in it, pairs also by
    which pairs of them do. nan where P does not vary, or the strings are fewer than the coefficients.

    The events themselves were chosen on all of the strings.
    """

    r2: float
    pairs: float

    @property
    def interaction(self) -> float:
        """The part of what is explained that takes products: 0 if the events are additive; nan where nothing is explained.

        Slightly below 0 where the products only fit noise.
        """
        return (self.pairs - self.r2) / self.pairs if self.pairs > 0 else math.nan


def additivity(same: Tensor, probability: Tensor, events: Sequence[int]) -> Additivity:
    """same bool [N, P]: which events stand in which string; probability float64 [N], of a wrong answer."""
    y = probability.clamp(min=_LEAST).log().numpy()
    alone = same[:, list(events)].double().numpy()
    products = [alone[:, i] * alone[:, j] for i, j in itertools.combinations(range(len(events)), 2)]
    return Additivity(held_out(alone, y), held_out(np.column_stack([alone, *products]), y))


def held_out(x: np.ndarray, y: np.ndarray) -> float:
    """R² of the least squares of y [N] on x [N, K] and a constant, where string i is predicted from those of the other FOLDS - 1 folds
    (i mod FOLDS); nan where y is constant or a fold's strings do not outnumber the coefficients."""
    fold = np.arange(len(y)) % FOLDS
    spread = float(((y - y.mean()) ** 2).sum()) if len(y) else 0.0
    if spread <= 1e-20 * len(y) or len(y) - (fold == 0).sum() <= x.shape[1] + 1:
        return math.nan
    design = np.column_stack([np.ones(len(y)), x])
    left = 0.0
    for number in range(FOLDS):
        in_fold = fold == number
        fitted = np.linalg.lstsq(design[~in_fold], y[~in_fold], rcond=None)[0]
        left += float(((y[in_fold] - design[in_fold] @ fitted) ** 2).sum())
    return 1 - left / spread
