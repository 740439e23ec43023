"""Plain and packed models find the same errors in the same strings."""

import pytest
import torch

from benchmarks import evaluation
from benchmarks.cases import CASES

CPU = torch.device("cpu")


@pytest.mark.parametrize("name", ["tiny", "mlp100"])
def test_errors_are_equal(name):
    case = CASES[name]
    packed = evaluation.packed(case, 2, True, CPU, "fp32", 40)
    found = [packed(number) for number in (1, 2)]
    assert found[0] != found[1]  # other strings
    for seed in range(2):
        for needed in (True, False):
            if name == "tiny" or needed:
                chunk = evaluation.alone(case, needed, CPU, "fp32", 40, seed)
                assert [chunk(number)[0] for number in (1, 2)] == [each[seed] for each in found]
    assert min(min(each) for each in found) > 0


def test_the_command(tmp_path):
    evaluation.main(f"--cases tiny --sizes 1 2 --strings 64 --seconds 1 --out {tmp_path}".split())
    text = (tmp_path / "evaluation.md").read_text()
    assert text.count("| tiny |") == 4
    assert (tmp_path / "evaluation.parquet").exists()
