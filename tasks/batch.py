"""What a task hands to a trainer."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Batch:
    """inputs [R, B, T] int64, targets [R, B, T] int64, weights [R, B, T] float32 (0 = not scored).

    `about` holds further [R, B, T] integer tensors that errors are profiled by, such as distances in instructions.
    """

    inputs: Tensor
    targets: Tensor
    weights: Tensor
    about: dict[str, Tensor]
