"""Packs of random conditions: each replicate has the bits that it has alone, in any order, and after any stop.

Sizes are odd on purpose, since whole lines of memory hide what depends on the pack, and blocks of needed positions are so small
that strings overflow them.
"""

import contextlib
import random
from dataclasses import replace
from itertools import count

import pytest
import torch
from safetensors.torch import load

import models
import tasks
from harness.machine.device import prepare
from harness.planning.plan import signature
from harness.study.config import Condition, EvaluationSet, Watch
from harness.study.training_options import Consistency, Monitor, Sharpen, Train
from harness.training.pack_state import Stopped
from harness.training.train import train
from harness.training.weights import data
from results.store.tables import open_store
from tests.harness.packs import comparable, pack

CPU = torch.device("cpu")
STEPS, KEPT = 6, 4
FEW = 6  # packs of the ordinary tests; the others take two minutes
# task, what a condition may have of its own, models
KINDS = [
    (
        {"name": "flipflop", "length": 14},
        [{"p_ignore": 0.3}, {"p_ignore": (0.2, 0.9)}, {}],
        ["transformer", "lstm", "ngram_mlp"],
    ),
    (
        {"name": "pcfg", "root": 12, "length": 16},
        [{"mask_start": False}, {"hide_selected_from_attention": True}, {}],
        ["encoder"],
    ),
    (
        {"name": "pcfg", "root": 12, "length": 19, "objective": "next", "level": 2},
        [{"root": 13}, {}],
        ["transformer", "lstm", "ngram_mlp"],
    ),
    (
        {"name": "automaton", "length": 5},
        [{"p_one": 0.3}, {"p_reveal": 0.5}, {"law": "abab"}],
        ["transformer", "lstm", "ngram_mlp"],
    ),
    (
        {"name": "dyck", "depth": 2, "length": 9},
        [{"q": 0.3}, {"complete": False}, {"scored": "closing"}],
        ["transformer", "brackets"],
    ),
    ({"name": "lego", "group": "C3", "length": 3, "variables": 5}, [{"order": "shuffled"}, {"loss": "value"}, {}], ["clauses"]),
    ({"name": "sparse_parity", "length": 7, "degree": 2}, [{"degree": 3}, {"support": (1, 4)}], ["mlp", "transformer"]),
    ({"name": "associations", "length": 7, "symbols": 3, "pairs": 4}, [{"sure": 0.7}, {"decoys": 1}], ["transformer", "lstm"]),
]
MODELS = {
    "lstm": {"name": "lstm", "width": 5, "layers": 2},
    "ngram_mlp": {"name": "ngram_mlp", "context": 2, "width": 3, "hidden": 5},
    "brackets": {"name": "minimal_first_layer", "depth": 2, "width": 5},
    "clauses": {"name": "clauses", "width": 3, "heads": 1, "feed_forward": 16, "activation": "gelu"},
    "mlp": {"name": "mlp", "width": 7},
}


@pytest.fixture(autouse=True)
def _one_thread():
    prepare(CPU)


def _transformer(chance, causal):
    options = {"name": "transformer", "layers": 2, "heads": 1, "width": chance.choice([4, 6, 10]), "causal": causal}
    options["norm"] = chance.choice(["pre", "none", "post", "branch"])
    options["activation"] = chance.choice(["gelu", "geglu", "swiglu"])
    options["positions"] = chance.choice(["none", "sinusoidal", "rotary", "alibi"])
    return options | ({"feed_forward": 64} if chance.random() < 0.5 else {})


