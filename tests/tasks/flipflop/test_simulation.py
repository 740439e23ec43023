"""The generator against an automaton that walks input by input, its laws, its draws, and a study that trains on it."""

import pytest
import scipy.stats
import torch
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import tasks
from harness.draw import Draw
from harness.run import run
from harness.study.load import from_tree
from results.store.tables import committed, open_store, read
from tests.harness.tiny import STUDY


def _sample(batch, seed=0, **fields):
    return tasks.build("flipflop_simulation", **fields).sample(Draw(torch.tensor([seed])), batch)


@settings(max_examples=60, deadline=None)
@given(
    length=st.integers(1, 60),
    p_ignore=st.one_of(st.sampled_from([0.0, 0.5, 0.98, 1.0]), st.floats(0, 1)),
    seed=st.integers(0, 2**62),
)
def test_every_target_is_the_state_of_the_automaton(length, p_ignore, seed):
    batch = _sample(3, seed, length=length, p_ignore=p_ignore)
    assert batch.weights.min() == batch.weights.max() == 1
    for tokens, targets, since in zip(batch.inputs[0], batch.targets[0], batch.about["since_write"][0], strict=True):
        assert tokens[0] in (1, 2)
        state = distance = None
        for token, target, steps in zip(tokens.tolist(), targets.tolist(), since.tolist(), strict=True):
            assert token in (0, 1, 2)
            state, distance = (state, distance + 1) if token == 0 else (token - 1, 0)
            assert (target, steps) == (state, distance)


@pytest.mark.parametrize("p_ignore", [0.1, 0.5, 0.9])
def test_inputs_have_their_laws(p_ignore):
    tokens = _sample(400, length=500, p_ignore=p_ignore).inputs[0]
    counts = torch.bincount(tokens[:, 1:].flatten(), minlength=3)
    write = (1 - p_ignore) / 2
    assert scipy.stats.chisquare(counts, counts.sum() * torch.tensor([p_ignore, write, write])).pvalue > 1e-3
    first = torch.bincount(tokens[:, 0], minlength=3).tolist()
    assert first[0] == 0
    assert scipy.stats.binomtest(first[1], 400).pvalue > 1e-3
    # neighbours are independent: the state that is written does not depend on whether the input before was a write
    pairs = torch.bincount((tokens[:, 1:-1].sign() * 3 + tokens[:, 2:]).flatten(), minlength=6).view(2, 3)
    assert scipy.stats.chi2_contingency(pairs.numpy()).pvalue > 1e-3


def test_a_string_depends_on_its_seed_and_number_alone():
    task = tasks.build("flipflop_simulation", length=37)
    whole = task.sample(Draw(torch.tensor([3, 4]), step=5), 8)
    alone = task.sample(Draw(torch.tensor([4]), step=5).rows(6), 2)
    assert torch.equal(whole.inputs[1:, 6:], alone.inputs)
    assert not torch.equal(whole.inputs[0], whole.inputs[1])


def test_the_strings_are_frozen():
    inputs = tasks.build("flipflop_simulation", length=24).sample(Draw(torch.tensor([0, 7]), step=3), 1).inputs
    rows = ["".join(map(str, row)) for row in inputs[:, 0].tolist()]
    assert rows == ["210200010110122222102220", "202220001100100100012112"]


def test_laws_that_differ_keep_the_shapes_and_the_common_random_numbers():
    rare, frequent = (_sample(50, length=100, p_ignore=p).inputs for p in (0.9, 0.5))
    assert ((rare > 0) <= (frequent > 0)).all()
    assert torch.equal(rare[rare > 0], frequent[rare > 0])


def test_the_answer_is_one_of_two_states():
    task = tasks.build("flipflop_simulation", length=4)
    logits = torch.tensor([[0.0, 1.0], [2.0, 1.0]])
    assert task.wrong(logits, torch.tensor([1, 1]))["read"].tolist() == [False, True]


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"length": 0}, "task.length = 0 must be at least 1"),
        ({"p_ignore": 1.5}, "task.p_ignore = 1.5 must be a probability"),
        ({"p_ignor": 0.5}, "did you mean p_ignore?"),
    ],
)
def test_impossible_tasks_are_refused(fields, sentence):
    with pytest.raises(ValueError, match=sentence.replace("?", r"\?")):
        tasks.build("flipflop_simulation", **fields)


def test_a_study_of_it_trains_and_is_scored_at_every_position(tmp_path):
    tree = yaml.safe_load(STUDY) | {
        "task": {"name": "flipflop_simulation", "length": 12},
        "model": {"name": "transformer", "layers": 1, "width": 16, "heads": 1, "positions": "sinusoidal"},
        "train": {"steps": 400, "batch": 8, "lr": 3e-3, "warmup": 5},
        "evaluate": {"sets": {"rare": {"p_ignore": 0.9, "sequences": 50}, "long": {"length": 20, "sequences": 10}}},
        "conditions": {
            "half": {},
            "rare": {"task": {"p_ignore": 0.9}},
            "sharp": {"train": {"sharpen": {"kind": "entropy", "weight": 0.01, "schedule": "constant"}}},
        },
        "store": str(tmp_path / "runs"),
    }
    assert run(from_tree(tree, ["replicates=2"]), say=lambda text: None) == 0
    store = open_store(tmp_path / "runs", "tiny")
    assert committed(store).num_rows == 6
    rows = read(store, "evaluations").to_pylist()
    assert {(row["set"], row["metric"], row["count"]) for row in rows} == {("rare", "read", 600), ("long", "read", 200)}
    halves = [row["errors"] for row in rows if row["set"] == "rare"]
    assert sorted(halves)[0] < 0.2 * 600  # far from chance, which is half of what follows an ignored input
    assert {row["axis"] for row in read(store, "profiles").to_pylist()} == {"since_write"}
