"""One optimiser path a device: AdamW, Adam or SGD over a flat [R, P] buffer, every hyper-parameter a vector over R."""

import contextlib
import warnings
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from harness.schedule import Scalars

_ALIGN = 16  # floats; a matrix that starts elsewhere in a 64-byte line may be multiplied in another order
# floats updated at once: temporaries stay in a CPU's cache, and small beside the state on a GPU
_CHUNK = {"cpu": 2**17, "cuda": 2**23}


# rows of the buffers lie P apart, which this says once a process; the sums it warns of are as fast
warnings.filterwarnings("ignore", message="grad and param do not obey the gradient layout contract")


class FlatParameters:
    """The parameters of a packed model as views into one buffer, their gradients as views into another.

    values, gradient: float32 [R, P]; P includes the zeros that align every parameter to 64 bytes.
    """

    def __init__(self, model: nn.Module):
        parameters = list(model.parameters())
        replicates = parameters[0].shape[0]
        sizes = [parameter[0].numel() for parameter in parameters]
        self.count = sum(sizes)
        padded = [-(-size // _ALIGN) * _ALIGN for size in sizes]
        self.values = torch.zeros(replicates, sum(padded), device=parameters[0].device)
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

    adamw: Loshchilov & Hutter 2019, adam: Kingma & Ba 2015 with decay added to the gradient, sgd: with momentum; each as
    torch.optim computes it. Decays every parameter, as the library default does that the flip-flop baseline used.
    """

    def __init__(self, flat: FlatParameters, trains):
        self.flat, self.name = flat, trains[0].optimizer
        device = flat.values.device
        self.mean = torch.zeros_like(flat.values)
        self.square = None if self.name == "sgd" else torch.zeros_like(flat.values)
        betas = torch.tensor([train.betas for train in trains], dtype=torch.float64)
        self._keep1, self._keep2 = (_column(beta, device) for beta in betas.unbind(-1))
        self._take1, self._take2 = (_column(1 - beta, device) for beta in betas.unbind(-1))
        self._epsilon = _column(torch.tensor([train.eps for train in trains], dtype=torch.float64), device)
        self._decay = _column(torch.tensor([train.weight_decay for train in trains], dtype=torch.float64), device)
        self._momentum = _column(torch.tensor([train.momentum for train in trains], dtype=torch.float64), device)
        self._clip = None
        if trains[0].clip:
            self._clip = _column(torch.tensor([train.clip for train in trains], dtype=torch.float64), device)
        self._chunk = max(_ALIGN, _CHUNK[device.type] // len(trains) // _ALIGN * _ALIGN)

    def state(self) -> dict[str, Tensor]:
        return {"mean": self.mean} | ({} if self.square is None else {"square": self.square})

    @torch.no_grad()
    def step(self, scalars: Tensor) -> None:
        """One update with the step's `Scalars.at`, float32 [5, R]."""
        if self._clip is not None:
            # each replicate's own norm: another's must not touch it
            norm = torch.linalg.vector_norm(self.flat.gradient, dim=1, keepdim=True)
            self.flat.gradient.mul_((self._clip / (norm + 1e-6)).clamp_(max=1.0))
        scalars = scalars[..., None]
        update = {"adamw": self._adamw, "adam": self._adam, "sgd": self._sgd}[self.name]
        for values, gradient, mean, square in self._chunks():
            update(scalars, values, gradient, mean, square)

    def _chunks(self) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
        square = self.mean if self.square is None else self.square
        whole = (self.flat.values, self.flat.gradient, self.mean, square)
        if self.flat.values.shape[1] <= self._chunk:
            yield whole
            return
        yield from zip(*(buffer.split(self._chunk, dim=1) for buffer in whole), strict=True)

    def _adamw(self, scalars: Tensor, values: Tensor, gradient: Tensor, mean: Tensor, square: Tensor) -> None:
        values.mul_(scalars[Scalars.KEEP])
        self._descend(scalars, values, gradient, mean, square)

    def _adam(self, scalars: Tensor, values: Tensor, gradient: Tensor, mean: Tensor, square: Tensor) -> None:
        gradient.add_(values * self._decay)
        self._descend(scalars, values, gradient, mean, square)

    def _descend(self, scalars: Tensor, values: Tensor, gradient: Tensor, mean: Tensor, square: Tensor) -> None:
        mean.mul_(self._keep1).add_(gradient * self._take1)
        square.mul_(self._keep2).add_(gradient.square_().mul_(self._take2))
        root = square.sqrt().div_(scalars[Scalars.ROOT]).add_(self._epsilon)
        values.sub_(root.reciprocal_().mul_(mean).mul_(scalars[Scalars.STEP_SIZE]))

    def _sgd(self, scalars: Tensor, values: Tensor, gradient: Tensor, mean: Tensor, square: Tensor) -> None:
        gradient.add_(values * self._decay)
        mean.mul_(self._momentum).add_(gradient)
        values.sub_(mean * scalars[Scalars.LR])


class Average:
    """The exponential moving average of the weights, [R, P]: a ← d·a + (1 - d)·θ after every step, from the initial weights on."""

    def __init__(self, flat: FlatParameters, trains):
        self.flat = flat
        self.values = flat.values.clone()
        decay = torch.tensor([train.ema for train in trains], dtype=torch.float64)
        self._take = _column(1 - decay, flat.values.device)

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


def _column(values: Tensor, device: torch.device) -> Tensor:
    """float64 [R] to float32 [R, 1]: scalars are formed in float64 and rounded once, as Python floats are in torch.optim."""
    return values.to(torch.float32).to(device)[:, None]
