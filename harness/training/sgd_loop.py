"""Batch-1 SGD without one launch per step: a perceptron's steps between two looks run in one call of a loop in C (sgd_loop.c).

Panigrahi et al. 2025 (section 4.2.7.1 of the thesis) take 20 million steps of one string each. The step is the ordinary one, to float32
rounding: cross-entropy, the gradient of one string, W ← W - lr·g, lr of the step's own. The source is compiled once a process by the
machine's C compiler; where there is none, the pack takes the ordinary loop, which is said. A student's strings are answered by its
teacher before each call, many at once.
"""

import ctypes
import functools
from collections.abc import Collection
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from harness.machine.compiler import compiled
from harness.planning.pack import Pack
from harness.study.checkpoint_schedule import Teacher
from harness.study.config import Condition
from harness.study.stages import Link, link_of
from harness.study.training_options import Train
from harness.training.optimizer import FlatParameters
from harness.training.schedule import Scalars
from harness.training.teachers import Teachers
from harness.training.training_strings import Feed
from models.mlp import MLP

_SOURCE = Path(__file__).with_name("sgd_loop.c")
# options of a training for which the loop takes any value
_KNOWN = "steps lr betas eps warmup schedule final_lr decay_steps patience factor pool positions monitor".split()
_TOKENS = 2**20  # drawn at once, at most, where a step has fewer
_PRODUCTS = 2**31  # of a call, at most: half a second, so that a stop is soon heeded


def fits(condition: Condition) -> bool:
    """Whether the loop computes a condition's steps: one hidden layer, one string of bits with one class per step, plain SGD.

    An option that the loop knows nothing of has to be at its default.
    """
    train, task, wanted = condition.train, condition.task, Train(batch=1, optimizer="sgd", weight_decay=0.0)
    plain = all(getattr(train, item.name) == getattr(wanted, item.name) for item in fields(Train) if item.name not in _KNOWN)
    # labels are the task's own or a teacher's; weights may begin as those of the stage before
    link = link_of(condition) or Link()
    labelled = (
        link.labels in ("task", "teacher")
        and replace(link, labels="task", init="fresh", temperature=1.0, teacher=Teacher()) == Link()
    )
    perceptron = isinstance(condition.model, MLP) and condition.model == MLP(condition.model.width)
    return plain and labelled and perceptron and task.classifies and not task.soft and task.vocabulary == 2


def takes(pack: Pack, device: torch.device) -> bool:
    """Whether the loop computes a pack's steps, if it can be compiled."""
    wanted = device.type == "cpu" and not pack.numerics.get("compile")
    return wanted and all(fits(replicate.condition) for replicate in pack.replicates)


def missing() -> str:
    """Why the loop can't be compiled here, in words; "" where it can."""
    function, why = _built()
    return why if function is None else ""


def name() -> str:
    """The loop as rows record it: the compiler and the processor decide which products and sums are rounded together."""
    return f"sequential, {_built()[1]}"


@functools.cache
def _built() -> tuple[Any, str]:
    """The function `train` of the source and its compiler's version, or None and why there is none."""
    library, why = compiled(_SOURCE)
    if library is None:
        return None, why
    library.train.argtypes = [ctypes.c_int64] * 6 + [ctypes.c_void_p] * 8
    return library.train, why


def until(pack: Pack, step: int) -> int:
    """The next step after `step` at which training stops to look: curves, evaluations, the monitor, kept weights, the end."""
    train = pack.replicates[0].condition.train
    on_the_way = [looked.every for looked in (train.monitor, pack.watch) if looked is not None]
    every = [pack.curve_every, *(sets[0].every for sets in pack.sets), *on_the_way]
    looks = [step - step % interval + interval for interval in every if interval]
    kept: Collection[int] = [kept_step for kept_step in pack.keep_steps if kept_step > step]
    return max(step + 1, min([*looks, *kept, train.steps]))


class Loop:
    """The steps of a pack in C, on the weights of its model, a `models.mlp.Perceptron`, as they lie in `flat`."""

    def __init__(
        self, pack: Pack, feed: Feed, model: Any, flat: FlatParameters, scalars: Scalars, teachers: Teachers | None = None
    ):
        """teachers: what answers the strings instead of the task."""
        self.feed, self.flat, self.scalars, self.teachers = feed, flat, scalars, teachers
        self.parameters = [model.layers[0].weight, model.layers[0].bias, model.head.weight, model.head.bias]
        self.steps = feed.train.steps
        self.shape = (len(pack.replicates), feed.tasks[0].tokens, *model.head.weight.shape[1:])
        replicates, inputs, width, _ = self.shape
        tokens = replicates * inputs
        self._block = 1 if teachers is None else teachers.block
        taught = 0 if teachers is None else teachers.products
        window = min(_TOKENS // tokens, _PRODUCTS // (tokens * width + taught))
        self.window = max(1, window // self._block) * self._block  # steps whose strings are drawn at once
        self._first, self._inputs, self._targets = 1, torch.empty(0), torch.empty(0)

    def advance(self, step: int, last: int) -> Tensor:
        """Take the steps after `step`, up to `last` or the end of what is drawn; returns their losses, float32 [S, R]."""
        first = step + 1
        if not self._first <= first < self._first + len(self._inputs):
            self._draw(first)
        start = first - self._first
        count = min(last - step, len(self._inputs) - start)
        inputs, targets = (values[start : start + count] for values in (self._inputs, self._targets))
        rates = self.scalars.rates(first, count)
        losses = torch.empty_like(rates)
        tensors = [inputs, targets, rates, *self.parameters, losses]
        function, why = _built()
        if function is None:
            raise RuntimeError(why)
        if function(count, *self.shape, self.flat.values.stride(0), *(tensor.data_ptr() for tensor in tensors)):
            raise MemoryError("no memory for a copy of one replicate's weights")
        return losses

    def _draw(self, first: int) -> None:
        """The strings of `first` and of the steps around it, and their probabilities [S, R, C]: whole blocks of a teacher's."""
        block = self._block
        begin = first - (first - 1) % block
        count = -(-max(1, min(self.window, self.steps + 1 - begin)) // block) * block
        batch = self.feed.batch(begin, count)
        self._first, self._inputs = begin, batch.inputs.view(count, *self.shape[:2]).contiguous()
        if self.teachers is not None:
            self._targets = self.teachers.answers(self._inputs, begin).contiguous()
            return
        classes = batch.targets[:, 0, -1].view(count, -1)
        self._targets = nn.functional.one_hot(classes, self.shape[-1]).float()
