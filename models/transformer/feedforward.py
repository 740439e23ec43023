"""The activations of a feed-forward layer. A new one is one line of `ACTIVATIONS`."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import gelu, pad, relu, silu

from models.aligned import one_layout

_AT_ONCE = 64  # two vectors of 512 bits, of the smallest numbers


@dataclass(frozen=True)
class Activation:
    """An activation. function: elementwise. gated: the up projection is twice as wide, and its first half is multiplied by the function
    of its second."""

    function: Callable[[Tensor], Tensor]
    gated: bool = False

    def __call__(self, hidden: Tensor) -> Tensor:
        """[R, N, F] → [R, N, F], or gated [R, N, 2F] → [R, N, F]."""
        if not self.gated:
            return self._of(hidden)
        content, gate = hidden.chunk(2, dim=-1)
        return content * self._of(gate)

    def _of(self, x: Tensor) -> Tensor:
        """The function of x [R, N, F], with bits that do not depend on R.

        A processor computes it for many elements at once, and for the remainder one by one, by another series. So the numbers of a
        replicate are padded until there is no remainder.
        """
        size = x.shape[1] * x.shape[2]
        if size % _AT_ONCE == 0:
            return self.function(one_layout(x))
        return self.function(pad(x.flatten(1), (0, -size % _AT_ONCE)))[:, :size].view(x.shape)


# gated forms: Shazeer 2020, "GLU variants improve transformer", equations 5 and 6, here with biases
ACTIVATIONS: dict[str, Activation] = {
    "gelu": Activation(gelu),
    "relu": Activation(relu),
    "glu": Activation(torch.sigmoid, gated=True),
    "geglu": Activation(gelu, gated=True),
    "reglu": Activation(relu, gated=True),
    "swiglu": Activation(silu, gated=True),
}
