"""Trainings in float64: a float32 training differs by its roundings, one in float64 only by a mistake."""

import contextlib

import pytest
import torch

from harness.training import pack_state
from harness.training.optimizer import FlatParameters
from harness.training.pack_state import Training

CPU = torch.device("cpu")
# Two float32 computations of as many roundings in another order differ from float64 by about as much, whatever the machine; the larger
# of thousands of such differences is within this many times the other's.
TIMES = 16


@contextlib.contextmanager
def trainings_in_float64():
    """Trainings that begin inside compute in float64, from the weights that they have in float32."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pack_state, "FlatParameters", lambda model: FlatParameters(model.double()))
        yield


def training_in_float64(pack, teachers=None) -> Training:
    """teachers: whose model and answers become float64 as well."""
    with trainings_in_float64():
        training = Training(pack, CPU, teachers=teachers)
    if teachers is not None:
        teachers.model.double()
    return training


def float32(value: float) -> float:
    """As the table of learning rates has it."""
    return torch.tensor(value, dtype=torch.float32).item()


def assert_as_near(actual: torch.Tensor, peer: torch.Tensor, exact: torch.Tensor) -> None:
    """`actual` is no further from `exact`, in float64, than TIMES as far as another float32 computation, `peer`."""
    assert actual.dtype == peer.dtype == torch.float32
    assert torch.isfinite(exact).all()
    least = torch.finfo(torch.float32).eps * max(1.0, float(exact.abs().max()))
    off, allowed = float((actual - exact).abs().max()), TIMES * max(least, float((peer - exact).abs().max()))
    assert off <= allowed, f"{off:.2g} from what float64 has; {allowed:.2g} would be rounding"
