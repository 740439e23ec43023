"""Where a model attends: by layer and head, over the query rows that its task scores (Liu's thesis, 3.5.6.5, figures 3.26, 3.35, 3.37)."""

import torch
from torch import Tensor

from harness.probes.probe import Probe, Rows, of_heads
from harness.probes.strings import at_once, see, strings
from models.model import Model
from models.transformer.transformer import Decoder, Transformer
from results.errors import StudyError
from results.report.flipflop.attention_figures import write_figures
from tasks.batch import Batch
from tasks.flipflop.flipflop import FlipFlop
from tasks.flipflop.simulation import Simulation
from tasks.task import Task

PATTERN = (2, 0, 1, 0, 0, 1, 2, 0)  # s1 ⊥ s0 ⊥ ⊥ s0 s1 ⊥ of figure 3.37


def attention(model: Decoder, task: FlipFlop | Simulation, count: int) -> Rows:
    """Rows of layer and head over `count` strings of the task; the model is a pack with R = 1 that attends.

    largest: mean over rows of the largest weight. on_write: mean weight on the write that answers the row, for the language the bit after
    its `w`. right: share of rows whose largest weight lies there (the first of equal ones). entropy: mean of rows, in nats.
    """
    totals: dict[int, Tensor] = {}  # [4, H] by layer
    rows = 0
    heads = model.config.heads
    for batch in strings(task, count, at_once(heads, task.length)):
        scored = batch.weights[0] > 0  # [B, T]
        write = correct_write(task, batch)[0][scored]  # [N]
        rows += len(write)

        def look(layer: int, weights: Tensor, scored: Tensor = scored, write: Tensor = write) -> None:
            at = weights[0].transpose(1, 2)[scored].double()  # [B, H, T, T] → [N, H, T]
            on = at.gather(-1, write[:, None, None].expand(-1, at.shape[1], 1))[..., 0]
            right = (at.argmax(-1) == write[:, None]).double()
            entropy = -torch.xlogy(at, at).sum(-1)
            total = torch.stack([at.amax(-1).sum(0), on.sum(0), right.sum(0), entropy.sum(0)])
            totals[layer] = totals.get(layer, torch.zeros_like(total)) + total

        see(model, batch.inputs, look)
    return of_heads({layer: total / rows for layer, total in totals.items()}, ("largest", "on_write", "right", "entropy"))


def pattern(model: Decoder) -> Rows:
    """All attention weights on PATTERN, of a model of the simulation; item "i,j" is the weight of key j in the row of query i."""
    rows: Rows = []

    def look(layer: int, weights: Tensor) -> None:
        for head, square in enumerate(weights[0, 0].tolist()):
            rows.extend(
                {"layer": layer, "head": head, "item": f"{i},{j}", "value": value}
                for i, row in enumerate(square)
                for j, value in enumerate(row)
            )

    see(model, torch.tensor([[PATTERN]]), look)
    return rows


def correct_write(task: Task, batch: Batch) -> Tensor:
    """The position that answers each position, int64 [R, B, T]; where nothing is scored it means nothing. ValueError for other tasks."""
    index = torch.arange(batch.inputs.shape[-1])
    if isinstance(task, Simulation):
        return index - batch.about["since_write"]
    if isinstance(task, FlipFlop):
        return (index - 2 * batch.about["since_write"] + 1).clamp(max=len(index) - 1)  # the symbol follows its instruction
    raise StudyError(f"the attention probe knows the writes of flipflop and flipflop_simulation, not of {type(task).__name__}")


def of_flipflop(model: Model, task: Task) -> bool:
    """Whether a model is a transformer and its task the language or the simulation."""
    return isinstance(model, Transformer) and isinstance(task, FlipFlop | Simulation)


def of_simulation(model: Model, task: Task) -> bool:
    """Whether a model is a transformer and its task the simulation."""
    return isinstance(model, Transformer) and isinstance(task, Simulation)


ATTENTION = Probe(
    lambda model, task, count, settings: attention(model, task, count),
    of_flipflop,
    "transformers of flipflop and flipflop_simulation that have not diverged",
    beside=lambda model, task: {"pattern": pattern(model)} if isinstance(task, Simulation) else {},
    figures=write_figures,
)
