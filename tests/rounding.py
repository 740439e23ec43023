"""When two computations of one number agree: a bound that follows from the arithmetic and not from the machine."""

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
