"""The strings that probes show a model, and a forward pass that shows each layer's attention."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from harness.draw import Draw
from harness.probes.probe import Rows
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
    """How many strings of this length one forward pass takes, whose attention weights in so many heads are looked at."""
    return max(1, _WEIGHTS // (heads * length**2))


def add_by_layer(totals: dict[int, Tensor], model: Decoder, tokens: Tensor, measure: Callable[[Tensor], Tensor]) -> None:
    """Add to `totals` what `measure` makes of each layer's attention, float64 [B, H, T, T], to tokens int64 [1, B, T]."""

    def look(layer: int, weights: Tensor) -> None:
        measured = measure(weights[0].double())
        totals[layer] = totals[layer] + measured if layer in totals else measured

    see(model, tokens, look)


def weights_on_string(model: Decoder, tokens: Tensor, causal: bool) -> Rows:
    """Rows of layer and head with each weight on one string, int64 [1, 1, T]: item "3,1" is the weight of key 1 in the row of query 3.
    causal: only of keys up to the query."""
    rows: Rows = []

    def look(layer: int, weights: Tensor) -> None:
        for head, square in enumerate(weights[0, 0].tolist()):
            rows.extend(
                {"layer": layer, "head": head, "item": f"{query},{key}", "value": value}
                for query, row in enumerate(square)
                for key, value in enumerate(row[: query + 1] if causal else row)
            )

    see(model, tokens, look)
    return rows


@torch.no_grad()
def see(model: Decoder, tokens: Tensor, look: Callable[[int, Tensor], None]) -> Tensor:
    """One forward pass of tokens int64 [1, B, T], each layer's weights shown to `look`; the logits."""
    return model(tokens, attend=look)
