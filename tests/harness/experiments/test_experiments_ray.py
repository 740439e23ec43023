"""Experiments, and trainings that are probed, on a real Ray cluster of this machine: the same rows as in one process."""

import os
from pathlib import Path

import pytest

from harness.experiments.generation.verified_sampling import SAMPLERS
from harness.probes import run as probes
from harness.probes.generation import backtracking, verifier
from harness.run import run
from harness.study.experiment import ALLOW_COMMANDS
from harness.study.load import load
from models.custom import custom
from results.store.tables import open_store, read
from tests.harness.experiments import own_functions
from tests.harness.killed import without_report
from tests.harness.tiny import tables

LINE = "  {0}: {{experiment: {{name: verified_sampling, sampler: {0}, horizon: 3, samples: 9, most: 200, steps: 20}}}}"
STUDY = f"""
name: both
question: q
conditions:
{chr(10).join(map(LINE.format, SAMPLERS))}
  weights: {{experiment: {{name: ngram_stationarity, length: 8, sequences: 128}}}}
  function: {{experiment: {{name: "{own_functions.__name__}:measure", shift: 1}}}}
  script:
    experiment:
      command: [python, -S, work.py, "{{seed}}"]
      metrics: "{{folder}}/metrics.json"
      sources: [work.py]
replicates: 4
pack: {{size: 4}}
wandb: off
"""
SCRIPT = "import sys; open('metrics.json', 'w').write('{\"score\": %d}' % (int(sys.argv[1]) ** 2))"
TRAININGS = """
name: probed
question: q
evaluate: {sets: {test: {sequences: 8}}}
train: {steps: 4, batch: 6}
conditions:
  brackets:
    task: {name: dyck, depth: 2, length: 9}
    model: {name: minimal_first_layer, depth: 2, width: 6}
  generators:
    task: {name: bracket_strings, length: 8, depth: 3}
    model: {name: transformer, layers: 1, width: 8, heads: 2, positions: rotary}
  languages:
    task: {name: in_context_ngram, alphabet: 3, length: 8}
    model: {name: simple_disentangled}
replicates: 2
pack: {size: 1}
keep: all
wandb: off
"""

pytestmark = pytest.mark.skipif("RAY_ADDRESS" in os.environ, reason="it starts a cluster of its own")


@pytest.mark.slow
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
    assert len(read(open_store(tmp_path / "ray", "both"), "replicates")["host"]) == 4 * (len(SAMPLERS) + 3)


@pytest.mark.slow
def test_probes_of_what_ray_trained_give_the_rows_of_one_process(tmp_path, monkeypatch):
    without_report(monkeypatch)
    monkeypatch.setattr(verifier, "_STEPS", 20)
    for name, few in {"_PART": 40, "_PARTS": 1, "DIVERSE": 2}.items():
        monkeypatch.setattr(backtracking, name, few)
    path = tmp_path / "probed.yaml"
    path.write_text(TRAININGS)
    options = {"backtracking": ["verifiers=1", "errors=30"]}
    for executor in ("local", "ray"):
        assert run(load(path, [f"store={tmp_path / executor}", f"executor={executor}"]), say=lambda text: None) == 0
        for probe in ("balance", "stack", "map", "variation", "backtracking"):
            store = open_store(tmp_path / executor, "probed")
            probes.run([store], probe, 4, None, lambda text: None, options.get(probe, []))
    found = tables(tmp_path / "ray", "probed")
    assert found == tables(tmp_path / "local", "probed")
    for probe in ("balance", "stack", "map", "variation", "backtracking"):
        assert any(f'"probe": "{probe}' in row for row in found["probes"]), probe
