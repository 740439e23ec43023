"""The cases that are measured: shapes by name, and the packs that the harness trains of them."""

from dataclasses import dataclass
from typing import ClassVar

from harness.planning.pack import Pack, Replicate
from harness.study.config import Condition
from harness.study.training_options import Train
from models.lstm import LSTM
from models.mlp import MLP
from models.transformer.transformer import Transformer
from tasks.batch import Batch
from tasks.distillation.parity import SparseParity
from tasks.flipflop.flipflop import FlipFlop
from tasks.task import Task


@dataclass(frozen=True)
class Case:
    """A model on a task, with `batch` strings per replicate and step."""

    name: str
    model: Transformer | LSTM | MLP
    task: Task
    batch: int = 16


def _flipflop(model: Transformer | LSTM, name: str) -> list[Case]:
    return [Case(f"{name}-T{length}", model, FlipFlop(length=length)) for length in (128, 512)]


CASES: dict[str, Case] = {
    case.name: case
    for case in (
        Case("tiny", Transformer(1, 16, 2), FlipFlop(length=16), 4),  # bound by launches
        *_flipflop(Transformer(1, 64, 4), "L1-d64"),
        *_flipflop(Transformer(2, 64, 4), "L2-d64"),
        *_flipflop(Transformer(2, 128, 4), "L2-d128"),
        *_flipflop(LSTM(128), "lstm128"),
        Case("mlp100", MLP(100), SparseParity(), 32),
        Case("mlp1000", MLP(1000), SparseParity(), 128),
        *_flipflop(Transformer(6, 512, 8), "L6-d512"),
    )
}


@dataclass(frozen=True)
class EveryPosition(Task):
    """A task as a harness would see it that knew nothing of needed positions: the loss is the same, everything is computed."""

    metrics: ClassVar[tuple[str, ...]] = ("error",)

    task: Task

    @property
    def length(self) -> int:  # type: ignore[override]
        return self.task.length

    @property
    def error(self) -> str:
        return self.task.error

    @property
    def vocabulary(self) -> int:
        return self.task.vocabulary

    @property
    def outputs(self) -> int:
        return self.task.outputs

    def scored_positions(self) -> None:
        return None

    def sample(self, draw, batch: int) -> Batch:
        return self.task.sample(draw, batch)

    def wrong(self, logits, targets):
        return self.task.wrong(logits, targets)


def pack(case: Case, size: int, needed: bool = True, precision: str = "fp32", compiled: bool = False, first: int = 0) -> Pack:
    """`size` replicates with the seeds `first`, `first` + 1, …; every step at one learning rate, nothing evaluated or kept."""
    task = case.task if needed else EveryPosition(case.task)
    train = Train(steps=2**30, batch=case.batch, schedule="constant", warmup=0, precision=precision)
    condition = Condition(case.name, task, case.model, train)
    replicates = tuple(Replicate(f"{seed:032d}", condition, seed, seed, ()) for seed in range(first, first + size))
    return Pack(f"{case.name}-{size}", case.name, replicates, 100, {"compile": compiled})


def bytes_of(case: Case, size: int, kind: str, device: str) -> int:
    """A rough peak of one process, for deciding what fits: measured sizes are in the table.

    Activations of 24 widths a token and layer and 8 more for embedding and loss, 32 of an LSTM, in fp32; 16 bytes a parameter; vmap
    takes as much again; a CPU process has 0.33 GB without any of it.
    """
    tokens = case.batch * case.task.length
    model = case.model
    if isinstance(model, Transformer):
        parameters = model.layers * 12 * model.width**2 + model.width * case.task.length
        floats = tokens * model.width * (24 * model.layers + 8)
        if kind == "vmap":  # attention is written out there: scores and weights, forward and backward
            floats += 8 * tokens * case.task.length * model.heads * model.layers
    elif isinstance(model, LSTM):
        parameters = model.layers * 8 * model.width**2
        floats = tokens * model.width * 32 * model.layers
    else:
        parameters = model.width * (case.task.length + (model.layers - 1) * model.width)
        floats = case.batch * (8 * case.task.length + 8 * model.width * model.layers)
    bytes_each = 16 * parameters + 4 * floats
    share = 2.0 if kind == "vmap" else 1.0
    return int(bytes_each * size * share) + (330_000_000 if device == "cpu" else 600_000_000)
