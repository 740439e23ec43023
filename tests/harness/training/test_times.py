"""What a row says of its time, on a device that works on behind the process that feeds it."""

import pytest
import torch

from harness.training import pack_state
from harness.training.pack_state import Training
from harness.training.train import train
from results.store.tables import open_store
from tests.harness.packs import condition, pack

CPU = torch.device("cpu")
SECONDS = 7.0  # that the device takes behind the process, at each look


@pytest.fixture
def late(monkeypatch):
    """A clock that only waiting for the device moves; the number of waits."""
    waits = []
    monkeypatch.setattr(pack_state, "finish", waits.append)
    monkeypatch.setattr("time.perf_counter", lambda: SECONDS * len(waits))
    return waits


def test_steps_that_a_device_has_still_to_do_are_time_of_training(late, tmp_path):
    replicates = pack(condition(), [0, 1])
    tables = train(replicates, open_store(str(tmp_path), "tiny"), CPU)
    rows = tables["replicates"]
    assert len(late) >= 1
    assert rows["train_s"].to_pylist() == [SECONDS * len(late) / len(replicates.replicates)] * len(replicates.replicates)
    assert set(rows["evaluate_s"].to_pylist()) == {0.0}


def test_nothing_is_waited_for_between_looks(late):
    replicates = pack(condition(), [0, 1])
    training = Training(replicates, CPU)
    assert replicates.curve_every > 1
    training.advance()
    training.record()
    assert not late
