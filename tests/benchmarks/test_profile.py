"""The parts of a step are told apart and add up."""

import pytest
import torch

from benchmarks.cases import CASES
from benchmarks.profile import PARTS, packed_step, part_of, split

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("name", "around", "part"),
    [
        ("aten::baddbmm", [], "GEMM"),
        ("aten::addmm", ["autograd::engine"], "GEMM"),
        ("aten::_scaled_dot_product_flash_attention_for_cpu_backward", [], "attention"),
        ("aten::gelu_backward", [], "activation"),
        ("aten::native_layer_norm", [], "norm and elementwise"),
        ("aten::mul", ["optimiser"], "optimiser"),
        ("aten::bitwise_and", ["aten::x", "data"], "data"),
    ],
)
def test_parts_by_name_and_range(name, around, part):
    assert part_of(name, around) == part


@pytest.mark.slow
def test_parts_add_up_to_the_step():
    found = split(packed_step(CASES["tiny"], 2, True, CPU, "fp32"), CPU, 64)
    assert sum(found[name] for name in (*PARTS, "other")) == pytest.approx(found["step"])
    assert all(found[name] > 0 for name in PARTS)  # 64 steps hold a draw of strings
