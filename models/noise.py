"""The random numbers inside a model in training: dropout masks and position shifts, keyed so that no pack and no resume changes them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from models.draws import Draw


@dataclass(frozen=True)
class Noise:
    """The noise of one training step.

    dropout: draw of the stream "dropout", keyed by the initial seeds; offsets: draw of the stream "shift", keyed by the data seeds.
    rates: float32 [R] by the name of the model's option, such as "attention_dropout", each in [0, 1) and rounded down to 2^-16.
    """

    dropout: Draw
    offsets: Draw
    rates: Mapping[str, Tensor]

    def drop(self, x: Tensor, option: str, site: int) -> Tensor:
        """Zero each element of x [R, …] with its replicate's rate and scale the others by 1/(1 - rate) (Srivastava et al. 2014).

        site (0 … 65535) tells the places of one model apart. The mask belongs to the element's index in x[r]: of a tensor that is
        gathered later (needed positions only), drop the whole or gather the mask (`mask`).
        """
        return x * self.mask(x.shape[1:], option, site)

    def mask(self, shape: Sequence[int], option: str, site: int) -> Tensor:
        """The factors of `drop`, float32 [R, *shape]: 0 or 1/(1 - rate)."""
        return self.dropout.factors(self.rates[option], shape, site)

    def shift(self, high: int) -> Tensor:
        """One integer per replicate, uniform in 0 … high, int64 [R]."""
        return self.offsets.integers(high + 1, (1,))[:, 0]
