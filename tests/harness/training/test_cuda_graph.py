"""The replayed step without a GPU: a "capture" that calls the step again shows that everything it needs is in its fixed places."""

import contextlib
import gc
import weakref
from dataclasses import replace

import pytest
import torch

from harness.machine.device import resolve
from harness.training.cuda_graph import agree, cuda_captures, no_collection
from harness.training.pack_state import Training
from harness.training.train import train
from results.store.tables import open_store
from tests.harness.packs import condition, pack
from tests.harness.training.fake_graph import called_again
from tests.harness.training.option_pairs import PAIRS, losses_of_steps

CPU = resolve("cpu")


@pytest.mark.parametrize("name", PAIRS)
def test_a_replayed_training_equals_an_eager_one(name):
    one = pack([condition(name=f"c{index}", **fields) for index, fields in enumerate(PAIRS[name])], [(1, 1), (2, 2)])
    losses, eager = losses_of_steps(one)
    state = Training(one, CPU)
    assert state.fix(called_again)
    found = []
    for _ in range(10):
        state.advance()
        found.append(state.recent[state.step % 100].clone())
        assert state.record()
    assert torch.equal(torch.stack(found), losses)
    assert torch.equal(state.flat.values, eager.flat.values)
    assert state.rows == eager.rows


@pytest.mark.parametrize(("count", "blocks"), [(4, {1, 2}), (2, {2, 3, 4})])
def test_steps_of_two_blocks_have_a_replay_of_their_own_and_those_of_more_are_computed_eagerly(count, blocks):
    one = pack(condition(length=32, steps=40, batch=16), [(1, 1), (2, 2)])
    states = [Training(one, CPU) for _ in range(2)]
    for state in states:
        state.feed.count = count  # below the quantile, so that overflow is common
    assert states[1].fix(called_again)
    taken = set()
    for step in range(1, 41):
        strings = states[1].feed.at(step)
        fits = [replay.fits(strings) for replay in states[1].replays]
        taken.add(len(strings.needed.blocks))
        assert fits == [len(strings.needed.blocks) == number for number in (1, 2)]
        for state in states:
            state.advance()
        assert torch.equal(states[0].recent, states[1].recent)
    assert torch.equal(states[0].flat.values, states[1].flat.values)
    assert taken == blocks


def _breaks(captured):
    captured()
    raise RuntimeError("operation not permitted when stream is capturing\nand more")


@pytest.mark.parametrize(
    ("capture", "why"),
    [
        (lambda captured: captured() or (lambda: None), "its replay has other gradients than the step itself"),
        (_breaks, "it can't be captured (RuntimeError: operation not permitted when stream is capturing)"),
    ],
)
def test_a_replay_that_breaks_or_computes_something_else_is_not_used(capture, why):
    state = Training(pack(condition(), [(1, 1), (2, 2)]), CPU)
    before = state.flat.values.clone()
    assert not state.fix(capture)
    assert (state.replays, state.eager_because) == ([], why)
    assert torch.equal(state.flat.values, before)
    assert all(not tensor.any() for tensor in state.optimizer.state().values())


def test_memory_that_runs_out_in_a_capture_splits_the_pack():
    def capture(captured):
        raise torch.OutOfMemoryError

    with pytest.raises(torch.OutOfMemoryError):
        Training(pack(condition(), [(1, 1), (2, 2)]), CPU).fix(capture)


class _Gpu:
    """Stands in for what `torch.cuda.graph` itself calls; the end of a broken capture raises, as CUDA's does."""

    def __init__(self, monkeypatch):
        self.stream, self.calls, self.broken = "default", [], False
        for name in ("synchronize", "empty_cache", "graph_pool_handle", "current_device"):
            monkeypatch.setattr(torch.cuda, name, lambda: 0)
        monkeypatch.setattr(torch._C, "_host_emptyCache", lambda: None, raising=False)
        monkeypatch.setattr(torch.cuda, "Stream", lambda: self)
        monkeypatch.setattr(torch.cuda, "current_stream", lambda: self if self.stream == "default" else None)
        monkeypatch.setattr(torch.cuda, "set_stream", lambda stream: setattr(self, "stream", "default"))
        monkeypatch.setattr(torch.cuda, "stream", self.on)
        monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: self)
        for name in ("endAllocateToPool", "releasePool"):
            monkeypatch.setattr(torch._C, f"_cuda_{name}", lambda device, pool, name=name: self.calls.append(name))

    def wait_stream(self, stream):
        """Nothing to wait for."""

    def capture_begin(self, *pool, **options):
        self.calls.append("begin")

    def capture_end(self):
        self.calls.append("end")
        if self.broken:
            raise RuntimeError("operation failed due to a previous error during capture")

    def replay(self):
        """Nothing to do again."""

    @contextlib.contextmanager
    def on(self, stream):
        self.stream = "side"
        yield
        self.stream = "default"  # and not where the end of the capture raises, as in torch


def test_a_capture_that_breaks_says_why_and_gives_the_stream_back(monkeypatch):
    gpu = _Gpu(monkeypatch)

    def run():
        if "begin" in gpu.calls:
            gpu.broken = True
            raise ValueError("a copy to the GPU")

    with pytest.raises(ValueError, match="a copy to the GPU"):
        cuda_captures()(run)
    assert gpu.stream == "default"
    assert gpu.calls == ["begin", "end", "endAllocateToPool", "releasePool"]


