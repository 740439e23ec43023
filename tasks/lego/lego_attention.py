"""How concentrated the attention of a LEGO model is (Huang et al. 2025, equations 19 and 20).

To say y_l, the query x_{l-1} = y_{l-1} needs two clauses: the predicate that consumes x_{l-1}, and itself.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from tasks.lego.lego import INPUT, VARIABLE


@dataclass(frozen=True)
class Concentration:
    """The mass on the predicate, on the query itself, and elsewhere, for each answer: [..., L] each, answer l at place l - 1."""

    predicate: Tensor
    itself: Tensor

    @property
    def epsilon(self) -> Tensor:
        """The concentration degree ε = 1 - a_pred - a_ans: 0 is concentrated (equation 19)."""
        return 1 - self.predicate - self.itself

    @property
    def gap(self) -> Tensor:
        """The signed attention gap a_pred - a_ans; its size is Δ (equation 20)."""
        return self.predicate - self.itself

    @property
    def odds(self) -> Tensor:
        """ε / (1 - ε), which grows as the number of other clauses L + l - 2 where scores do not depend on the length."""
        needed = self.predicate + self.itself
        return (1 - needed) / needed


def concentration(weights: Tensor, inputs: Tensor) -> Concentration:
    """Measure the concentration of one layer's attention `weights` [R, B, H, 2L, 2L]; the masses are [R, B, H, L].

    inputs [R, B, 2L, 5]: predicates in any order, then the answers 0 … L-1.
    """
    length = inputs.shape[2] // 2
    asked, given = inputs[:, :, length:, VARIABLE], inputs[:, :, :length, INPUT]
    place = (asked[..., None] == given[:, :, None]).to(torch.int64).argmax(-1)  # [R, B, L]
    rows = weights[..., length:, :]
    index = place[:, :, None, :, None].expand(*rows.shape[:-1], 1)
    return Concentration(rows.gather(-1, index)[..., 0], rows[..., length:].diagonal(dim1=-2, dim2=-1))


def diluted(to_predicate: float, to_itself: float, length: int, answer: int) -> tuple[float, float]:
    """a_pred and a_ans of one answer l = 1 … L where the two scores are given and all others are 0: exp(score) / S each.

    S = exp(to_predicate) + exp(to_itself) + L + l - 2. This is exact for the theory's model.
    """
    # answer l sees L predicates and l answers, two of them looked for
    top = max(to_predicate, to_itself, 0.0)
    predicate, itself, other = (float(torch.tensor(s - top, dtype=torch.float64).exp()) for s in (to_predicate, to_itself, 0.0))
    total = predicate + itself + (length + answer - 2) * other
    return predicate / total, itself / total
