"""The randomness that a model is made with: each parameter is drawn by its own name, so that adding one changes no other."""

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor


class Draw(Protocol):
    """A source of random numbers for R replicates; what is drawn has R as its first axis. `site` tells the draws of one name apart."""

    @property
    def seeds(self) -> Tensor:
        """int64 [R], on the device where the model is made."""

    @property
    def replicates(self) -> int:
        """R."""

    def named(self, name: str) -> "Draw":
        """The draw of the parameter of this name."""

    def rows(self, first: int) -> "Draw":
        """The same draw from row `first` on, so that a large parameter can be drawn in parts."""

    def words(self, shape: Sequence[int], site: int = 0) -> Tensor:
        """uint32 words in int64, [R, *shape]."""

    def integers(self, high: int, shape: Sequence[int], site: int = 0) -> Tensor:
        """int64 in 0 … high - 1, [R, *shape]."""

    def uniform(self, shape: Sequence[int], site: int = 0) -> Tensor:
        """float32 in [0, 1), [R, *shape]."""

    def normal(self, shape: Sequence[int], site: int = 0) -> Tensor:
        """Standard normal float32, [R, *shape]."""

    def factors(self, rates: Tensor, shape: Sequence[int], site: int = 0) -> Tensor:
        """The factors of dropout at rates [R], float32 [R, *shape]: 0, or 1 / (1 - rate)."""
