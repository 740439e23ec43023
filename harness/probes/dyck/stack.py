"""Whether attention is that of a stack: how often a token looks most at the last bracket that is open (Li's thesis, figure 2.11)."""

from functools import partial
from typing import Any

import torch
from torch import Tensor

from harness.probes.probe import Nothing, Probe, Rows, of_heads
from harness.probes.strings import add_by_layer, strings
from tasks.dyck.copying import DyckCopy
from tasks.dyck.dyck import Dyck, last_open
from tasks.dyck.law import depths


def stack_hits(model: Any, task: Dyck | DyckCopy, count: int, settings: Nothing) -> Rows:
    """By layer and head, over the tokens behind which something is open: "hit", the share whose largest weight is on the last open
    bracket, and "mass", the mean weight on it; the model is a pack with R = 1."""
    totals: dict[int, Tensor] = {}
    rows = 0
    for batch in strings(task.strings, count, 64):
        depth = torch.from_numpy(depths(batch.inputs.numpy(), task.types))
        target = last_open(batch.inputs, depth, task.depth)[0]  # [B, T]
        rows += int((target >= 0).sum())
        add_by_layer(totals, model, batch.inputs, partial(_sums, target=target))
    return of_heads({layer: total / rows for layer, total in totals.items()}, ("hit", "mass"))


def _sums(weights: Tensor, target: Tensor) -> Tensor:
    """Rows whose largest weight is on the target, and the mass there, [2, H]: weights [B, H, T, T], targets [B, T], -1 for none."""
    place = target.clamp(min=0)[:, None].expand(weights.shape[:-1])
    hit = weights.argmax(-1) == place
    mass = weights.gather(-1, place[..., None])[..., 0]
    return torch.stack([(values * (target >= 0)[:, None]).sum((0, 2)) for values in (hit, mass)])


STACK = Probe(
    stack_hits,
    lambda model, task: isinstance(task, Dyck | DyckCopy) and model.attends and model.causal,
    "replicates of dyck or dyck_copy with a causal model that attends",
)
