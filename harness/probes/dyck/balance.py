"""The balance violation β of a minimal-first-layer model: how far a matching pair of brackets is from leaving no trace in what is read.

Li's thesis, section 2.2.2 and equation 2.48, with one query for both sides: c, a bracket of type j that closes to depth δ ≥ 1. With
u(c, key) = P exp(score of the key for c) (value of the key), P taking the mean over the width away:

    S = u(c, close(i, d')) + u(c, open(i, d'))                                       a pair of type i at depth d'
    Q(t) = u(c, start) + Σ_r u(c, open(t_r, r)) + u(c, open(j, δ + 1)) + u(c, c)     t: types of the brackets open below
    ‖Q(t')‖ with t' the least among those whose last type differs from that of the least of all
    β = ‖S‖ / ‖Q(t')‖, its mean and its largest value over δ, d', i, j

A softmax has the same normaliser for all keys of a query, so it cancels.
"""

import itertools
from typing import cast

import torch
from torch import Tensor

from harness.probes.probe import Nothing, Probe, Rows, of_place
from models.dyck.minimal import FirstLayerByRule, Minimal
from tasks.dyck.dyck import Dyck


@torch.no_grad()
def violations(scores: Tensor, values: Tensor, types: int, depth: int) -> Tensor:
    """‖S‖ / ‖Q(t')‖ float64 [k, D - 1, k, D] by query type and depth, key type and depth; scores [S, S] of keys for queries and values
    [S, D] by slot (`FirstLayerByRule.slots`), D > 1."""
    scores, values = scores.double(), values.double()
    values = values - values.mean(-1, keepdim=True)
    opened = torch.arange(types * depth).view(types, depth)
    closed, start = opened + types * depth, len(scores) - 1
    ratios = torch.empty(types, depth - 1, types, depth, dtype=torch.float64)
    for kind, after in itertools.product(range(types), range(1, depth)):
        query = closed[kind, after]  # its depth before it is after + 1
        u = (scores[query] - scores[query].max()).exp()[:, None] * values
        fixed = u[start] + u[opened[kind, after]] + u[query]
        below = torch.tensor(list(itertools.product(range(types), repeat=after)))
        norms = (fixed + u[opened[below, torch.arange(after)]].sum(1)).norm(dim=-1)
        least = norms[below[:, -1] != below[norms.argmin(), -1]].min()
        ratios[kind, after - 1] = (u[opened] + u[closed]).norm(dim=-1) / least
    return ratios


def balance(model: FirstLayerByRule, task: Dyck, count: int, settings: Nothing) -> Rows:
    """beta_mean and beta_max of a pack with R = 1; no string is needed."""
    ratios = violations(model.score_table()[0], model.values()[0], model.types, model.config.depth)
    return of_place(0, 0, [("beta_mean", ratios.mean()), ("beta_max", ratios.max())])


BALANCE = Probe(
    lambda model, task, count, settings: balance(cast(FirstLayerByRule, model), task, count, settings),
    lambda model, task: isinstance(model, Minimal) and isinstance(task, Dyck) and model.depth > 1,
    "replicates of dyck with the model minimal_first_layer and a depth of at least 2",
    strings=1,
)
