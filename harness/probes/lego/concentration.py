"""How concentrated the attention of a LEGO model is as chains grow (Huang et al. 2025, equations 19 and 20, figures 6 and 7).

Means over strings of the masses on the two clauses that an answer needs; what follows from them is computed of these means, so that one
string without any such mass makes no odds infinite. Odds of the mean are what the dilution law is of.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from harness.probes.probe import Probe, Rows, of_model, of_place
from harness.probes.strings import add_by_layer, at_once, strings
from models.lego.clauses import Clauses
from models.lego.lego_theory import LegoTheory
from models.lego.lego_transformer import LegoTransformer
from tasks.lego.lego import Lego
from tasks.lego.lego_attention import Concentration, concentration

LONGEST = 160  # of the paper's tests
BY_ANSWER = 20  # the longest sentences of which every answer has rows of its own: figures 6 and 7


def concentrations(model: Any, task: Lego, count: int) -> Rows:
    """Rows of layer and head, and of the mean of a layer's heads (head null, as the paper draws them), at lengths L, 2L, 4L … up to
    LONGEST and to what the variables allow, over `count` sentences each; the model is a pack with R = 1 that attends.

    "L=20 epsilon", "L=20 gap" (signed) and "L=20 odds" are of the mean over answers; "L=20 others" is the mean of L + l - 2, the number
    of other clauses; "L=20 l=3 predicate" and "L=20 l=3 itself" are the two masses of the third answer.
    """
    rows: Rows = []
    for length in lengths(task):
        for layer, mean in enumerate(means(model, replace(task, length=length), count)):
            for head, at in [*enumerate(mean), (None, mean.mean(0))]:  # at: [2, L]
                over = Concentration(*at.mean(-1))
                rows += of_place(
                    layer, head, ((f"L={length} {name}", getattr(over, name)) for name in ("epsilon", "gap", "odds"))
                )
                if length <= BY_ANSWER:
                    for name, values in zip(("predicate", "itself"), at.tolist(), strict=True):
                        items = ((f"L={length} l={answer} {name}", value) for answer, value in enumerate(values, 1))
                        rows += of_place(layer, head, items)
        others = sum(length + answer - 2 for answer in range(1, length + 1)) / length
        rows += of_model([(f"L={length} others", others)])
    return rows


def lengths(task: Lego) -> list[int]:
    """The training length, doubled as often as LONGEST and the number of variables allow."""
    doubled = [task.length]
    while 2 * doubled[-1] <= min(LONGEST, task.variables - 1):
        doubled.append(2 * doubled[-1])
    return doubled


def means(model: Any, task: Lego, count: int) -> list[Tensor]:
    """By layer the mean masses on the predicate and on the query itself, float64 [H, 2, L]; answer l at place l - 1."""
    totals: dict[int, Tensor] = {}
    for batch in strings(task, count, at_once(model.config.heads, 2 * task.length)):
        add_by_layer(totals, model, batch.inputs, partial(_masses, inputs=batch.inputs))
    return [totals[layer] / count for layer in sorted(totals)]


def _masses(weights: Tensor, inputs: Tensor) -> Tensor:
    """The masses of weights [B, H, T, T] on both clauses, summed over the strings, [H, 2, L]."""
    at = concentration(weights[None], inputs)
    return torch.stack([at.predicate[0].sum(0), at.itself[0].sum(0)], dim=1)


CONCENTRATION = Probe(
    lambda model, task, count, settings: concentrations(model, task, count),
    lambda model, task: isinstance(task, Lego) and isinstance(model, Clauses | LegoTransformer | LegoTheory),
    "models of lego that have not diverged",
)
