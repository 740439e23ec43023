"""T3, the margin of positions: with p_i = i/C, scores grow as (W_Qp · W_Kp) i j / C² (Liu's thesis, 3.5.5.2, Proposition 5, figure 3.33).

Perfect answers at every length need W_Qp · W_Kp = 0. Above 0, late positions attend to the no-ops just before them; below 0, to the
earliest write. Two strings show it: [s1, ⊥ …] and [s0, ⊥ …, s1, ⊥ …].
"""

from typing import cast

import torch
from torch import Tensor, nn

from harness.probes.probe import Probe, Rows, of_place
from harness.probes.strings import see
from models.transformer.block import Block
from models.transformer.transformer import Decoder, Transformer
from results.errors import StudyError
from results.report.flipflop.attention_figures import write_figures
from tasks.flipflop.simulation import IGNORE, WRITE, Simulation

TAIL, GAP, EVERY = (
    800 / 500,
    32 / 500,
    32 / 500,
)  # ignored inputs at the end and between writes, and the sampling, over T of training


def drift(model: Decoder, task: Simulation) -> Rows:
    """Rows of one model with one layer, one head and linear positions, a pack with R = 1; ValueError for another.

    margin: W_Qp · W_Kp (`margin`), and cosine, its scale-free size. For string a (one write) and b (two), at every sampled position p:
    "a p=32 right", "… recent" and, in b, "… early" are the weights on the latest write, on the later half of the no-ops since, and on the
    first write; "… wrong" is 1 where the answer is. "a errors": the share of wrong positions. "a onset": the first wrong position, and
    "a drifts": the first with less than half of the weight on the latest write; both are left out where there is none.
    """
    config = model.config
    if (config.layers, config.heads, config.positions) != (1, 1, "linear"):
        raise StudyError(
            f"the drift probe is for 1 layer, 1 head and positions linear, not {config.layers}, {config.heads} and {config.positions}"
        )
    dot, cosine = margin(model)
    rows = of_place(0, 0, [("margin", dot), ("cosine", cosine)])
    for name, tokens in test_strings(task.length).items():
        values = follow(model, tokens, max(1, round(EVERY * task.length)))
        rows += of_place(0, 0, ((f"{name} {item}", value) for item, value in values.items()))
    return rows


def test_strings(length: int) -> dict[str, Tensor]:
    """Those of figure 3.33, [2, 0 × 800] and [1, 0 × 32, 2, 0 × 800] at T = 500, in proportion to the length of training."""
    tail, gap = [IGNORE] * round(TAIL * length), [IGNORE] * max(1, round(GAP * length))
    return {"a": torch.tensor([WRITE + 1, *tail]), "b": torch.tensor([WRITE, *gap, WRITE + 1, *tail])}


@torch.no_grad()
def margin(model: Decoder) -> tuple[float, float]:
    """W_Qp · W_Kp and their cosine, where a step along the position's coordinate moves queries by W_Qp and keys by W_Kp.

    Layer norm before attention centres that step and has a gain, which are part of both; that it also divides by a norm is not.
    """
    block = cast(Block, model.blocks[0])
    width = model.config.width
    step = torch.zeros(width, dtype=torch.float64)
    step[-1] = 1
    if block.norm1 is not None and model.config.norm == "pre":
        step = (step - step.mean()) * block.norm1.gain[0].double()
    query, key = step @ block.query.weight[0].double(), step @ block.key.weight[0].double()
    return float(query @ key), float(nn.functional.cosine_similarity(query, key, dim=0))


def follow(model: Decoder, tokens: Tensor, every: int) -> dict[str, float]:
    """What `drift` measures on one string, tokens [T], whose first input is a write and whose latest write is of state 1."""
    shown: list[Tensor] = []
    logits = see(model, tokens[None, None], lambda layer, weights: shown.append(weights[0, 0, 0]))
    weights = shown[0]
    last = int((tokens != IGNORE).nonzero().max())
    early = last > 0
    wrong = logits[0, 0].argmax(-1) != tokens[last] - WRITE
    after = torch.arange(last + 1, len(tokens))
    values: dict[str, float] = {}
    for p in after[every - 1 :: every].tolist():
        middle = last + 1 + (p - last) // 2
        values[f"p={p} right"] = float(weights[p, last])
        values[f"p={p} recent"] = float(weights[p, middle : p + 1].sum())
        values[f"p={p} wrong"] = float(wrong[p])
        if early:
            values[f"p={p} early"] = float(weights[p, 0])
    lost = after[weights[after, last] < 0.5]
    failed = after[wrong[after]]
    values["errors"] = float(wrong[after].double().mean())
    if len(failed):
        values["onset"] = float(failed[0])
    if len(lost):
        values["drifts"] = float(lost[0])
    return values


DRIFT = Probe(
    lambda model, task, count, settings: drift(model, task),
    lambda model, task: (
        isinstance(model, Transformer)
        and isinstance(task, Simulation)
        and (model.layers, model.heads, model.positions) == (1, 1, "linear")
    ),
    "transformers of flipflop_simulation with 1 layer, 1 head and positions: linear",
    strings=None,
    figures=write_figures,
)
