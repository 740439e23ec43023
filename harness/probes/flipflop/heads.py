"""What every head looks at and what it reads there, beside the write that answers (Liu's thesis, 3.5.6.5, figures 3.35 and 3.36).

A weight a_ij and the value v_j that it brings are two things: what a head adds to row i is the sum of a_ij v_j, through its output map,
and ‖a_ij v_j‖ says how much of it comes from j. The thesis does not say on which strings the patterns of two heads are compared, nor
by which l2 distance; here it is the Frobenius norm of the difference of their weights on a string, as a mean over strings. Only rows of
⊥ are counted, since a write is answered by the token itself.
"""

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from harness.probes.flipflop.attention import PATTERN, correct_write, of_simulation
from harness.probes.probe import Probe, Rows, of_heads, of_model, of_place
from harness.probes.strings import at_once, strings
from models.transformer.block import Block
from models.transformer.transformer import Decoder
from results.report.flipflop.attention_figures import write_figures
from tasks.flipflop.simulation import IGNORE, WRITE, Simulation


@dataclass(frozen=True)
class Seen:
    """A forward pass: weights [B, H, T, T] and norms of values [B, H, T] of every layer, float64, and the logits [B, T, 2]."""

    weights: list[Tensor]
    norms: list[Tensor]
    logits: Tensor


def heads(model: Decoder, task: Simulation, count: int) -> Rows:
    """Rows of layer and head; the model is a pack with R = 1 that attends, `count` the strings of its task that it is shown.

    On PATTERN, by query i: "i=3 key" is the position of the largest weight (the first of equal ones), "weight" that weight, "norm" its
    ‖a_ij v_j‖, "write" 1 where it is the latest write; "weight_write" and "norm_write" are those of the latest write, "norm_key" the
    position of the largest norm. "ideal": distance from the pattern whose weights are all on the latest write.
    On the strings, over rows of ⊥: "weight_write" and "norm_write" are the shares whose largest weight or norm is on the latest write,
    "weight_state" and "norm_state" on any write of the right state; "elsewhere" the share that is answered rightly though the largest
    weight is on no such write, "elsewhere_norm" the part of these whose largest norm is on one, as a share of all rows too.
    "distance 5" of head 2: of the patterns of heads 2 and 5. "wrong" and "rows", without layer: share of wrong rows, number of rows.
    "norm query", "key", "value", "out" of a layer, "norm" without layer: Frobenius norms of the weights, of the last all parameters'.
    """
    measured = _pattern(model)
    total: dict[tuple[int, str], Tensor] = {}  # [H], or [H, H] of distances
    rows = wrong = 0
    size = at_once(model.config.layers * model.config.heads, task.length)
    for batch in strings(task, count, size):
        tokens, write = batch.inputs[0], correct_write(task, batch)[0]  # [B, T]
        seen = look(model, tokens)
        right = seen.logits.argmax(-1) == batch.targets[0]
        asked = tokens == IGNORE
        rows, wrong = rows + int(asked.sum()), wrong + int((asked & ~right).sum())
        answers = tokens[:, None, :] == batch.targets[0][:, :, None] + WRITE  # [B, query, key]: a write of the right state
        for layer, (weights, norms) in enumerate(zip(seen.weights, seen.norms, strict=True)):
            for name, value in _counts(weights, norms, asked, right, write, answers).items():
                total[layer, name] = total.get((layer, name), torch.zeros_like(value)) + value
    for (layer, name), value in total.items():
        if name == "distance":
            for one, distances in enumerate((value / count).tolist()):
                measured += of_place(layer, one, ((f"distance {i}", apart) for i, apart in enumerate(distances) if i > one))
        elif rows:  # strings of writes alone have none
            measured += of_heads({layer: value[None] / rows}, [name])
    return measured + of_model([("rows", rows), *([("wrong", wrong / rows)] if rows else [])]) + _norms(model)


