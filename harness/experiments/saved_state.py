"""What the `save` of a person's own experiment returns, as tensors and JSON for a checkpoint, and back: nothing is pickled."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from harness.experiments.entries import BadResult


def encode(value: Any, tensors: dict[str, Tensor], where: str = "what save() returned") -> list[Any]:
    """`value` as JSON, [kind, content]; its arrays and tensors are added to `tensors`. BadResult, naming the place, for other things."""
    if isinstance(value, np.generic):
        value = np.asarray(value)
    if isinstance(value, Tensor | np.ndarray):
        name = str(len(tensors))
        try:
            tensors[name] = (value.detach() if isinstance(value, Tensor) else torch.from_numpy(value)).cpu().clone()
        except TypeError:
            raise BadResult(f"{where} is an array of {value.dtype}: save whole numbers, floats or booleans") from None
        return ["tensor" if isinstance(value, Tensor) else "array", name]
    if value is None or type(value) in (bool, int, float, str):
        return ["plain", value]
    if type(value) in (list, tuple):
        return [type(value).__name__, [encode(item, tensors, f"{where}[{index}]") for index, item in enumerate(value)]]
    if isinstance(value, Mapping):
        if odd := next((key for key in value if type(key) not in (str, int)), None):
            raise BadResult(f"{where} has the key {odd!r}, and a key is a text or a whole number")
        return ["mapping", [[key, encode(item, tensors, f"{where}[{key!r}]")] for key, item in value.items()]]
    raise BadResult(
        f"{where} is of type {type(value).__name__}: save numbers, texts, arrays and tensors, and lists, tuples and mappings of them"
    )


def decode(data: list[Any], tensors: Mapping[str, Tensor]) -> Any:
    """The inverse of `encode`; tensors are on the CPU."""
    kind, content = data
    if kind in ("tensor", "array"):
        return tensors[content] if kind == "tensor" else tensors[content].numpy()
    if kind == "mapping":
        return {key: decode(item, tensors) for key, item in content}
    if kind in ("list", "tuple"):
        items = [decode(item, tensors) for item in content]
        return tuple(items) if kind == "tuple" else items
    return content
