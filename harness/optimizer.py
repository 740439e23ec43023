"""One optimiser path a device: AdamW over a flat [R, P] buffer, every hyper-parameter a vector over R."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

_ALIGN = 16  # floats; a matrix that starts elsewhere in a 64-byte line may be multiplied in another order
_EPSILON = 1e-8


class FlatParameters:
    """The parameters of a packed model as views into one buffer.

    values, gradient: float32 [R, P]; P includes the zeros that align every parameter to 64 bytes.
    """

    def __init__(self, model: nn.Module):
        self.parameters = list(model.parameters())
        replicates = self.parameters[0].shape[0]
        sizes = [parameter[0].numel() for parameter in self.parameters]
        self.count = sum(sizes)
        padded = [-(-size // _ALIGN) * _ALIGN for size in sizes]
        self.values = torch.zeros(replicates, sum(padded), device=self.parameters[0].device)
        self.gradient = torch.zeros_like(self.values)
        self._gradients = []
        start = 0
        for parameter, size, room in zip(self.parameters, sizes, padded, strict=True):
            view = self.values[:, start : start + size].view(parameter.shape)
            view.copy_(parameter.data)
            parameter.data = view
            self._gradients.append(self.gradient[:, start : start + size].view(parameter.shape))
            start += room

    def differentiate(self, loss: Tensor) -> None:
        """Fill `gradient` with the derivatives of the scalar `loss`."""
        torch._foreach_copy_(self._gradients, torch.autograd.grad(loss, self.parameters))


class AdamW:
    """Loshchilov & Hutter 2019, as torch.optim.AdamW computes it; lr, betas, weight decay are [R].

    Decays every parameter, as the library default does that the flip-flop baseline used.
    """

    def __init__(self, flat: FlatParameters, betas: Sequence[tuple[float, float]], weight_decay: Sequence[float]):
        self.flat = flat
        device = flat.values.device
        self._beta1 = torch.tensor([b[0] for b in betas], dtype=torch.float64)
        self._beta2 = torch.tensor([b[1] for b in betas], dtype=torch.float64)
        self._decay = torch.tensor(list(weight_decay), dtype=torch.float64)
        self._keep1 = _column(self._beta1, device)
        self._keep2 = _column(self._beta2, device)
        self._take1 = _column(1 - self._beta1, device)
        self._take2 = _column(1 - self._beta2, device)
        self.mean = torch.zeros_like(flat.values)
        self.square = torch.zeros_like(flat.values)

    @torch.no_grad()
    def step(self, step: int, lr: Tensor) -> None:
        """One update; step counts from 1, lr float64 [R] on the CPU."""
        values, gradient = self.flat.values, self.flat.gradient
        device = values.device
        self.mean.mul_(self._keep1).add_(gradient * self._take1)
        self.square.mul_(self._keep2).add_(gradient.square_().mul_(self._take2))
        scale = _column(lr / (1 - self._beta1**step), device)
        root = _column((1 - self._beta2**step).sqrt(), device)
        values.mul_(_column(1 - lr * self._decay, device))
        values.sub_((self.square.sqrt().div_(root).add_(_EPSILON)).reciprocal_().mul_(self.mean).mul_(scale))


def _column(values: Tensor, device: torch.device) -> Tensor:
    """float64 [R] to float32 [R, 1]: scalars are formed in float64 and rounded once, as Python floats are in torch.optim."""
    return values.to(torch.float32).to(device)[:, None]


def learning_rate(train, step: int) -> float:
    """lr at `step` (1 … steps): linear warm-up, then linear to zero at step steps + 1, or constant.

    lr · min(t / warmup, 1) · min(1, (S + 1 - t) / (S + 1 - warmup)): 50 warm-up steps, zero at the hypothetical step 10,001 (thesis,
    section 3.5.6).
    """
    rate = train.lr * (min(step / train.warmup, 1.0) if train.warmup else 1.0)
    if train.schedule == "linear":
        rate *= min(1.0, (train.steps + 1 - step) / (train.steps + 1 - train.warmup))
    return rate
