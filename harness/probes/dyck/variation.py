"""Attention variation: how differently two replicates attend to the same string (Li's thesis, section 2.2.3.2 and table 2.6).

Variation(A, B) = ‖A - B‖_F² of two attention matrices with the start among the tokens. "fixed" is the thesis' string with brackets of all
types and depths, [[[[]]]](((()))) of two types and depth 4; "string 0" … are random prefixes of 18 brackets, the same for all models.
"""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from harness.probes.probe import Nothing, PairProbe, Rows, of_heads
from harness.probes.strings import see, strings
from tasks.dyck.dyck import Dyck

LENGTH = 19  # tokens of a random string, with the start

Maps = list[tuple[int, dict[str, Tensor]]]  # by layer, and there by string: [H, T, T]


def attention(model: Any, task: Dyck, count: int, settings: Nothing) -> Maps:
    """What a pack with R = 1 attends to on the fixed string and on `count` random ones."""
    maps: dict[int, dict[str, Tensor]] = {}

    def shown(inputs: Tensor, names: list[str]) -> None:
        def look(layer: int, weights: Tensor) -> None:
            maps.setdefault(layer, {}).update(zip(names, weights[0].double().unbind(), strict=True))

        see(model, inputs, look)

    shown(fixed_string(task), ["fixed"])
    some = replace(task, complete=False, length=LENGTH, scored="every", first=1)
    (batch,) = strings(some, count, count)
    shown(batch.inputs, [f"string {number}" for number in range(count)])
    return sorted(maps.items())


def fixed_string(task: Dyck) -> Tensor:
    """The start, then each type opened to the deepest and closed, int64 [1, 1, 2kD + 1]."""
    brackets = [2 * kind + closing for kind in range(task.types) for closing in (0, 1) for _ in range(task.depth)]
    return torch.tensor([[[task.start, *brackets]]])


def variation(one: Maps, other: Maps) -> Rows:
    """‖A - B‖_F² by layer, head and string."""
    rows: Rows = []
    for (layer, ours), (_, theirs) in zip(one, other, strict=True):
        apart = [(weights - theirs[name]).square().sum((-1, -2)) for name, weights in ours.items()]
        rows += of_heads({layer: torch.stack(apart)}, list(ours))
    return rows


VARIATION = PairProbe(
    attention,
    variation,
    lambda model, task: isinstance(task, Dyck) and model.attends,
    "replicates of dyck with a model that attends",
    strings=40,
)
