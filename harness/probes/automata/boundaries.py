"""Whether heads look for the latest visit of a gridworld's ends (Liu's thesis, figures 3.6 and 3.17, which print no statistic).

A walk that was last at an end s steps ago is there plus the sum of the moves since: Algorithm 1 looks for that visit and for nothing
before it. Measured is the mass of a query's row on visits, on the latest one, and on what lies before that, each beside what uniform
attention over the same tokens has. The walk starts at state 0, which no token holds; queries before the first visit are left out.
"""

from functools import partial

import torch
from torch import Tensor

from harness.probes.probe import Probe, Rows, of_heads, of_model
from harness.probes.strings import add_by_layer, at_once, strings
from models.model import Model
from models.transformer.transformer import Decoder, Transformer
from results.errors import StudyError
from tasks.automata.automata import Automaton
from tasks.automata.composition import states_after
from tasks.automata.named_automata import semiautomaton
from tasks.task import Task

ITEMS = ("visits", "latest", "before")


def boundaries(model: Decoder, task: Automaton, count: int) -> Rows:
    """Rows of layer and head over `count` words; the model is a pack with R = 1 that attends, causal, and the task a gridworld.

    visits: mean mass on positions after which the walk is at an end. latest: on the last of these. before: on positions before that.
    peak: share of queries whose largest weight is on the latest visit. "uniform visits" and so on, without layer: those of 1/t each.
    """
    totals: dict[int, Tensor] = {}
    machine = semiautomaton(task.automaton)
    even, queries = torch.zeros(len(ITEMS), dtype=torch.float64), 0
    for batch in strings(task, count, at_once(model.config.heads, task.length)):
        states = states_after(machine, batch.inputs[0])  # what is observed of them may be less
        kinds, latest, asked = places((states == 0) | (states == len(machine.table) - 1))
        queries += int(asked.sum())
        visible = torch.ones(states.shape[-1], states.shape[-1], dtype=torch.float64).tril()
        uniform = (visible / visible.sum(-1, keepdim=True)).expand(len(states), 1, -1, -1)
        even += masses(uniform, kinds, asked)[:, 0]
        add_by_layer(totals, model, batch.inputs, partial(_sums, kinds=kinds, latest=latest, asked=asked))
    if not queries:
        raise StudyError(f"none of {count} words of {task.length} moves visits an end: more --strings, or longer words")
    rows = of_heads({layer: total / queries for layer, total in totals.items()}, (*ITEMS, "peak"))
    shares = zip(ITEMS, (even / queries).tolist(), strict=True)
    return rows + of_model((f"uniform {item}", value) for item, value in shares)


def _sums(weights: Tensor, kinds: Tensor, latest: Tensor, asked: Tensor) -> Tensor:
    """The masses of weights [B, H, T, T], and the queries whose largest weight is on the latest visit, [4, H]."""
    peak = ((weights.argmax(-1) == latest[:, None]) & asked[:, None]).sum((0, 2)).double()
    return torch.cat([masses(weights, kinds, asked), peak[None]])


def places(ends: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of visits [B, T]: the keys of each query that are visits, the latest visit, or before it, bool [3, B, T, T]; the latest visit
    int64 [B, T], -1 without any; which queries have one."""
    index = torch.arange(ends.shape[-1])
    latest = torch.where(ends, index, -1).cummax(-1).values
    visits = ends[:, None, :] & (index <= index[:, None])
    kinds = torch.stack([visits, index == latest[..., None], index < latest[..., None]])
    return kinds, latest, latest >= 0


def masses(weights: Tensor, kinds: Tensor, asked: Tensor) -> Tensor:
    """Attention [B, H, T, T] summed over the keys of each kind and the queries asked for, [3, H]."""
    rows = weights * asked[:, None, :, None]
    return torch.stack([(rows * kind[:, None]).sum((0, 2, 3)) for kind in kinds])


def _of_walks(model: Model, task: Task) -> bool:
    walks = isinstance(task, Automaton) and str(task.automaton).startswith("Grid") and not task.scratchpad
    return walks and isinstance(model, Transformer) and model.causal


BOUNDARIES = Probe(
    lambda model, task, count, settings: boundaries(model, task, count),
    _of_walks,
    "causal transformers of automaton on Grid<n>, without scratchpad, that have not diverged",
)
