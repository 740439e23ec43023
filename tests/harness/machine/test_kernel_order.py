"""Which kernels a GPU may run: without a fixed order of sums a training is no longer repeated bit for bit."""

import json

import pytest
import torch

from harness.machine import device as machine
from harness.machine.device import allow_unordered, numerics, prepare
from models.custom.custom import Custom
from models.transformer.transformer import Transformer

GPU = torch.device("cuda")


@pytest.fixture(autouse=True)
def as_before():
    modes = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    filled = torch.utils.deterministic.fill_uninitialized_memory
    cudnn = torch.backends.cuda.cudnn_sdp_enabled()
    yield
    torch.use_deterministic_algorithms(modes[0], warn_only=modes[1])
    torch.utils.deterministic.fill_uninitialized_memory = filled
    torch.backends.cuda.enable_cudnn_sdp(cudnn)


@pytest.fixture
def prepared(monkeypatch):
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    for name in ("init", "set_device", "current_device"):
        monkeypatch.setattr(torch.cuda, name, lambda *given: 0)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    prepare(GPU)


def _recorded():
    return json.loads(numerics(GPU, "bf16"))["deterministic"]


def test_operations_without_a_fixed_order_raise(prepared):
    """With a warning alone, torch would leave attention its backward pass of no fixed order."""
    assert torch.are_deterministic_algorithms_enabled()
    assert not torch.is_deterministic_algorithms_warn_only_enabled()
    assert not torch.utils.deterministic.fill_uninitialized_memory
    assert _recorded()


def test_a_model_of_ones_own_may_use_them_and_rows_say_so(prepared):
    assert Transformer(1, 8, 1).ordered
    assert not Custom("mine:Model").ordered
    allow_unordered(GPU, True)
    assert torch.is_deterministic_algorithms_warn_only_enabled()
    assert not _recorded()
    allow_unordered(GPU, False)  # the next pack is of another model
    assert _recorded()


def test_kernels_that_are_free_to_choose_stay_so(prepared):
    torch.use_deterministic_algorithms(False)
    allow_unordered(GPU, False)
    assert not torch.are_deterministic_algorithms_enabled()


def test_a_cpu_is_left_as_it_is(monkeypatch):
    monkeypatch.setattr(machine.torch, "use_deterministic_algorithms", lambda *given, **more: pytest.fail("was set"))
    allow_unordered(torch.device("cpu"), True)
