"""Whether attention is that of a stack: how often a token looks most at the last bracket that is open (Li's thesis, figure 2.11)."""

from typing import Any

import torch
from torch import Tensor

from harness.probes.probe import Nothing, Probe, Rows, of_heads
from harness.probes.strings import see, strings
from tasks.dyck.copying import DyckCopy
from tasks.dyck.dyck import Dyck, last_open
from tasks.dyck.law import depths


def stack_hits(model: Any, task: Dyck | DyckCopy, count: int, settings: Nothing) -> Rows:
    """By layer and head, over the tokens behind which something is open: "hit", the share whose largest weight is on the last open
    bracket, and "mass", the mean weight on it; the model is a pack with R = 1."""
    sums: dict[int, Tensor] = {}
    total = 0
    for batch in strings(task.strings, count, 64):
        inputs = batch.inputs
        depth = torch.from_numpy(depths(inputs.numpy(), task.types))
        target = last_open(inputs, depth, task.depth)
        asked = target[0] >= 0  # [B, T]
        total += int(asked.sum())

        def look(layer: int, weights: Tensor, target: Tensor = target, asked: Tensor = asked) -> None:
            weights = weights[0].double()  # [B, H, T, T]
            place = target[0].clamp(min=0)[:, None].expand(weights.shape[:-1])
            hit = weights.argmax(-1) == place
            mass = weights.gather(-1, place[..., None])[..., 0]
            found = torch.stack([(each * asked[:, None]).sum((0, 2)) for each in (hit, mass)])
            sums[layer] = sums.get(layer, torch.zeros_like(found)) + found

        see(model, inputs, look)
    return of_heads({layer: found / total for layer, found in sums.items()}, ("hit", "mass"))


STACK = Probe(
    stack_hits,
    lambda model, task: isinstance(task, Dyck | DyckCopy) and model.attends and model.causal,
    "replicates of dyck or dyck_copy with a causal model that attends",
)
