"""The random numbers that a task is given. They are keyed, so that a string depends on its seed and its number alone."""

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

WORD = 2**32  # a word is uniform in 0 … WORD - 1


class Draw(Protocol):
    """A source of random numbers for R replicates; what is drawn has R as its first axis. `site` tells the draws of one step apart."""

    @property
    def seeds(self) -> Tensor:
        """int64 [R], on the device where strings are made."""

    @property
    def replicates(self) -> int:
        """R."""

    @staticmethod
    def of_seed(seed: int) -> "Draw":
        """The draw of one seed, R = 1, whatever this one's seeds are: for what all replicates share, such as a table."""

    def named(self, name: str) -> "Draw":
        """The draw of the table of this name."""

    def of(self, slots: Tensor) -> "Draw":
        """The draw of some of the replicates, given by their numbers, int64 [R']."""

    def words(self, shape: Sequence[int], site: int = 0) -> Tensor:
        """uint32 words in int64, [R, *shape]."""

    def quantiles(self, shape: Sequence[int], site: int = 0) -> Tensor:
        """float64 in (0, 1) on the CPU, [R, *shape], to be put through the inverse of a distribution function."""

    def integers(self, high: int, shape: Sequence[int], site: int = 0) -> Tensor:
        """int64 in 0 … high - 1, [R, *shape]."""

    def uniform(self, shape: Sequence[int], site: int = 0) -> Tensor:
        """float32 in [0, 1), [R, *shape]."""

    def normal(self, shape: Sequence[int], site: int = 0) -> Tensor:
        """Standard normal float32, [R, *shape]."""

    def categorical(self, probabilities: Tensor, shape: Sequence[int], site: int = 0) -> Tensor:
        """Numbers of categories, int64 [R, *shape]; probabilities [V] or, one law per replicate, [R, V]."""

    def chains(self, laws: Tensor, context: Tensor, length: int, site: int = 0) -> Tensor:
        """Paths of Markov chains of order n, int64 [R, B, length] on the CPU.

        laws, float64 [R, B, S^n, S] on the CPU: of the next token after each context, a number in base S whose last digit is the latest
        token. context, int64 [R, B]: the first n tokens.
        """

    def permutation(self, size: int, shape: Sequence[int] = (), site: int = 0) -> Tensor:
        """Permutations of 0 … size - 1, int64 [R, *shape, size]."""

    def subset(self, size: int, count: int, shape: Sequence[int] = (), site: int = 0) -> Tensor:
        """`count` different numbers of 0 … size - 1 in random order, int64 [R, *shape, count]."""
