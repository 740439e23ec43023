"""Rows of the probes of brackets and of generation: the same bits whatever pack a replicate was trained in, after any interruption."""

import random
from dataclasses import replace

import numpy as np
import pytest
import torch

import models
import tasks
from harness.probes import registry
from harness.probes import run as probes
from harness.probes.generation import backtracking, verifier
from harness.probes.probe import PairProbe, Probe
from harness.study.config import Condition
from harness.study.training_options import Train
from harness.training.pack_state import Stopped
from harness.training.train import train
from results.store.tables import commit, committed, open_store, read
from tests.harness.packs import pack
from tests.harness.tiny import tables

CPU = torch.device("cpu")
BRACKETS = Condition(
    "brackets",
    tasks.build("dyck", depth=2, length=9),
    models.configure("minimal_first_layer", depth=2, width=6),
    Train(steps=4, batch=6, warmup=0),
)
GENERATOR = replace(
    BRACKETS,
    name="generator",
    task=tasks.build("bracket_strings", length=6, depth=2),
    model=models.configure("transformer", layers=1, width=8, heads=2, positions="rotary"),
)
PROBES = {"balance": BRACKETS, "stack": BRACKETS, "map": BRACKETS, "variation": BRACKETS, "backtracking": GENERATOR}


@pytest.fixture(autouse=True)
def _few(monkeypatch):
    monkeypatch.setattr(verifier, "_STEPS", 10)
    for name, few in {
        "_PART": 30,
        "_PARTS": 1,
        "DIVERSE": 2,
        "COMPLETIONS": 2,
        "CUTS": (2,),
        "QUOTAS": (1,),
        "STRIDES": (2,),
    }.items():
        monkeypatch.setattr(backtracking, name, few)


def _keep(store, condition, seeds, stop=None):
    """Train these seeds as one pack, stopped after `stop` steps, and keep their weights."""
    members, reached = replace(pack(condition, seeds, sets=()), keep=True), []
    if stop is not None:
        with pytest.raises(Stopped):
            train(members, store, CPU, report=reached.append, should_stop=lambda: len(reached) >= stop)
    commit(store, members.id, train(members, store, CPU))


def _probe(store, probe):
    options = ["verifiers=1", "errors=20", "left=2"] if probe == "backtracking" else []
    probes.run([store], probe, 4, None, lambda text: None, options)


@pytest.mark.parametrize("probe", PROBES)
def test_rows_of_a_probe_do_not_depend_on_packs_or_interruptions(probe, tmp_path, monkeypatch):
    """The second store's replicates were trained alone and stopped on the way, and its probe dies after its first replicate."""
    condition, seeds = PROBES[probe], (1, 2)
    whole, cut = (open_store(str(tmp_path / name), "s") for name in ("whole", "cut"))
    _keep(whole, condition, seeds)
    _probe(whole, probe)
    for seed in seeds:
        _keep(cut, condition, [seed], stop=seed)
    assert len(committed(cut)) == 2
    with monkeypatch.context() as patch:
        patch.setattr(probes, "add", lambda *arguments: (_added(*arguments), _die()))
        with pytest.raises(KeyboardInterrupt):
            _probe(cut, probe)
    torch.rand(7)  # what a global generator gave meanwhile changes nothing
    _probe(cut, probe)
    found = tables(cut.root, "s")
    assert any(f'"probe": "{probe}' in row for row in found["probes"])
    assert found == tables(whole.root, "s")
    values = read(whole, "probes")["value"].to_numpy()
    assert np.array_equal(values, values.astype(np.float32), equal_nan=True)  # as other tables hold what training measures


_added = probes.add


def _die():
    raise KeyboardInterrupt


def _drawn(*given):
    """Rows of a probe that draws from the global generators."""
    values = {"python": random.random(), "numpy": np.random.rand(), "torch": float(torch.rand(()))}
    return [{"layer": None, "head": None, "item": item, "value": value} for item, value in values.items()]


DRAWING = {
    "run": Probe(_drawn, lambda *given: True, "all"),
    "compare": PairProbe(lambda *given: _drawn(), lambda one, other: one, lambda *given: True, "all"),
}


@pytest.mark.parametrize("kind", DRAWING)
def test_a_probe_that_draws_random_numbers_gives_the_same_rows_whatever_was_drawn_before(kind, tmp_path, monkeypatch):
    monkeypatch.setitem(registry.PROBES, "drawn", f"{__name__}:DRAWN")
    monkeypatch.setitem(globals(), "DRAWN", DRAWING[kind])
    _keep(store := open_store(str(tmp_path), "s"), BRACKETS, (1, 2, 3))
    state = random.getstate(), torch.get_rng_state()
    probes.run([store], "drawn", None, None, lambda text: None)
    assert random.getstate() == state[0]
    assert torch.equal(torch.get_rng_state(), state[1])
    rows = read(store, "probes").to_pylist()
    assert len({(row["key"], row["other_key"]) for row in rows}) == 3
    assert len({(row["item"], row["value"]) for row in rows}) == 3
