"""Sparse parity: the product of k hidden coordinates of d signs.

Panigrahi et al., "Progressive distillation induces an implicit curriculum" (ICLR 2025), section 4.2.2 of the thesis. x is uniform in
{+1, -1}^d; +1 is token 0 and -1 token 1, the class is 0 if the product of the support is +1, else 1. The answer is wanted at the last
position, so a causal model and a perceptron over the whole string learn the same task.

    SparseParity(length=5, degree=2)      1 0 1 1 0 → 1, as x = -1 +1 -1 -1 +1 and x1·x2 = -1
"""

from dataclasses import dataclass
from typing import ClassVar

from tasks.batch import Batch
from tasks.bits import at_the_end, bits
from tasks.draws import Draw
from tasks.task import Classification


@dataclass(frozen=True)
class SparseParity(Classification):
    """Strings of d signs and the class of their product over k of them.

    length: d. degree: k. support: the k coordinates, from 0 and ascending; None for the first k, as in the paper.
    """

    error: ClassVar[str] = "a string whose most probable class is not the sign of the product of its support"
    vocabulary: ClassVar[int] = 2
    vectors: ClassVar[tuple[str, ...]] = ("degree", "support")  # may differ within a pack

    length: int = 100
    degree: int = 6
    support: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.degree <= self.length:
            raise ValueError(f"task.degree = {self.degree} must be from 1 to task.length = {self.length}")
        if self.support is None:
            return
        if len(self.support) != self.degree:
            raise ValueError(
                f"task.support has {len(self.support)} coordinate{'s'[: len(self.support) != 1]} and task.degree = {self.degree}: "
                "give as many, or leave the support out"
            )
        if list(self.support) != sorted(set(self.support)) or not 0 <= self.support[0] <= self.support[-1] < self.length:
            raise ValueError(
                f"task.support = {list(self.support)} must be different coordinates of 0 … {self.length - 1} in ascending order"
            )

    @property
    def coordinates(self) -> tuple[int, ...]:
        """The support, numbered from 0."""
        return tuple(range(self.degree)) if self.support is None else self.support

    def sample(self, draw: Draw, batch: int) -> Batch:
        """`batch` strings a replicate: inputs, targets [R, B, T] int64, weights [R, B, T], 1 at the last position and 0 elsewhere."""
        inputs = bits(draw, batch, self.length)
        return at_the_end(inputs, inputs[..., list(self.coordinates)].sum(-1) % 2)
