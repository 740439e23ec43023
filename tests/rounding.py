"""When two computations of one number agree: a bound that follows from the arithmetic and not from the machine."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch

# one after another, more than any chain of operations in a test of a model; of float32 just so many: two layers of sums over at most
# 128 terms, their norms and a softmax, there and back
ROUNDINGS = {torch.float64: 2**20, torch.float32: 2**10}


def assert_same(actual: torch.Tensor, expected: torch.Tensor, name: str = "", roundings: int | None = None) -> None:
    """Equal up to `roundings` units in the last place of the largest entry, one for each rounding on the way to an entry.

    In float64 2^20 roundings are 2e-10 of the largest entry, and a mistake is far more than that. In float32, for peers that know
    nothing else, 2^10 are 1.2e-4: give them losses that are sums, since gradients far below 1 are compared as if they were 1.
    """
    assert actual.dtype == expected.dtype, f"{name}: {actual.dtype} is compared with {expected.dtype}"
    count = ROUNDINGS[expected.dtype] if roundings is None else roundings
    bound = count * torch.finfo(expected.dtype).eps * max(1.0, float(expected.detach().abs().max()))
    torch.testing.assert_close(actual, expected, rtol=0, atol=bound, msg=lambda text: f"{name}: {text}")


def rounded(expected: Any, roundings: int | None = None, dtype: torch.dtype = torch.float64) -> Any:
    """Numbers that equal `expected` up to so many units in the last place of the largest, as `assert_same`; for floats in any container.

    For what a probe writes: one float64 from sums, means and square roots of a few thousand terms. Where the numbers came out of a
    float32 model, say so, with the roundings on the way.
    """
    values = list(expected.values()) if isinstance(expected, Mapping) else expected
    largest = float(np.max(np.abs(np.asarray(values, dtype=np.float64)), initial=1.0))
    count = ROUNDINGS[dtype] if roundings is None else roundings
    return pytest.approx(expected, rel=0, abs=count * torch.finfo(dtype).eps * largest)


def rounded_single(expected: Any) -> Any:
    """As `rounded`, of numbers that came out of a float32 layer: 2^7 roundings are its maps, a softmax over some 60 keys and their sum."""
    return rounded(expected, 2**7, torch.float32)
