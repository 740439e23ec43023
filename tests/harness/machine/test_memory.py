"""What a pack takes: 16 bytes a parameter (value, gradient, two moments), little more, and its activations."""

import sys

import pytest
import torch

import models
import tasks
from harness.machine.device import prepare, resolve
from harness.machine.memory import Memory, free_in_group, free_memory
from harness.planning.throughput import Rate, best_rate, measure, predicted_memory, room_of
from harness.study.config import Condition
from harness.study.training_options import Train
from harness.training.pack_state import Training
from harness.training.training_strings import Strings
from models.custom.custom import allow
from results.errors import StudyError
from tests.harness.packs import condition, pack

CPU = resolve("cpu")
MODEL = {"layers": 3, "width": 256, "heads": 8}  # of the baseline half the width and depth


def saved_bytes(state: Training, strings: Strings) -> int:
    """Bytes of all tensors that autograd keeps for the backward pass, parameters aside."""
    kept: dict[int, int] = {}
    own = {parameter.untyped_storage().data_ptr() for parameter in state.model.parameters()}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = state.losses(strings)
    del loss
    return sum(kept.values())


def test_a_pack_of_three_layers_of_width_256_holds_little_beside_its_state_and_activations():
    with Memory(CPU) as memory:
        state = Training(pack(condition(length=64, model_fields=MODEL, batch=1), [(0, 0), (1, 1)], sets=()), CPU)
        state.advance()
        state.advance()
        peak = memory.peak()
    bound = 1.15 * 2 * state.flat.count * 16 + saved_bytes(state, state.feed.at(1))
    assert 2 * state.flat.count * 16 < peak <= bound


def test_the_peak_is_that_of_the_tensors_alive_together():
    with Memory(CPU) as memory:
        first = torch.zeros(1000)
        first = torch.ones(500)
        view = first[10:].view(7, 70).t()
        view.add_(1)
        second = first + 1
        del first, view
        third = second * 2
    assert third.sum() == 2 * (10 * 2 + 490 * 3)
    assert memory.peak() == 6000  # 1000 and 500 floats for a moment; a view is no memory


def test_sparse_tensors_have_no_storage_to_count():
    with Memory(CPU) as memory:
        rows = torch.ones(2, 100).to_sparse()
        dense = (rows + rows).to_dense()
    assert dense.sum() == 400
    assert memory.peak() >= 2 * 100 * 4


def test_a_module_with_sparse_gradients_is_refused_in_a_sentence():
    path = "tests.models.custom.custom_modules:Sparse"
    allow(path.partition(":")[0])
    task = tasks.build("flipflop", length=8)
    one = Condition("c", task, models.configure(path), Train(steps=2, batch=2, warmup=0))
    with pytest.raises(ValueError, match=r"the gradient of embed.weight is sparse: write sparse=False"):
        measure(pack(one, [(0, 0)], sets=()), CPU)


def test_what_a_captured_graph_keeps_is_part_of_the_peak(monkeypatch):
    """Its pool is reserved and not allocated between replays; what was reserved before the block is not the pack's."""
    reserved = {"now": 300, "most": 300}
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda device: None)
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: reserved["now"])
    monkeypatch.setattr(torch.cuda, "max_memory_reserved", lambda device: reserved["most"])
    with Memory(torch.device("cuda")) as memory:
        reserved["now"] = reserved["most"] = 1000  # the capture
        reserved["most"] += 50  # a step beside it
    assert memory.peak() == 750


FLIPS = condition(length=64)
PARITY = Condition("c", tasks.build("sparse_parity", length=12), models.configure("mlp", width=8), Train(steps=9, batch=4))