def _conditions(chance):
    """Up to four conditions that share a pack."""
    task, own_options, names = chance.choice(KINDS)
    name = chance.choice(names)
    model = dict(MODELS.get(name) or _transformer(chance, name != "encoder"))
    configuration = models.configure(model.pop("name"), **model)
    monitor = Monitor(sequences=chance.choice([1, 5]), every=chance.choice([1, 2]))
    shared = {
        "steps": STEPS,
        "batch": chance.choice([1, 2, 3]),
        "optimizer": chance.choice(["adamw", "sgd"]),
        "monitor": monitor,
    }
    shared |= chance.choice([{"pool": 4}, {"positions": "last"}, {}, {}])
    switches = {option: chance.random() < 0.5 for option in ("clip", "ema", "penalty", "dropout")}

    def made(number):
        # the last rate diverges
        train = {
            "lr": chance.choice([0.01, 0.3, 1e20]),
            "warmup": chance.choice([0, 2]),
            "weight_decay": chance.choice([0.0, 0.1]),
        }
        train |= {"schedule": chance.choice(["linear", "cosine", "plateau"]), "patience": 0, "factor": 0.5}
        train |= {"clip": chance.choice([0.01, 1.0])} if switches["clip"] else {}
        train |= {"ema": chance.choice([0.5, 0.9])} if switches["ema"] else {}
        if switches["penalty"] and configuration.attends:
            weight = chance.choice([0.1, 1.0])
            dyck = task["name"] == "dyck"
            train |= (
                {"consistency": Consistency(weight)} if dyck else {"sharpen": Sharpen(weight=weight, start=chance.randrange(3))}
            )
        rates = {option: chance.uniform(0.1, 0.7) for option in configuration.vectors} if switches["dropout"] else {}
        own_task = dict(task | chance.choice(own_options))
        return Condition(
            f"c{number}",
            tasks.build(own_task.pop("name"), **own_task),
            replace(configuration, **rates),
            Train(**shared | train),
        )

    conditions = [made(number) for number in range(4)]
    return [one for one in conditions if signature(one, _sets()) == signature(conditions[0], _sets())]


def _sets():
    return (EvaluationSet("online", {}, 5, every=2), EvaluationSet("test", {}, 9))


def _trained(members, folder, stop=None):
    """Rows and weights of these (condition, seeds) as one pack, asked to stop at the question of this number, and resumed."""
    one = pack([condition for condition, _ in members], [seeds for _, seeds in members], _sets(), curve_every=2)
    one = replace(one, keep=True, keep_steps=(KEPT,), watch=Watch(every=2, sequences=3, lags=0))
    store, questions = open_store(str(folder), "s"), count()
    if stop is not None:
        with contextlib.suppress(Stopped):
            train(one, store, CPU, should_stop=lambda: next(questions) >= stop)
    rows = comparable(train(one, store, CPU))
    kept = [(replicate.key, step) for replicate in one.replicates for step in (KEPT, STEPS)]
    return rows, {where: load(data(store, where[0], 0, where[1])) for where in kept}


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=[pytest.mark.slow] if seed >= FEW else []) for seed in range(100)])
def test_a_replicate_of_a_random_pack_is_the_same_alone_in_another_order_and_after_a_stop(seed, tmp_path, monkeypatch):
    chance = random.Random(seed)
    block = chance.choice([1, 2, 3])
    for name in ("flipflop", "pcfg", "dyck"):
        monkeypatch.setattr(tasks.REGISTRY[name], "scored_positions", lambda task: block)
    conditions = _conditions(chance)
    members = [(chance.choice(conditions), (init, chance.choice([1, 2]))) for init in (3, 4, 5)]
    rows, weights = _trained(members, tmp_path / "whole")
    order = chance.sample(members, 3)
    parts = [_trained(some, tmp_path / str(len(some)), chance.randrange(1, 30)) for some in (order[:2], order[2:])]
    for table, expected in rows.items():
        assert sorted(row for own_rows, _ in parts for row in own_rows[table]) == expected, table
    others = parts[0][1] | parts[1][1]
    assert others.keys() == weights.keys()
    for where, tensors in weights.items():
        for name, tensor in tensors.items():
            # a replicate that has diverged may have inf in a pack and nan alone
            assert torch.equal(*(each.nan_to_num(0, 0, 0) for each in (tensor, others[where][name]))), (where, name)
