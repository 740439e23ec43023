"""Ray's memory monitor, real: a pack that takes more of the host's memory than is left is killed, and goes on as two halves."""

from pathlib import Path

import pytest

from harness.run import run
from harness.study.load import load
from models.custom.custom import allow
from results.store.tables import open_store, read
from tests.harness.tiny import STUDY

pytestmark = pytest.mark.slow

HUNGRY = """
import os, time
import torch
from torch import nn
from torch._C import _functorch

held = []

class Hungry(nn.Module):
    def __init__(self, vocabulary, length):
        super().__init__()
        self.table = nn.Embedding(vocabulary, vocabulary)

    def forward(self, tokens):
        weight = self.table.weight
        size = len(_functorch.get_unwrapped(weight)) if _functorch.is_batchedtensor(weight) else 1
        # once the study has begun, not while it is measured; the check of a user's module is made with two sequences
        if size > {fits} and len(tokens) > 2 and os.path.isdir({manifests!r}):
            if not held:
                held.append(bytearray(b"1") * ({gibibytes} << 30))
            time.sleep(0.2)  # the monitor looks four times a second
        return self.table(tokens)
"""


@pytest.mark.parametrize(("fits", "status"), [(1, 0), (0, 1)])
def test_the_host_runs_out_of_memory(tmp_path, monkeypatch, capsys, fits, status):
    memory = dict(line.split()[:2] for line in Path("/proc/meminfo").read_text().splitlines())
    total, free = (int(memory[name]) / 2**20 for name in ("MemTotal:", "MemAvailable:"))  # GiB
    if free < 16:
        pytest.skip("less than 16 GiB of memory are free")
    monkeypatch.setenv("RAY_memory_usage_threshold", f"{(total - free + 6) / total:.3f}")
    manifests = tmp_path / "runs" / "tiny" / "manifests"
    (tmp_path / f"hungry{fits}.py").write_text(HUNGRY.format(manifests=str(manifests), fits=fits, gibibytes=8))
    text = STUDY.replace("{transformer: {}, lstm: {model: {name: lstm, width: 8}}}", "{one: {}}")
    text = text.replace("{name: transformer, layers: 1, width: 16, heads: 2}", f'{{name: "hungry{fits}:Hungry"}}')
    (tmp_path / "tiny.yaml").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    allow(f"hungry{fits}")
    words = [f"store={tmp_path / 'runs'}", "executor=ray", "device=cpu", "replicates=4", "pack.size=2"]
    assert run(load(tmp_path / "tiny.yaml", words)) == status
    said = capsys.readouterr().out
    store = open_store(tmp_path / "runs", "tiny")
    if status == 0:
        assert "ran the host out of memory at step 0 and goes on as two halves" in said
        assert read(store, "replicates")["status"].to_pylist() == ["finished"] * 4
        assert read(store, "failures").num_rows == 0
    else:  # one replicate alone is more than there is
        assert read(store, "replicates").num_rows == 0
        rows = read(store, "failures").to_pylist()
        assert [(row["kind"], row["step"], row["attempt"]) for row in rows] == [("oom", 0, 3)] * 4
