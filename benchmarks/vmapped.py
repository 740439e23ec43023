"""The plain model packed by torch.func: stacked weights, vmap over the gradient of one replicate's loss."""

import contextlib
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, stack_module_state, vmap

from benchmarks.cases import Case, pack
from benchmarks.plain import adamw, has_variants, load, loss_of, make, packed_model
from harness.machine.precision import autocast, set_matmul
from harness.training.training_strings import Feed
from models.lstm import LSTM


def start(case: Case, size: int, needed: bool, device: torch.device, precision: str) -> Callable[[], Tensor]:
    """A function that takes one training step of `size` replicates and returns their losses [R]."""
    set_matmul(precision)
    feed = Feed(pack(case, size, needed, precision), device)
    packed = packed_model(case, 0, size, torch.device("cpu"))
    models: list[nn.Module] = [make(case) for _ in range(size)]
    for slot, model in enumerate(models):
        load(model, packed, slot)
        model.to(device)
    base = models[0]
    stacked, _ = stack_module_state(models)
    parameters = {name: nn.Parameter(value.detach()) for name, value in stacked.items()}
    optimizer = adamw(parameters.values(), feed.train)

    def loss(weights: dict[str, Tensor], tokens: Tensor, positions: Tensor | None, targets: Tensor, scored: Tensor) -> Tensor:
        with autocast(device, precision):
            logits = functional_call(base, weights, (tokens, positions))
        return loss_of(logits, targets, scored)

    step = 0

    def advance() -> Tensor:
        nonlocal step
        step += 1
        strings = feed.at(step)
        wanted = strings.needed
        targets, weights, positions = wanted.targets, wanted.weights, wanted.order
        if not has_variants(case):
            targets, weights, positions = targets[..., -1:], weights[..., -1:], None
        dims = (0, 0, None if positions is None else 0, 0, 0)
        with _no_fused_lstm() if isinstance(case.model, LSTM) else contextlib.nullcontext():
            gradients, losses = vmap(grad_and_value(loss), dims)(dict(parameters), strings.inputs, positions, targets, weights)
        for name, parameter in parameters.items():
            parameter.grad = gradients[name]
        optimizer.step()
        return losses.detach()

    return advance


@contextlib.contextmanager
def _no_fused_lstm() -> Iterator[None]:
    """Turn off the fused LSTMs of cuDNN and oneDNN, which vmap can't pack."""
    with torch.backends.cudnn.flags(enabled=False), torch.backends.mkldnn.flags(enabled=False, allow_tf32=None):
        yield
