"""Trainings of the n-gram and bracket families: a replicate's bits depend on neither its pack nor on an interruption.

Every registered task and model of these families is here with every option at a value other than its default.
"""

import random
from dataclasses import MISSING, fields, replace

import pytest
import torch

import models
import tasks
from harness.machine.device import prepare
from harness.planning.plan import signature
from harness.study.config import Condition, EvaluationSet, Watch
from harness.study.training_options import Consistency, Train
from harness.training.pack_state import Stopped
from harness.training.train import train
from models.dyck import MODELS as DYCK_MODELS
from models.ngrams import MODELS as NGRAM_MODELS
from results.store.tables import open_store
from tasks.dyck import TASKS as DYCK_TASKS
from tasks.ngrams import TASKS as NGRAM_TASKS
from tests.harness.packs import comparable, pack

CPU = torch.device("cpu")
STEPS, SEEDS = 4, ((7, 3), (8, 4), (9, 3))  # the third replicate has the data of the first
SETS = (EvaluationSet("online", {}, 12, every=2), EvaluationSet("test", {}, 8))

NGRAM = {"name": "in_context_ngram", "alphabet": 3, "length": 8}
BRACKETS = {"name": "dyck", "depth": 2, "length": 9}
BLOCK = {
    "name": "transformer",
    "layers": 2,
    "width": 8,
    "heads": 1,
    "feed_forward": 8,
    "final_norm": False,
    "positions": "linear",
}
# task, model, what the third replicate's task has of its own, train
CASES = {
    "simple": (NGRAM | {"alpha": 0.5}, {"name": "simple_disentangled"}, {"alpha": 20.0}),
    "simple, narrow": (
        NGRAM | {"order": 4, "alpha": 0.01},
        {"name": "simple_disentangled", "m": 3, "qk_width": 2, "v_init": "identity"},
        {"first": "stationary", "alpha": 0.3},
    ),
    "simple, merged": (
        NGRAM | {"order": 2, "labels": "every"},
        {"name": "simple_disentangled", "m": 1, "merged_qk": True},
        {"alpha": 0.1},
    ),
    "simple, no context": (NGRAM | {"order": 1, "alphabet": 4}, {"name": "simple_disentangled", "m": 1}, {"alpha": 0.1}),
    "appending": (NGRAM | {"first": "stationary"}, {"name": "disentangled"}, {"first": "uniform"}),
    "appending, learned": (
        NGRAM,
        {"name": "disentangled", "heads": (1, 2), "embed": "learned", "qk_width": 5, "w_init": "zero"},
        {"alpha": 0.3},
    ),
    "appending, log": (NGRAM, {"name": "disentangled", "heads": (2,), "output": "log"}, {"alpha": 0.3}),
    "adding": (NGRAM | {"order": 4, "alpha": 0.5}, {"name": "attn_only", "heads": (3, 1)}, {"alpha": 0.3}),
    "adding, learned": (
        NGRAM | {"labels": "every"},
        {"name": "attn_only", "embed": "learned", "w_init": "normal"},
        {"alpha": 0.3},
    ),
    "MLPs": (NGRAM | {"labels": "every"}, {"name": "attn_mlp"}, {"alpha": 0.3}),
    "MLPs, learned": (NGRAM, {"name": "attn_mlp", "heads": (1, 2), "embed": "learned", "w_init": "zero"}, {"alpha": 0.3}),
    "pairs": (BRACKETS, {"name": "minimal_first_layer", "depth": 2, "width": 6}, {"q": 0.3}),
    "parts": (
        BRACKETS | {"complete": False, "types": 3, "scored": "stack", "first": 3},
        {"name": "minimal_first_layer", "depth": 2, "width": 7, "encoding": "parts"},
        {"first": 2, "q": 0.7},
    ),
    "angles": (
        BRACKETS | {"q": 0.6, "scored": "closing", "sure": 0.2},
        {"name": "minimal_first_layer", "depth": 2, "width": 6, "encoding": "angle"},
        {"sure": 0.5},
    ),
    "uniform": (BRACKETS, {"name": "minimal_first_layer", "depth": 2, "width": 6, "attention": "uniform"}, {"complete": False}),
    "penalty": (
        BRACKETS,
        {"name": "minimal_first_layer", "depth": 2, "width": 6},
        {"q": 0.3},
        {"consistency": Consistency(0.3)},
    ),
    "two layers": (BRACKETS, BLOCK | {"norm": "feed_forward"}, {"q": 0.3}, {"pool": 10}),
    "three layers": (BRACKETS, BLOCK | {"norm": "branch", "layers": 3}, {"complete": False}),
    "no positions": (BRACKETS, BLOCK | {"norm": "feed_forward", "positions": "none"}, {"q": 0.3}),
    "copier": (
        BRACKETS | {"name": "dyck_copy", "types": 3, "q": 0.4},
        BLOCK | {"norm": "feed_forward", "layers": 1},
        {"complete": False},
    ),
    "deep copier": (
        BRACKETS | {"name": "dyck_copy", "complete": False},
        BLOCK | {"norm": "feed_forward", "layers": 4},
        {"complete": True},
    ),
}


