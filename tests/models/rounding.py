"""When two computations of one number agree: a bound that follows from the arithmetic and not from the machine."""

import torch

ROUNDINGS = 2**20  # one after another: more than any chain of operations in a test of a model


def assert_same(actual: torch.Tensor, expected: torch.Tensor, name: str = "", roundings: int = ROUNDINGS) -> None:
    """Equal up to `roundings` units in the last place of the largest entry, one for each rounding on the way to an entry.

    Made for float64, where 2^20 roundings are 2e-10 of the largest entry, and a mistake is far more than that.
    """
    assert actual.dtype == expected.dtype, f"{name}: {actual.dtype} is compared with {expected.dtype}"
    bound = roundings * torch.finfo(expected.dtype).eps * max(1.0, float(expected.detach().abs().max()))
    torch.testing.assert_close(actual, expected, rtol=0, atol=bound, msg=lambda text: f"{name}: {text}")
