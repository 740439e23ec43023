"""What all layers of one forward pass share."""

from dataclasses import dataclass

import torch
from torch import Tensor

from models.model import Attend
from models.noise import Noise
from models.transformer.options import Options

# places of dropout in one layer, by number, after the embedding's 0
ATTENTION, ATTENTION_BRANCH, HIDDEN, FEED_FORWARD_BRANCH = range(4)


def site(layer: int, place: int) -> int:
    """The number of a place of dropout in the model, for `Noise`."""
    return 1 + 4 * layer + place


@dataclass(frozen=True)
class Scene:
    """One forward pass of tokens [R, B, T].

    attend: see `Decoder.forward`. angles: cosines and sines of the angles that queries and keys are rotated by, float32
    [1 or R, T, K/2] each.
    mask: which keys all T queries may see, bool [T, T], or scores to add [H, T, T]; None where `causal` alone hides keys.
    hidden: keys that no query sees, bool [R·B, 1, 1, T]; each string then has a mask of its own, [R·B, 1, 1 or T, T] or [R·B, H, T, T].
    """

    config: Options
    batch: int
    length: int
    noise: Noise | None = None
    attend: Attend | None = None
    angles: tuple[Tensor, Tensor] | None = None
    mask: Tensor | None = None
    hidden: Tensor | None = None

    @property
    def explicit(self) -> bool:
        """Whether attention weights are needed as a tensor."""
        return self.attend is not None or self.drops("attention_dropout")

    def drops(self, option: str) -> bool:
        return self.noise is not None and getattr(self.config, option) > 0

    def drop(self, x: Tensor, option: str, number: int, rows: "Rows | None" = None) -> Tensor:
        """Dropout at the site `number` of x [R, B·T, D], or of its `rows` [R, B·K, D]."""
        if self.noise is None or not self.drops(option):
            return x
        mask = self.noise.mask((self.batch * self.length, x.shape[-1]), option, number)
        return x * (mask if rows is None else rows.of(mask))


class Rows:
    """The rows of x [R, B·T, D] at the positions `needed` [R, B, K] of its strings."""

    def __init__(self, needed: Tensor, length: int):
        self.needed = needed
        strings = torch.arange(needed.shape[0] * needed.shape[1], device=needed.device).view(needed.shape[:2])
        self._index = (strings[..., None] * length + needed).flatten()

    def of(self, x: Tensor) -> Tensor:
        """[R, B·T, D] → [R, B·K, D]"""
        # whole rows: on a GPU the gradient of `gather` sorts single numbers
        return x.flatten(0, 1).index_select(0, self._index).view(len(x), -1, x.shape[-1])
