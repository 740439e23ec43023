"""The optimiser of every device: AdamW, Adam or SGD over a flat [R, P] buffer, every hyper-parameter a vector over R."""

import contextlib
import warnings
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from harness.study.training_options import Train
from harness.training.schedule import Scalars

_ALIGN = 16  # floats; a matrix that starts elsewhere in a 64-byte line may be multiplied in another order
# the warning is that rows of the buffers lie P apart, which is meant and no slower
warnings.filterwarnings("ignore", message="grad and param do not obey the gradient layout contract")


class FlatParameters:
    """The parameters of a packed model as views into one buffer, their gradients as views into another.

    values, gradient: [R, P] in the precision of the parameters, float32; P includes the zeros that align every parameter to 64 bytes.
    """

    def __init__(self, model: nn.Module):
        parameters = list(model.parameters())
        replicates = parameters[0].shape[0]
        sizes = [parameter[0].numel() for parameter in parameters]
        self.count = sum(sizes)
        padded = [-(-size // _ALIGN) * _ALIGN for size in sizes]
        self.values = parameters[0].new_zeros(replicates, sum(padded))
        self.gradient = torch.zeros_like(self.values)
        start = 0
        for parameter, size, room in zip(parameters, sizes, padded, strict=True):
            view = self.values[:, start : start + size].view(parameter.shape)
            view.copy_(parameter.data)
            parameter.data = view
            # backward adds to it in place: no second copy of the gradients is ever held
            parameter.grad = self.gradient[:, start : start + size].view(parameter.shape)
            start += room

    def differentiate(self, loss: Tensor) -> None:
        """Fill `gradient` with the derivatives of the scalar `loss`."""
        self.gradient.zero_()
        loss.backward()


class Optimizer:
    """The update rule of a pack: `mean` [R, P] is the first moment or the momentum, `square` [R, P] the second (none for SGD).

    adamw: Loshchilov & Hutter 2019, adam: Kingma & Ba 2015 with decay added to the gradient, sgd: with momentum; by torch's fused
    kernels, one call for neighbouring replicates of equal hyper-parameters: one pass over memory and no temporaries. Elementwise over
    aligned rows, so neighbours change no bits. Decays every parameter, as torch does by default.
    """

    def __init__(self, flat: FlatParameters, trains: Sequence[Train]):
        self.flat, self.name = flat, trains[0].optimizer
        self.mean = torch.zeros_like(flat.values)
        self.square = None if self.name == "sgd" else torch.zeros_like(flat.values)
        self._clip = None
        if trains[0].clip:
            self._clip = _column([train.clip for train in trains], flat.values)
        self._runs = _runs(trains)

    def state(self) -> dict[str, Tensor]:
        return {"mean": self.mean} | ({} if self.square is None else {"square": self.square})

    @torch.no_grad()
    def step(self, scalars: Tensor) -> None:
        """One update with the step's `Scalars.at`, float32 [3, R]."""
        if self._clip is not None:
            # each replicate's own norm: another's must not touch it
            norm = torch.linalg.vector_norm(self.flat.gradient, dim=1, keepdim=True)
            self.flat.gradient.mul_((self._clip / (norm + 1e-6)).clamp_(max=1.0))
        for first, last, train in self._runs:
            self._update(scalars[:, first], slice(first, last), train)

    def _update(self, scalars: Tensor, rows: slice, train) -> None:
        """scalars float32 [3] of all `rows`, whose hyper-parameters are those of `train`."""
        values, gradient, mean = ([buffer[rows]] for buffer in (self.flat.values, self.flat.gradient, self.mean))
        common = {"lr": scalars[Scalars.LR], "weight_decay": train.weight_decay, "maximize": False}
        if self.square is None:
            buffers = mean if train.momentum else []
            common |= {"momentum": train.momentum, "dampening": 0.0, "nesterov": False, "is_first_step": False}
            torch._fused_sgd_(values, gradient, buffers, **common)
            return
        beta1, beta2 = train.betas
        common |= {"beta1": beta1, "beta2": beta2, "eps": train.eps, "amsgrad": False}
        kernel = torch._fused_adamw_ if self.name == "adamw" else torch._fused_adam_
        kernel(values, gradient, mean, [self.square[rows]], [], [scalars[Scalars.STEP]], **common)


def _runs(trains: Sequence[Train]) -> list[tuple[int, int, Train]]:
    """(first, last + 1, training) of neighbouring replicates whose trainings, and so learning rates, are equal.

    A plateau gives each replicate a learning rate of its own, so there each is alone.
    """
    runs, first = [], 0
    for slot in range(1, len(trains) + 1):
        if slot == len(trains) or trains[slot] != trains[first] or trains[first].schedule == "plateau":
            runs.append((first, slot, trains[first]))
            first = slot
    return runs


class Average:
    """The exponential moving average of the weights, [R, P]: a ← d·a + (1 - d)·θ after every step, from the initial weights on."""

    def __init__(self, flat: FlatParameters, trains: Sequence[Train]):
        self.flat = flat
        self.values = flat.values.clone()
        self._take = _column([1 - train.ema for train in trains], flat.values)

    @torch.no_grad()
    def update(self) -> None:
        self.values.lerp_(self.flat.values, self._take.expand_as(self.values))

    @contextlib.contextmanager
    def swapped(self) -> Iterator[None]:
        """The model computes with the average inside the block."""
        raw = self.flat.values.clone()
        self.flat.values.copy_(self.values)
        try:
            yield
        finally:
            self.flat.values.copy_(raw)


def _column(values: list[float], like: Tensor) -> Tensor:
    """Numbers of the replicates as [R, 1], in the precision and on the device of `like`."""
    return torch.tensor(values, dtype=torch.float64).to(like)[:, None]