def test_a_capture_that_holds_leaves_the_pool_to_its_graph(monkeypatch):
    gpu, runs = _Gpu(monkeypatch), []
    assert cuda_captures()(lambda: runs.append(gpu.stream)) == gpu.replay
    assert (runs, gpu.stream, gpu.calls) == (["side"] * 4, "default", ["begin", "end"])


def test_what_the_eager_step_leaves_is_given_back_before_each_capture(monkeypatch):
    """Streams do not share what the allocator keeps: the warm-up would reserve the same memory beside it."""
    order = []
    monkeypatch.setattr("harness.training.pack_state.release", lambda device: order.append("release"))
    state = Training(pack(condition(length=32), [(1, 1), (2, 2)]), CPU)
    assert state.fix(lambda captured: order.append("capture") or called_again(captured))
    assert order == ["release", "capture"] * 2


def test_a_worker_is_told_why_its_pack_has_no_graph(tmp_path, monkeypatch):
    made = Training.__init__

    def refused(state, *given):
        made(state, *given)
        state.fix(_breaks)

    monkeypatch.setattr(Training, "__init__", refused)
    said = []
    one = pack(condition(steps=2), [(1, 1)])
    train(one, open_store(str(tmp_path), "trial"), CPU, say=said.append)
    assert len(said) == 1
    assert "has no CUDA graph" in said[0]
    assert said[0].endswith("it can't be captured (RuntimeError: operation not permitted when stream is capturing)")


@pytest.mark.parametrize(("precision", "noise", "same"), [("fp32", 1e-6, True), ("fp32", 1e-2, False), ("bf16", 4e-3, True)])
def test_rounding_noise_in_the_gradients_does_not_reject_a_graph(precision, noise, same):
    """Compared by weights after Adam's first step, the smallest of these would seem a hundred times larger than it is."""
    eager = torch.randn(3, 10_000, generator=torch.Generator().manual_seed(0))
    off = torch.randn(3, 10_000, generator=torch.Generator().manual_seed(1))
    assert agree(eager, eager * (1 + noise * off), precision) is same
    assert not agree(eager, eager.roll(1, 0), precision)


def test_a_replicate_that_breaks_in_its_first_step_does_not_reject_the_graph_of_the_others():
    eager = torch.ones(2, 10)
    eager[1] = torch.nan
    assert agree(eager, eager.clone(), "fp32")
    assert not agree(eager, torch.ones(2, 10), "fp32")


def test_checking_a_replay_moves_no_weight():
    state = Training(pack(condition(ema=0.9), [(1, 1), (2, 2)]), CPU)
    before, average = state.flat.values.clone(), state.average.values.clone()
    seen = []
    compute = state.compute
    state.compute = lambda *arguments: (compute(*arguments), seen.append(torch.equal(state.flat.values, before)))[0]
    assert state.fix(called_again)
    assert seen == [True] * len(seen)
    assert len(seen) >= 3
    assert torch.equal(state.average.values, average)


def test_no_garbage_is_collected_while_a_graph_is_captured():
    assert gc.isenabled()
    with no_collection():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_training_that_is_done_with_is_freed_at_once():
    """Its tensors would else wait for the garbage collector: beside the next pack's, or in the midst of a capture."""
    gc.collect()
    gc.disable()
    try:
        state = Training(pack(condition(), [(1, 1), (2, 2)]), CPU)
        state.advance()
        gone = weakref.ref(state)
        del state
        assert gone() is None
    finally:
        gc.enable()


@pytest.mark.filterwarnings("ignore")  # of the compiler, about what it does not follow
def test_a_model_with_dropout_and_shifts_is_compiled_once(monkeypatch):
    from torch._dynamo.testing import CompileCounter  # as long as torch itself takes, in each process that collects the tests

    counter, compiler = CompileCounter(), torch.compile
    monkeypatch.setattr(torch, "compile", lambda model, **options: compiler(model, backend=counter, **options))
    shape = condition(model_fields={"layers": 1, "width": 16, "heads": 2, "residual_dropout": 0.1, "shift": 3})
    one = pack(shape, [(1, 1), (2, 2)])
    state = Training(replace(one, numerics={**one.numerics, "compile": True}), CPU)
    counts = []
    for _ in range(5):
        state.advance()
        counts.append(counter.frame_count)
    assert counts == counts[:1] * 5


@pytest.mark.filterwarnings("ignore")  # of the compiler, about what it does not follow
def test_a_model_is_compiled_once_for_each_graph(monkeypatch):
    from torch._dynamo.testing import CompileCounter

    counter, compiler = CompileCounter(), torch.compile
    monkeypatch.setattr(torch, "compile", lambda model, **options: compiler(model, backend=counter, **options))
    shape = condition(length=32, model_fields={"layers": 1, "width": 16, "heads": 2, "residual_dropout": 0.1, "shift": 3})
    one = pack(shape, [(1, 1), (2, 2)])
    state = Training(replace(one, numerics={**one.numerics, "compile": True}), CPU)
    assert state.fix(called_again)
    assert (len(state.replays), counter.frame_count) == (2, 2)
