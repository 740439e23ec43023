"""Bounds, predictions and the count of activations. The command is run by test_first_gpu.py."""

import pytest
import torch

from benchmarks.cases import CASES, pack
from benchmarks.memory import judged, saved_bytes
from harness.training.pack_state import Training


def _row(size, counted):
    return {"case": "x", "size": size, "peak": 230, "parameters": 5, "activations": 46, "counted": counted}


def test_bound_and_prediction():
    rows = judged([_row(2, 20), _row(4, 30), _row(8, 51)])
    assert rows[0]["bound"] == pytest.approx(1.15 * 2 * 5 * 16 + 46)
    assert rows[0]["of_bound"] == pytest.approx(230 / rows[0]["bound"])
    assert [row["predicted"] for row in rows] == [None, 40, 50]


def test_activations_grow_with_the_pack():
    sizes = {size: saved_bytes(Training(pack(CASES["L1-d64-T128"], size), torch.device("cpu"))) for size in (1, 3)}
    tokens = 16 * 128
    assert sizes[1] > tokens * 64 * 4 * 3  # at least norms, keys and values in fp32
    assert sizes[3] == pytest.approx(3 * sizes[1], rel=0.05)
