"""Copying of Dyck strings: a model answers each bracket with that bracket (Li's thesis, figures 2.19 to 2.21).

A model that repeats what it reads needs no attention at all, so heads that look as if they followed the brackets explain nothing. Strings
and tokens are those of `Dyck`:

    DyckCopy(types=2, depth=2, length=6)      reads  5 0 2 3 1 4    answers  · 0 2 3 1 ·
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from tasks.batch import Batch
from tasks.draws import Draw
from tasks.dyck.dyck import Dyck
from tasks.task import Task


@dataclass(frozen=True)
class DyckCopy(Task):
    """Strings of `Dyck`, made with its options; the answer at each bracket is that bracket, and every one is scored."""

    metrics: ClassVar[tuple[str, ...]] = ("token",)
    error: ClassVar[str] = "a bracket that the model does not repeat"
    vectors: ClassVar[tuple[str, ...]] = ("q", "complete")  # may differ within a pack

    types: int = 2
    depth: int = 4
    length: int = 28
    q: float = 0.5
    complete: bool = True

    def __post_init__(self) -> None:
        self.strings  # noqa: B018 - raises ValueError for options that `Dyck` refuses

    @property
    def strings(self) -> Dyck:
        """The task whose strings are copied."""
        return Dyck(self.types, self.depth, self.length, self.q, self.complete)

    @property
    def vocabulary(self) -> int:
        return self.strings.vocabulary

    def sample(self, draw: Draw, batch: int) -> Batch:
        """`batch` strings a replicate: inputs, targets int64 [R, B, T], weights [R, B, T].

        about: depth [R, B, T], the brackets that are open after each token.
        """
        strings = self.strings.sample(draw, batch)
        scored = strings.inputs < 2 * self.types
        return Batch(strings.inputs, strings.inputs, scored.to(torch.float32), strings.about)

    def wrong(self, logits: Tensor, targets: Tensor) -> dict[str, Tensor]:
        """token: the most probable token is another."""
        return {"token": logits.argmax(-1) != targets}
