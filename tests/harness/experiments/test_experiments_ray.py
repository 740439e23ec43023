"""Experiments on a real Ray cluster of this machine: the same rows as in one process."""

import os
from pathlib import Path

import pytest

from harness.run import run
from harness.study.experiment import ALLOW_COMMANDS
from harness.study.load import load
from models.custom import custom
from results.store.tables import open_store, read
from tests.harness.experiments import own_functions
from tests.harness.killed import without_report
from tests.harness.tiny import tables

STUDY = f"""
name: both
question: q
conditions:
  function: {{experiment: {{name: "{own_functions.__name__}:measure", shift: 1}}}}
  script:
    experiment:
      command: [python, -S, work.py, "{{seed}}"]
      metrics: "{{folder}}/metrics.json"
      sources: [work.py]
replicates: 8
pack: {{size: 4}}
wandb: off
"""
SCRIPT = "import sys; open('metrics.json', 'w').write('{\"score\": %d}' % (int(sys.argv[1]) ** 2))"


@pytest.mark.skipif("RAY_ADDRESS" in os.environ, reason="it starts a cluster of its own")
def test_ray_and_one_process_give_equal_tables(tmp_path, monkeypatch):
    monkeypatch.setattr(custom, "_allowed", {own_functions.__name__, ALLOW_COMMANDS})
    monkeypatch.chdir(tmp_path)
    Path("work.py").write_text(SCRIPT)
    without_report(monkeypatch)
    path = tmp_path / "both.yaml"
    path.write_text(STUDY)
    for executor in ("local", "ray"):
        said = []
        assert run(load(path, [f"store={tmp_path / executor}", f"executor={executor}"]), say=said.append) == 0
        assert any("starting Ray" in line for line in said) == (executor == "ray")
    assert tables(tmp_path / "ray", "both") == tables(tmp_path / "local", "both")
    assert len(read(open_store(tmp_path / "ray", "both"), "replicates")["host"]) == 16
