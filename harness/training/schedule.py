"""How rates move over a training: the learning rate of every schedule, reduction on a plateau, and the weight of a penalty."""

import math

import torch
from torch import Tensor

_WINDOW = 256  # steps whose scalars are made at once
_THRESHOLD = 1e-4  # a monitored loss must fall by this fraction to count as better, as in torch's ReduceLROnPlateau


def learning_rate(train, step: int) -> float:
    """lr at `step` (1 … steps): linear warm-up, then linear to zero at step S + 1, cosine to final_lr · lr there, or constant.

    S is decay_steps, or steps where that is 0. linear: lr · min(t / warmup, 1) · min(1, (S + 1 - t) / (S + 1 - warmup)): 50 warm-up
    steps, zero at the hypothetical step 10,001 (Liu's thesis, section 3.5.6). cosine: lr · (f + (1 - f)(1 + cos π(t - warmup)/(S + 1 -
    warmup))/2) after the warm-up (Loshchilov & Hutter 2017, without restarts). plateau: as constant; the pack's `Plateau` scales it. A
    training no longer than its warm-up only warms up.
    """
    rate = train.lr * (min(step / train.warmup, 1.0) if train.warmup else 1.0)
    end = (train.decay_steps or train.steps) + 1
    if train.schedule == "linear" and step > train.warmup:
        rate *= (end - step) / (end - train.warmup)
    elif train.schedule == "cosine" and step > train.warmup:
        wave = (1 + math.cos(math.pi * (step - train.warmup) / (end - train.warmup))) / 2
        rate *= train.final_lr + (1 - train.final_lr) * wave
    return rate


def penalty_weight(sharpen, step: int, steps: int) -> float:
    """λ(t) of an attention-sharpening penalty; zero up to `start` (the thesis names the shapes; the formulas are our reading).

    constant: λ. linear: λ · (t - t0)/(S - t0). oscillating: λ · (1 - cos(2π(t - t0)/period))/2.
    """
    after = step - sharpen.start
    if after <= 0:
        return 0.0
    if sharpen.schedule == "constant":
        return sharpen.weight
    if sharpen.schedule == "linear":
        return sharpen.weight * min(after / (steps - sharpen.start), 1.0)
    return sharpen.weight * (1 - math.cos(2 * math.pi * after / sharpen.period)) / 2


class Scalars:
    """What a step needs of every replicate, float32 [rows, R]: made for a window of steps at once, once for equal trainings.

    rows: lr, λ, t (at most 2^24, where float32 counts no further and the moments' bias is long gone).
    """

    LR, PENALTY, STEP = range(3)

    def __init__(self, trains, device: torch.device):
        self.trains, self.device = list(trains), device
        self._first = self._count = 0
        self._table = torch.empty(0)
        self._scale: list[float] = [1.0] * len(self.trains)

    def at(self, step: int) -> Tensor:
        """float32 [3, R] for `step`, counted from 1."""
        if not self._first <= step < self._first + self._count:
            self._fill(step)
        return self._table[step - self._first]

    def rates(self, first: int, count: int) -> Tensor:
        """The learning rates of `count` steps from `first` on, float32 [count, R]."""
        if not self._first <= first <= first + count <= self._first + self._count:
            self._fill(first, count)
        start = first - self._first
        return self._table[start : start + count, self.LR].contiguous()

    def rescale(self, scale: list[float]) -> None:
        """Learning rates from now on are these multiples of their schedules', one a replicate."""
        if scale != self._scale:
            self._scale, self._count = list(scale), 0

    def lr(self, slot: int, step: int) -> float:
        return learning_rate(self.trains[slot], step) * self._scale[slot]

    def _fill(self, first: int, least: int = 1) -> None:
        count = max(least, min(_WINDOW, self.trains[0].steps + 1 - first))
        pairs = list(zip(self.trains, self._scale, strict=True))
        place = {pair: number for number, pair in enumerate(dict.fromkeys(pairs))}
        distinct = torch.tensor([self._column(*pair, first, count) for pair in place], dtype=torch.float64)
        columns = distinct[[place[pair] for pair in pairs]]
        self._table = columns.permute(1, 2, 0).to(torch.float32).to(self.device).contiguous()  # [count, 3, R]
        self._first, self._count = first, count

    def _column(self, train, scale: float, first: int, count: int) -> list[list[float]]:
        def penalty(step: int) -> float:
            if train.consistency is not None:
                return train.consistency.weight
            return penalty_weight(train.sharpen, step, train.steps) if train.sharpen is not None else 0.0

        steps = range(first, first + count)
        return [[learning_rate(train, step) * scale, penalty(step), min(step, 2**24)] for step in steps]


class Plateau:
    """Reduce the learning rate of a replicate whose monitored loss has stopped falling, as torch's ReduceLROnPlateau (mode min)."""

    def __init__(self, trains):
        self.trains = list(trains)
        self.best = [math.inf] * len(self.trains)
        self.bad = [0] * len(self.trains)
        self.scale = [1.0] * len(self.trains)

    def look(self, losses: list[float]) -> list[float]:
        """Take the monitored losses [R] of a look; returns the scales of the learning rates from the next step on."""
        for slot, (train, loss) in enumerate(zip(self.trains, losses, strict=True)):
            if train.schedule != "plateau":
                continue
            if loss < self.best[slot] * (1 - _THRESHOLD):
                self.best[slot], self.bad[slot] = loss, 0
            else:
                self.bad[slot] += 1
            if self.bad[slot] > train.patience:
                self.scale[slot] *= train.factor
                self.bad[slot] = 0
        return self.scale
