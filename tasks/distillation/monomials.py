"""Correlation of a model's answer with monomials of its input: the degree curriculum of a teacher.

Panigrahi et al. 2025, sections 4.2.2 and 4.2.7 of the thesis: |E_x [p(x)]_1 · ∏ x_i| over a set of coordinates, p at temperature 1 and
its first class. Sets inside the support are compared with sets that are not, at degrees 1, 2 and 3.
"""

import itertools
import math

import torch
from torch import Tensor

from tasks.draws import Draw


def signs_of(inputs: Tensor) -> Tensor:
    """Tokens 0 and 1, [..., d] → +1 and -1, float32."""
    return 1.0 - 2.0 * inputs


def first_class(logits: Tensor) -> Tensor:
    """[p]_1 at temperature 1, logits [..., C] → float32 [...]."""
    return logits.float().softmax(-1)[..., 0]


def inside(support: tuple[int, ...], degree: int) -> Tensor:
    """All sets of `degree` coordinates of the support, int64 [C(k, degree), degree]. ValueError for a degree that is not 1 … k."""
    if not 1 <= degree <= len(support):
        raise ValueError(f"degree = {degree} must be from 1 to {len(support)}, the size of the support")
    return torch.tensor(list(itertools.combinations(sorted(support), degree)))


def outside(length: int, support: tuple[int, ...], degree: int, most: int, draw: Draw, free: tuple[int, ...] = ()) -> Tensor:
    """`most` different random sets of `degree` of the `length` coordinates that are not within the support, int64 [≤ most, degree].

    All of them where there are no more than `most`. free: coordinates of which each set must have one, such as the irrelevant ones of
    hierarchical parity; (): those outside the support. draw: R = 1; the sets depend on its seed alone.
    Raises ValueError where there is no such set, for a degree above `length` or coordinates that do not exist.
    """
    if not 1 <= degree <= length:
        raise ValueError(f"degree = {degree} must be from 1 to {length}, the number of coordinates")
    if any(not 0 <= place < length for place in (*support, *free)):
        raise ValueError(f"the coordinates of support and free must be of 0 … {length - 1}")
    needed = set(free) if free else set(range(length)) - set(support)
    total = math.comb(length, degree) - math.comb(length - len(needed), degree)
    if total == 0 or most < 1:
        raise ValueError(
            f"there are {total} sets of {degree} coordinates that are not within the support, and most = {most} of them are asked for"
        )
    if total <= 4 * most and math.comb(length, degree) <= 10**6:
        every = [subset for subset in itertools.combinations(range(length), degree) if needed & set(subset)]
        order = draw.permutation(len(every), site=0)[0, :most].sort().values
        return torch.tensor(every)[order.cpu()]
    subsets: dict[tuple[int, ...], None] = {}
    site = 1
    while len(subsets) < min(most, total):
        for row in draw.subset(length, degree, (4 * most,), site)[0].sort(-1).values.tolist():
            if needed & set(row):
                subsets[tuple(row)] = None
        site += 1
    return torch.tensor(list(subsets)[:most])


def correlations(answers: Tensor, signs: Tensor, sets: Tensor, chunk: int = 2**24) -> Tensor:
    """|mean over x of answer · ∏ of the set's coordinates|, answers [R, N], signs [N, d], sets int64 [M, degree] → float64 [R, M].

    chunk: products held at once. Sums in float64, so that N = 100,000 inputs lose nothing.
    """
    if answers.shape[-1] != len(signs):
        raise ValueError(f"{answers.shape[-1]} answers do not go with {len(signs)} inputs: give one an input")
    sets = sets.to(signs.device)
    total = torch.zeros(len(answers), len(sets), dtype=torch.float64, device=signs.device)
    step = max(1, chunk // len(sets))
    for first in range(0, len(signs), step):
        columns = signs[first : first + step]
        products = columns[:, sets[:, 0]].double()
        for place in range(1, sets.shape[1]):
            products *= columns[:, sets[:, place]]
        total += answers[:, first : first + step].double() @ products
    return (total / len(signs)).abs()


def contrast(within: Tensor, beyond: Tensor) -> dict[str, Tensor]:
    """Mean of the correlations inside, mean and standard deviation of those outside, and the ratio of the means, each [R]."""
    mean, rest = within.mean(-1), beyond.mean(-1)
    return {"inside": mean, "outside": rest, "outside_sd": beyond.std(-1, correction=0), "ratio": mean / rest}
