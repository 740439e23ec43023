"""What a task hands to a trainer."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Batch:
    """Strings with their answers: inputs [R, B, T] int64, targets [R, B, T] int64, weights [R, B, T] float32 (0 = not scored).

    The targets of a task with `soft` are laws, float32 [R, B, T, V], or [R, B, 1, V] where one position a string is scored.

    about: further integer tensors [R, B, T] that errors are profiled by, such as distances in instructions. hidden, bool [R, B, T]:
    tokens that no position attends to; None where a task hides none.
    """

    inputs: Tensor
    targets: Tensor
    weights: Tensor
    about: dict[str, Tensor]
    hidden: Tensor | None = None

    def take(self, rows: Tensor) -> "Batch":
        """The batch of some of the replicates, given by their numbers, int64 [N], in that order."""
        return Batch(
            self.inputs[rows],
            self.targets[rows],
            self.weights[rows],
            {name: values[rows] for name, values in self.about.items()},
            None if self.hidden is None else self.hidden[rows],
        )


@dataclass(frozen=True)
class View:
    """Other strings whose answers are those of a batch.

    inputs [R, B, T'] int64: the strings. places [R, B, T] int64: where each position of the batch stands in them. weights [R, B, T]
    float32: 1 at the positions that are compared, else 0.
    """

    inputs: Tensor
    places: Tensor
    weights: Tensor


def join(batches: Sequence[Batch]) -> Batch:
    """Join batches of equal shape along the replicate axis."""
    first = batches[0]
    if len(batches) == 1:
        return first
    return Batch(
        torch.cat([batch.inputs for batch in batches]),
        torch.cat([batch.targets for batch in batches]),
        torch.cat([batch.weights for batch in batches]),
        {name: torch.cat([batch.about[name] for batch in batches]) for name in first.about},
        None if first.hidden is None else torch.cat([batch.hidden for batch in batches if batch.hidden is not None]),
    )
