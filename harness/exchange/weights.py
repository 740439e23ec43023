"""The weights of one replicate: out of a pack, and into a fresh pack of one."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from harness.draw import Draw
from results.errors import StudyError, settings_errors


def take(model: nn.Module, slot: int) -> dict[str, Tensor]:
    """Every parameter of the replicate in `slot` (from 0), by name, without the replicate axis, on the CPU."""
    parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}
    replicates = len(next(iter(parameters.values())))
    if not 0 <= slot < replicates:
        raise ValueError(f"slot = {slot} is outside 0 … {replicates - 1}: the pack has {replicates} replicates")
    return {name: parameter[slot].cpu() for name, parameter in parameters.items()}


def single(
    config: Any, vocabulary: int, length: int, tensors: Mapping[str, Tensor], init_seed: int = 0, **sizes: int
) -> nn.Module:
    """A pack with R = 1 that holds these weights. ValueError naming the tensor that is missing, too many or of another shape.

    init_seed: the replicate's, which a user's module may draw fixed features from.
    """
    with settings_errors():
        module = config.make(Draw(torch.tensor([init_seed]), "init"), vocabulary, length, **sizes)
    wanted = {name: tuple(parameter.shape[1:]) for name, parameter in module.named_parameters()}
    given = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    for name in sorted(wanted.keys() | given.keys()):
        if wanted.get(name) != given.get(name):
            raise StudyError(
                f"the weights do not fit the model: {name} is {_shape(given, name)} in the file and {_shape(wanted, name)} in the model"
            )
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.copy_(tensors[name][None])
    return module


def _shape(shapes: Mapping[str, tuple[int, ...]], name: str) -> str:
    return str(list(shapes[name])) if name in shapes else "missing"
