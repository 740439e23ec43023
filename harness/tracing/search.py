"""Beam search for the events whose presence goes with the error (Algorithm 2 of the paper, on events at fixed places)."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from results.errors import StudyError


@dataclass(frozen=True)
class Search:
    """beam: B, None for all (an exhaustive search). size: largest number of events. support: strings that a candidate must stand in.

    z: candidates are ranked by a lower bound of their mean hit, z standard errors below it (Wilson's for hits of 0 and 1); 0: by the mean.
    patience: stop where the bound has not grown for so many sizes, None for never.
    """

    beam: int | None = 20
    size: int = 16
    support: int = 32
    z: float = 2.0
    patience: int | None = None

    def __post_init__(self) -> None:
        if (self.beam is not None and self.beam < 1) or self.size < 1 or self.support < 1 or not self.z >= 0:
            raise StudyError("the search needs a beam, a size and a support of at least 1, and z of at least 0")


@dataclass(frozen=True)
class Cause:
    """The best candidate of its size: events, the strings that hold them all, their mean hit, its lower bound, and Ψ = ln(mean / base)."""

    events: tuple[int, ...]
    support: int
    mean: float
    bound: float
    base: float

    @property
    def psi(self) -> float:
        """The association, as Definition 2.2; -inf without a hit, nan where nothing ever hits."""
        if self.base == 0:
            return math.nan
        return math.log(self.mean / self.base) if self.mean > 0 else -math.inf


def search(same: Tensor, hit: Tensor, candidates: list[int], how: Search) -> list[Cause]:
    """The best set of 1, 2, … events, as long as any has the support; ties go to the lower events.

    same bool [N, P]: which events stand in which string; hit float64 [N], in 0 … 1. Raises ValueError without strings.
    """
    base, wilson, values = powers(hit)
    here = same[:, candidates].double()
    beam: list[tuple[int, ...]] = [()]  # numbers of candidates, ascending
    causes: list[Cause] = []
    for size in range(1, min(how.size, len(candidates)) + 1):
        whole = torch.stack([here[:, list(members)].prod(-1) for members in beam])  # [b, N]; the empty product is 1
        count, total, square = torch.einsum("bn,sn,np->sbp", whole, values, here).unbind(0)
        bound = lower_bound(count, total, square, how.z, wilson)
        bound[count < how.support] = -math.inf
        for row, members in enumerate(beam):
            bound[row, list(members)] = -math.inf
        best: dict[tuple[int, ...], tuple[int, int]] = {}
        wanted = bound.numel() if how.beam is None else how.beam * size  # a set comes from each of its parts
        order = bound.flatten().argsort(descending=True, stable=True)[:wanted]
        for place in order.tolist():
            row, column = divmod(place, len(candidates))
            if bound[row, column] == -math.inf:
                break
            best.setdefault(tuple(sorted((*beam[row], column))), (row, column))
        if not best:
            break
        ranked = sorted(best, key=lambda members: (-float(bound[best[members]]), members))
        beam = ranked[: how.beam]
        at = best[beam[0]]
        events = tuple(candidates[member] for member in beam[0])
        causes.append(Cause(events, int(count[at]), float(total[at] / count[at]), float(bound[at]), base))
        if how.patience is not None and size - chosen(causes) > how.patience:
            break
    return causes


def powers(hit: Tensor) -> tuple[float, bool, Tensor]:
    """The mean hit, whether all hits are 0 or 1, and hit^0, hit^1 and hit^2, float64 [3, N]. ValueError without strings."""
    if not len(hit):
        raise ValueError("there is no string to search a cause in")
    return float(hit.mean()), bool(((hit == 0) | (hit == 1)).all()), torch.stack([torch.ones_like(hit), hit, hit**2])


def lower_bound(count: Tensor, total: Tensor, square: Tensor, z: float, wilson: bool) -> Tensor:
    """z standard errors below the mean, of the number, sum and sum of squares of hits; `wilson`: of hits that are 0 or 1.

    -inf where nothing is counted, and, with z above 0, where a single value says nothing of the error.
    """
    n = count.clamp(min=1)
    mean = total / n
    if z == 0:
        bound = mean
    elif wilson:
        centre = mean + z**2 / (2 * n)
        bound = (centre - z * (mean * (1 - mean) / n + z**2 / (4 * n**2)).clamp(min=0).sqrt()) / (1 + z**2 / n)
    else:
        variance = (square - n * mean**2).clamp(min=0) / (n - 1).clamp(min=1)
        bound = (mean - z * (variance / n).sqrt()).masked_fill(count < 2, -math.inf)
    return bound.masked_fill(count < 1, -math.inf)


def chosen(causes: list[Cause]) -> int:
    """The number of events, from 1, of the candidate with the highest lower bound; the smaller of equal ones."""
    return 1 + max(range(len(causes)), key=lambda index: (causes[index].bound, -index))
