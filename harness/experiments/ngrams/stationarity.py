"""How near a k-gram estimator, written as weights, is to a stationary point of the training loss (Varre et al. 2025, theorem 4.2)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from harness.draw import Draw
from harness.experiments.ngrams.constructions import k_gram
from results.plain_values import Options
from tasks.ngrams.in_context import InContextNgram

_BATCH = 64  # strings whose gradients are averaged, for the variance between batches


@dataclass(frozen=True)
class Stationarity:
    """The gradient of the training loss at a k-gram estimator.

    k: of the k-gram; c: its scale; alphabet, order, length, alpha: of the in-context n-grams. sequences: strings a seed."""

    rev: ClassVar[int] = 1
    metrics: ClassVar[Mapping[str, str]] = {
        "key": "lower",  # norm of the mean gradient of the keys' matrix
        "floor": "lower",  # that norm on average were the true gradient 0
        "squared": "lower",  # square of the norm without what the noise adds: its mean is that of the true gradient
        "others": "lower",  # norm of the mean gradient of all other weights
    }

    k: int = 2
    c: float = 32.0
    alphabet: int = 3
    order: int = 3
    length: int = 128
    alpha: float = 1.0
    sequences: int = 1024

    def __post_init__(self) -> None:
        self.task()
        if not 1 <= self.k <= self.order:
            raise ValueError(f"experiment.k = {self.k} must be from 1 to experiment.order = {self.order}")
        if not 1 <= self.c <= 1000:
            raise ValueError(f"experiment.c = {self.c:g} must be from 1 to 1000")
        if self.sequences < 2 * _BATCH or self.sequences % _BATCH:
            raise ValueError(
                f"experiment.sequences = {self.sequences} must be a multiple of {_BATCH}, and at least {2 * _BATCH}"
            )

    def task(self) -> InContextNgram:
        try:
            return InContextNgram(self.alphabet, self.order, self.length, self.alpha)
        except ValueError as error:
            raise ValueError(str(error).replace("task.", "experiment.")) from error

    def measure(self, draw: Draw) -> Iterator[Options]:
        """One row: norms of each seed, [R]."""
        task = self.task()
        made = k_gram(task, self.k, self.c, draw.replicates)
        last = torch.full((draw.replicates, _BATCH, 1), task.length - 1)
        blocks = dict(made.named_parameters())
        total = {name: torch.zeros_like(each) for name, each in blocks.items()}
        squares = {name: torch.zeros_like(each) for name, each in blocks.items()}
        batches = self.sequences // _BATCH
        for number in range(batches):
            batch = task.sample(draw.rows(number * _BATCH), _BATCH)
            made.zero_grad()
            said = made(batch.inputs, (last,))
            (-(batch.targets.double() * said).sum((-1, -2)).mean(1)).sum().backward()
            for name, each in blocks.items():
                total[name] += each.grad
                squares[name] += each.grad.square()
        norms = {name: _squared(each / batches) for name, each in total.items()}
        # the variance of the mean: between batches, over their number
        mean = total["key"] / batches
        noise = ((squares["key"] / batches - mean.square()) / (batches - 1)).flatten(1).sum(1)
        others = sum((each for name, each in norms.items() if name != "key"), torch.zeros(draw.replicates))
        yield {
            "key": norms["key"].sqrt(),
            "floor": noise.clamp(min=0).sqrt(),
            "squared": norms["key"] - noise,
            "others": others.sqrt(),
        }


def _squared(values: Tensor) -> Tensor:
    """[R, …] → [R]"""
    return values.flatten(1).square().sum(1)
