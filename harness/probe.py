"""How fast a pack of a given size trains here: a few real steps and one real batch of every evaluation set.

The steps are thrown away; nothing of a probe reaches a store.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from harness.evaluate import score
from harness.pack import Pack
from harness.train import Training

_BUDGET_S = 1.0  # of timed steps a size
_SIZES = {"cpu": (1, 4, 16, 64), "cuda": (1, 4, 16, 64, 256)}
_GAIN = 1.05  # a larger pack must be this much faster a replicate


@dataclass(frozen=True)
class Rate:
    """Measured seconds: a training step of the whole pack, and all its evaluations of a whole training."""

    size: int
    step_s: float
    evaluate_s: float

    def pack_seconds(self, steps: int) -> float:
        return self.step_s * steps + self.evaluate_s


def sizes(device: str) -> tuple[int, ...]:
    """Pack sizes that are tried on a kind of device."""
    return _SIZES[device]


def measure(pack: Pack, device: torch.device) -> Rate:
    """Time the pack: one step to warm up, then up to `_BUDGET_S` of steps (at least two), then a part of every evaluation set."""
    training = Training(pack, device)
    training.advance()
    times: list[float] = []
    while len(times) < 2 or (sum(times) < _BUDGET_S and len(times) < 50):
        times.append(_timed(device, training.advance))
    steps = training.train.steps
    evaluate_s = 0.0
    for scored in pack.sets:
        part = replace(scored, sequences=min(scored.sequences, max(1, 2**15 // scored.task.length)))

        def run(part=part) -> None:
            score(training.model, part, len(pack.replicates), device, training.train.precision)

        rounds = 1 + (steps - 1) // scored.every if scored.every else 1
        evaluate_s += _timed(device, run) * scored.sequences / part.sequences * rounds
    return Rate(len(pack.replicates), sorted(times)[len(times) // 2], evaluate_s)


def best_rate(of_size: Callable[[int], Pack], largest: int, device: torch.device) -> Rate:
    """The smallest pack that is about as fast a replicate as any up to `largest`; it ends where memory or the gain does.

    of_size(n) makes a pack of n replicates of the shape in question.
    """
    best: Rate | None = None
    for size in sizes(device.type):
        if best is not None and size > largest:
            break
        try:
            rate = measure(of_size(size), device)
        except torch.OutOfMemoryError:
            break
        if best is not None and rate.step_s / size * _GAIN > best.step_s / best.size:
            break
        best = rate
    if best is None:
        raise ValueError("one replicate alone does not fit into the memory of this device: choose a smaller model or batch")
    return best


def _timed(device: torch.device, run: Callable[[], None]) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    started = time.perf_counter()
    run()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - started
