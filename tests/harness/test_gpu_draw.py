"""The draws of a GPU have the bits of torch's, and torch draws where Triton can't.

The kernels run on a GPU, or with TRITON_INTERPRET=1 on a CPU; the rest asks what a draw hands to them.
"""

import os
import sys
from importlib import import_module

import pytest
import torch
from hypothesis import given, settings

import harness
from harness import compiled_draw, draw
from harness.draw import Draw
from tests.harness.draw_sources import rates, sites, sources

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cuda" if torch.cuda.is_available() and not INTERPRETED else "cpu"


def on_a_gpu(monkeypatch, drawer):
    """Take a CPU's tensors for a GPU's, and draw with these functions."""
    monkeypatch.setattr(compiled_draw, "lie_on", lambda device, *tensors: device == "cuda")
    monkeypatch.setattr(draw, "_triton", lambda: drawer)


@pytest.mark.slow
@pytest.mark.skipif(DEVICE == "cpu" and not INTERPRETED, reason="there is no GPU, and TRITON_INTERPRET is not 1")
@settings(max_examples=60, deadline=None)
@given(case=sources(), site=sites, rate=rates)
def test_kernels_have_the_bits_of_torch(case, site, rate):
    kernels = import_module("harness.gpu_draw")
    source, shape = case
    whole = Draw(source.seeds, source.stream, source.step)
    expected = source.words(shape, site), whole.factors(rate[: len(source.seeds)], shape, site)
    with pytest.MonkeyPatch.context() as patched:
        if INTERPRETED:
            on_a_gpu(patched, kernels)
        source, whole = (
            Draw(one.seeds.to(DEVICE), one.stream, _on(one.step), one.first, _on(one.picked)) for one in (source, whole)
        )
        found = source.words(shape, site), whole.factors(rate[: len(source.seeds)].to(DEVICE), shape, site)
    for theirs, ours in zip(expected, found, strict=True):
        assert ours.dtype == theirs.dtype
        assert torch.equal(ours.cpu(), theirs)


def _on(value):
    return value.to(DEVICE) if isinstance(value, torch.Tensor) else value


def test_draws_on_a_gpu_ask_its_kernels_and_a_traced_draw_does_not(monkeypatch):
    source, dropped = Draw(torch.tensor([1, 2]), "data", 5, first=3), torch.tensor([0.5, 0.1])
    plain = Draw(source.seeds, "dropout", 5)
    expected = source.words((3, 5), 2), source.normal((4,)), plain.factors(dropped, (7, 3), 4)
    compiled_draw.prepare()
    asked = []

    class Kernels:
        def words(*arguments):
            asked.append("words")
            return compiled_draw.words(*arguments)

        def factors(*arguments):
            asked.append("factors")
            return compiled_draw.factors(*arguments)

    on_a_gpu(monkeypatch, Kernels)
    found = source.words((3, 5), 2), source.normal((4,)), plain.factors(dropped, (7, 3), 4)
    assert all(map(torch.equal, expected, found))
    assert asked == ["words", "words", "factors"]
    monkeypatch.undo()
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert not compiled_draw.lie_on("cpu", source.seeds)


def test_without_triton_torch_draws_and_where_it_fails_a_warning_says_why(monkeypatch):
    monkeypatch.setattr(draw, "find_spec", lambda name: None)
    assert draw._triton.__wrapped__() is None
    monkeypatch.setattr(draw, "find_spec", lambda name: name)

    monkeypatch.delattr(harness, "gpu_draw", raising=False)
    monkeypatch.setitem(sys.modules, "harness.gpu_draw", None)
    with pytest.warns(UserWarning, match="drawn by torch, .* as Triton fails: ModuleNotFoundError: import of harness.gpu_draw"):
        assert draw._triton.__wrapped__() is None