@pytest.mark.parametrize(("one", "blocks"), [(FLIPS, {1, 2}), (PARITY, {1})], ids=["flipflop", "parity"])
def test_the_step_that_overflows_its_block_is_measured(one, blocks, monkeypatch):
    """It is rare, so the few steps that are timed seldom have one. A class of each string never overflows."""
    seen, losses = set(), Training.losses

    def noted(state, strings, *more):
        seen.add(len(strings.needed.blocks))
        return losses(state, strings, *more)

    monkeypatch.setattr(Training, "losses", noted)
    monkeypatch.setattr(Training, "advance", lambda state: state.losses(state.usual_strings()))
    measure(pack(one, [(0, 0), (1, 1)], sets=()), CPU)
    assert seen == blocks


@pytest.mark.slow
def test_memory_is_predicted_within_a_tenth():
    shape = condition(length=64, model_fields={"layers": 2, "width": 128, "heads": 4}, batch=16)
    rates = [measure(pack(shape, range(size), sets=()), CPU) for size in (4, 8, 16)]
    assert abs(predicted_memory(rates[:2], 16) / rates[2].memory - 1) < 0.1


def test_a_pack_that_would_not_fit_is_not_tried():
    tried = []

    def fake(size):
        tried.append(size)
        return Rate(size, 1.0, 0.0, 100 * size)

    assert best_rate(fake, 64, "cpu", lambda: room_of(2000), steps=10_000).size == 16
    assert tried == [1, 4, 16]  # 64 would take 6,400 bytes of 1,700
    tried.clear()
    assert best_rate(fake, 64, "cpu", lambda: room_of(2000, share=2), steps=10_000).size == 4
    assert tried == [1, 4]


def test_a_larger_pack_is_measured_only_where_enough_is_left_to_train():
    tried = []

    def fake(size):
        tried.append(size)
        return Rate(size, 1.0, 0.0, size)

    assert best_rate(fake, 8, "cpu", lambda: 10**6, steps=60).size == 1
    assert best_rate(fake, 8, "cpu", lambda: 10**6, steps=70).size == 4
    assert tried == [1, 1, 4]  # 480 and 560 steps of one slot


def test_what_the_allocator_keeps_is_free_to_the_next_pack(monkeypatch):
    """Else every later shape of a study would get smaller packs than the first."""
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (100, 1000))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 700)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 50)
    assert free_memory(torch.device("cuda")) == 750


def test_a_device_that_is_not_there_is_one_sentence(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert resolve("cuda:1") == torch.device("cuda", 1)
    with pytest.raises(StudyError, match="cuda:2 but torch sees 2"):
        resolve("cuda:2")


def test_a_slot_is_its_own_card(monkeypatch):
    """Capture streams, statistics and kernels without a device of their own are the current device's."""
    calls = []
    for name in ("init", "set_device", "set_per_process_memory_fraction"):
        monkeypatch.setattr(torch.cuda, name, lambda *given, name=name: calls.append((name, *given)))
    before = torch.are_deterministic_algorithms_enabled()
    try:
        prepare(torch.device("cuda", 3))
        assert torch.are_deterministic_algorithms_enabled()
    finally:
        torch.use_deterministic_algorithms(before)
        torch.backends.cuda.enable_cudnn_sdp(True)
    assert calls == [("init",), ("set_device", 3)]


@pytest.mark.parametrize(
    ("folder", "limit", "used", "pages"),
    [
        (".", "memory.max", "memory.current", "inactive_file"),
        ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ],
)
def test_a_container_has_no_more_memory_than_it_is_given(tmp_path, folder, limit, used, pages):
    """The machine's own memory was taken for that of a pod, so packs were planned that it could never hold."""
    (tmp_path / folder).mkdir(exist_ok=True)
    assert free_in_group(tmp_path) == sys.maxsize
    for name, content in ((limit, "8000"), (used, "5000"), ("memory.stat", f"cache 9\n{pages} 1000\n")):
        (tmp_path / folder / name).write_text(content)
    assert free_in_group(tmp_path) == 4000
    (tmp_path / folder / used).write_text("9500")
    assert free_in_group(tmp_path) == 0
    (tmp_path / folder / limit).write_text("max\n")
    assert free_in_group(tmp_path) == sys.maxsize
