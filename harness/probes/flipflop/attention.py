"""Where a model attends: by layer and head, over the query rows that its task scores (Liu's thesis, 3.5.6.5, figures 3.26, 3.35, 3.37)."""

from functools import partial

import torch
from torch import Tensor

from harness.probes.probe import Probe, Rows, of_heads
from harness.probes.strings import add_by_layer, at_once, strings, weights_on_string
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
    totals: dict[int, Tensor] = {}
    rows = 0
    for batch in strings(task, count, at_once(model.config.heads, task.length)):
        scored = batch.weights[0] > 0  # [B, T]
        write = correct_write(task, batch)[0][scored]  # [N]
        rows += len(write)
        add_by_layer(totals, model, batch.inputs, partial(_sums, scored=scored, write=write))
    return of_heads({layer: total / rows for layer, total in totals.items()}, ("largest", "on_write", "right", "entropy"))


def _sums(weights: Tensor, scored: Tensor, write: Tensor) -> Tensor:
    """What `attention` measures, summed over rows, [4, H]: weights [B, H, T, T], which rows are scored [B, T], their writes [N]."""
    at = weights.transpose(1, 2)[scored]  # [N, H, T]
    on = at.gather(-1, write[:, None, None].expand(-1, at.shape[1], 1))[..., 0]
    right = (at.argmax(-1) == write[:, None]).double()
    entropy = -torch.xlogy(at, at).sum(-1)
    return torch.stack([values.sum(0) for values in (at.amax(-1), on, right, entropy)])


def pattern(model: Decoder) -> Rows:
    """All attention weights on PATTERN, of a model of the simulation."""
    return weights_on_string(model, torch.tensor([[PATTERN]]), causal=False)


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