@torch.no_grad()
def look(model: Decoder, tokens: Tensor) -> Seen:
    """What every layer attends to and reads on tokens int64 [B, T]."""
    weights: dict[int, Tensor] = {}
    norms: dict[int, Tensor] = {}
    blocks = [cast(Block, block) for block in model.blocks]

    def read(block: Block, inputs: tuple[Tensor, ...]) -> None:
        norms[block.layer] = _values(block, inputs[0]).view(*tokens.shape, model.config.heads, -1).double().norm(dim=-1)

    hooks = [block.register_forward_pre_hook(read) for block in blocks]
    try:
        logits = model(tokens[None], attend=lambda layer, heads: weights.update({layer: heads[0].double()}))
    finally:
        for hook in hooks:
            hook.remove()
    return Seen(
        [weights[layer] for layer in range(len(blocks))],
        [norms[layer].transpose(1, 2) for layer in range(len(blocks))],
        logits[0],
    )


def _values(block: Block, x: Tensor) -> Tensor:
    """v of all heads, [1, B·T, H·K]."""
    return cast(Tensor, block.value(block.norm1(x) if block.norm1 is not None and block.config.norm == "pre" else x))


def _counts(weights: Tensor, norms: Tensor, asked: Tensor, right: Tensor, write: Tensor, answers: Tensor) -> dict[str, Tensor]:
    """Numbers of rows by head, and summed distances of head pairs, of a batch: weights [B, H, T, T], norms [B, H, T], the rest [B, T]."""
    read = weights * norms[:, :, None]
    at = {"weight": weights.argmax(-1), "norm": read.argmax(-1)}  # [B, H, T]
    states = {name: answers[:, None].expand(weights.shape).gather(-1, place[..., None])[..., 0] for name, place in at.items()}
    elsewhere = right[:, None] & ~states["weight"]
    of_rows = {f"{name}_write": place == write[:, None] for name, place in at.items()}
    of_rows |= {f"{name}_state": hit for name, hit in states.items()}
    of_rows |= {"elsewhere": elsewhere, "elsewhere_norm": elsewhere & states["norm"]}
    counts = {name: (hit & asked[:, None]).sum((0, 2)).double() for name, hit in of_rows.items()}
    flat = weights.flatten(2)  # [B, H, T·T]
    apart = torch.stack([(flat - flat[:, head : head + 1]).norm(dim=-1).sum(0) for head in range(flat.shape[1])])
    return counts | {"distance": apart}


def _pattern(model: Decoder) -> Rows:
    tokens = torch.tensor([PATTERN])
    seen = look(model, tokens)
    rows: Rows = []
    last = [max(j for j in range(i + 1) if PATTERN[j] != IGNORE) for i in range(len(PATTERN))]
    ideal = torch.nn.functional.one_hot(torch.tensor(last), len(PATTERN)).double()
    for layer, (weights, norms) in enumerate(zip(seen.weights, seen.norms, strict=True)):
        for head, square in enumerate(weights[0]):
            read = square * norms[0, head]
            for i, write in enumerate(last):
                key = int(square[i].argmax())
                values = {
                    **{"key": key, "write": float(key == write), "weight": square[i, key], "weight_write": square[i, write]},
                    **{"norm": read[i, key], "norm_write": read[i, write], "norm_key": int(read[i].argmax())},
                }
                rows += of_place(layer, head, ((f"i={i} {name}", value) for name, value in values.items()))
            rows += of_place(layer, head, [("ideal", (square - ideal).norm())])
    return rows


def _norms(model: Decoder) -> Rows:
    rows: Rows = []
    for layer, block in enumerate(model.blocks):
        norms = ((name, getattr(block, name).weight.detach().double().norm()) for name in ("query", "key", "value", "out"))
        rows += of_place(layer, None, ((f"norm {name}", norm) for name, norm in norms))
    every = sum(float(parameter.detach().double().square().sum()) for parameter in model.parameters())
    return rows + of_model([("norm", every**0.5)])


HEADS = Probe(
    lambda model, task, count, settings: heads(model, task, count),
    of_simulation,
    "transformers of flipflop_simulation that have not diverged",
    every_step=True,
    figures=write_figures,
)
