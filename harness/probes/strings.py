"""The strings that probes show a model, and a forward pass that shows each layer's attention."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from harness.draw import Draw
from models.transformer.transformer import Decoder
from tasks.batch import Batch
from tasks.task import Task

SEED = 0  # of the strings, on the stream of evaluation sets
_WEIGHTS = 2**24  # of attention in a forward pass


def strings(task: Task, count: int, size: int) -> Iterator[Batch]:
    """`count` strings of the task's evaluation, as batches of at most `size` with R = 1."""
    draw = Draw(torch.tensor([SEED]), "evaluate")
    for first in range(0, count, size):
        yield task.evaluation().sample(draw.rows(first), min(size, count - first))


def at_once(heads: int, length: int) -> int:
    """How many strings of this length a forward pass takes, whose attention with so many heads is looked at."""
    return max(1, _WEIGHTS // (heads * length**2))


@torch.no_grad()
def see(model: Decoder, tokens: Tensor, look: Callable[[int, Tensor], None]) -> Tensor:
    """One forward pass of tokens int64 [1, B, T], each layer's weights shown to `look`; the logits."""
    return model(tokens, attend=look)
