"""The floor model against the table of the planning page, and its count of operations against torch's."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.cases import CASES, Case
from benchmarks.floor import needed_flop, scored_mean, seconds, transformer
from benchmarks.plain import make, strings_of
from benchmarks.plain import pack as pack_of
from harness.training.training_strings import Feed
from models.transformer.transformer import Transformer
from tasks.flipflop.flipflop import FlipFlop

# layers, width, heads, length: parameters, FLOP a step, s a replicate at the peak, µs a step eager and fused, s a replicate alone
TABLE = {
    (6, 512, 8, 512): (19.2e6, 1.005e12, 12.7, 2692, 2447, 36),
    (1, 64, 4, 512): (0.084e6, 4.0e9, 0.051, 52, 47, 10.3),
    (2, 64, 4, 512): (0.134e6, 8.1e9, 0.10, 104, 93, 15.4),
    (1, 64, 4, 128): (0.059e6, 0.70e9, 0.009, 8.7, 7.4, 10.3),
    (4, 256, 8, 512): (3.3e6, 180e9, 2.3, 695, 614, 26),
    (6, 1024, 16, 512): (76e6, 3.87e12, 48.9, 8446, 7955, 84),
}


@pytest.mark.parametrize("shape", TABLE, ids=str)
def test_the_model_reproduces_the_table(shape):
    layers, width, heads, length = shape
    step = transformer(Transformer(layers, width, heads), 5, length, 16)
    found = (step.parameters, step.flop, seconds(step.flop), step.eager_us, step.fused_us, step.alone_us / 100)
    assert found == pytest.approx(TABLE[shape], rel=0.1)


def test_parameters_are_those_of_the_model():
    for name in ("tiny", "L1-d64-T128", "L2-d128-T128"):
        case = CASES[name]
        count = sum(parameter.numel() for parameter in make(case).parameters())
        assert transformer(case.model, 5, case.task.length, 1).parameters == count


@pytest.mark.parametrize("layers", [1, 2])
def test_operations_are_those_that_torch_counts(layers):
    """Products of a full step; torch counts attention whole and not in half, so its share is put right."""
    case = Case("x", Transformer(layers, 64, 4), FlipFlop(length=64), 4)
    model = make(case)
    tokens, positions, _, _ = strings_of(case, Feed(pack_of(case, 1, False), torch.device("cpu")).at(1))
    with FlopCounterMode(display=False) as counter:
        model(tokens, positions).sum().backward()
    counts = counter.get_flop_counts()["Global"]
    products = sum(count for op, count in counts.items() if "attention" not in str(op))
    scores = 4 * 64 * 4 * 64 / 2 * layers
    assert products + 3 * 4 * scores * 16 == pytest.approx(transformer(case.model, 5, 64, 4).flop, rel=1e-6)


def test_needed_positions_need_less():
    case = CASES["L1-d64-T512"]
    assert scored_mean(case.task) == pytest.approx(1 + 254 * 0.1)
    assert needed_flop(case) < 0.3 * transformer(case.model, 5, 512, 16).flop
    generative = Case("x", case.model, FlipFlop(mode="generative"))
    assert needed_flop(generative) == pytest.approx(transformer(case.model, 5, 512, 16).flop)