@pytest.fixture(autouse=True)
def _one_thread():
    prepare(CPU)


def _named(registry, options):
    options = dict(options)
    return registry(options.pop("name"), **options)


def _conditions(task, model, own, options=None):
    """Three conditions of one shape: the second has a learning rate of its own, the third data."""
    made = [
        Condition(
            f"c{number}",
            _named(tasks.build, task | (own if number == 2 else {})),
            _named(models.configure, model),
            Train(**{"steps": STEPS, "batch": 6, "lr": 0.02 if number == 1 else 0.01, "warmup": 0} | (options or {})),
        )
        for number in range(3)
    ]
    assert len({signature(each, SETS) for each in made}) == 1  # a study packs them together
    return made


def _trained(conditions, some, folder, stop=None):
    """Rows of these replicates as one pack, stopped after `stop` steps and resumed."""
    members = replace(
        pack([conditions[each] for each in some], [SEEDS[each] for each in some], SETS, curve_every=3),
        watch=Watch(every=2, sequences=8, lags=2, strings=4),
    )
    store, reached = open_store(str(folder), "s"), []
    if stop is not None:
        with pytest.raises(Stopped):
            train(members, store, CPU, report=reached.append, should_stop=lambda: len(reached) >= stop)
    return comparable(train(members, store, CPU))


@pytest.mark.parametrize("case", CASES)
def test_a_replicate_is_the_same_in_any_pack_and_after_any_interruption(case, tmp_path):
    """In packs of two and of one, in any order, each stopped once after any step."""
    conditions, chance = _conditions(*CASES[case]), random.Random(case)
    whole = _trained(conditions, (0, 1, 2), tmp_path / "whole")
    order = chance.sample(range(3), 3)
    two, one = (
        _trained(conditions, some, tmp_path / str(number), chance.randrange(1, STEPS))
        for number, some in enumerate((order[:2], order[2:]))
    )
    assert whole.keys() == two.keys()
    for table, rows in whole.items():
        assert sorted(two[table] + one[table]) == rows, (table, order)


@pytest.mark.parametrize("registry", [NGRAM_TASKS, NGRAM_MODELS, DYCK_TASKS, DYCK_MODELS])
def test_every_option_of_the_families_is_among_these(registry):
    parts = [part for task, model, own, *_ in CASES.values() for part in (task, model, {"name": task["name"], **own})]
    for name, kind in registry.items():
        for each in fields(kind):
            assert each.default is not MISSING
            given_values = [part[each.name] for part in parts if part["name"] == name and each.name in part]
            assert any(value != each.default for value in given_values), f"{name}: no case sets {each.name}"
