"""Words and labels against a walk, the laws of the inputs, what is observed and revealed, the draws, and a study that trains on it."""

import re
from pathlib import Path

import pytest
import scipy.stats
import torch
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import tasks
from harness.draw import Draw
from harness.run import run
from harness.study.config import build
from harness.study.load import from_tree
from results.store.tables import committed, open_store, read
from tasks.automata.named_automata import NINETEEN, semiautomaton
from tasks.automata.semiautomata import Table
from tests.harness.tiny import STUDY

PARTIAL = Table([[1, -1, 2], [0, 1, -1], [-1, -1, 0]], start=1)  # 2, 2 and 1 valid tokens


def _task(automaton="C2", **fields):
    return build("task", {"name": "automaton", "automaton": automaton, **fields})


def _sample(batch, automaton="C2", seed=0, **fields):
    return _task(automaton, **fields).sample(Draw(torch.tensor([seed])), batch)


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from([*NINETEEN, "S5_5", "abab", PARTIAL]), length=st.integers(1, 70), seed=st.integers(0, 2**62))
def test_every_label_is_the_state_after_its_token(name, length, seed):
    task = tasks.build("automaton", automaton=name, length=length)
    batch, machine = task.sample(Draw(torch.tensor([seed])), 2), semiautomaton(name)
    assert batch.inputs.shape == batch.targets.shape == batch.weights.shape == (1, 2, length)
    assert batch.weights.min() == 1
    assert task.outputs == len(machine.states)
    for tokens, labels in zip(batch.inputs[0].tolist(), batch.targets[0].tolist(), strict=True):
        state = machine.start
        for token, label in zip(tokens, labels, strict=True):
            state = int(machine.table[state, token])
            assert state == label >= 0  # -1 were a token that is not valid
    assert batch.about["position"][0].tolist() == [list(range(length))] * 2


@pytest.mark.parametrize("name", ["C3", "S4", "Grid4"])
def test_tokens_are_uniform(name):
    batch = _sample(300, name, length=100)
    counts = torch.bincount(batch.inputs.flatten(), minlength=_task(name).vocabulary)
    assert scipy.stats.chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize("name", ["Dyck_4_2", PARTIAL])
def test_tokens_are_uniform_over_those_that_are_valid(name):
    machine = semiautomaton(name)
    batch = tasks.build("automaton", automaton=name, length=100).sample(Draw(torch.tensor([1])), 600)
    start = torch.full_like(batch.targets[..., :1], machine.start)
    before = torch.cat([start, batch.targets[..., :-1]], -1)
    size = machine.table.shape[1]
    counts = torch.bincount((before * size + batch.inputs).flatten(), minlength=machine.table.numel()).view(-1, size)
    for row, valid in zip(counts, machine.valid, strict=True):
        assert row[~valid].sum() == 0
        if valid.sum() > 1:
            assert scipy.stats.chisquare(row[valid]).pvalue > 1e-3 / len(counts)


@pytest.mark.parametrize("p_one", [0.05, 0.5, 0.95])
def test_ones_have_their_probability(p_one):
    tokens = _sample(200, length=40, p_one=p_one).inputs
    assert scipy.stats.binomtest(int(tokens.sum()), tokens.numel(), p_one).pvalue > 1e-3


def test_a_larger_probability_only_adds_ones():
    few, many = (_sample(50, length=40, p_one=p).inputs for p in (0.2, 0.6))
    assert (few <= many).all()
    assert _sample(5, p_one=0.0).inputs.max() == 0
    assert _sample(5, p_one=1.0).inputs.min() == 1


@pytest.mark.parametrize("ones", [0, 1, 17, 40])
def test_the_number_of_ones_is_exact_and_their_places_uniform(ones):
    tokens = _sample(800, length=40, ones=ones).inputs[0]
    assert (tokens.sum(-1) == ones).all()
    if 0 < ones < 40:
        # drawn without replacement, so places of one word are correlated and the statistic is smaller
        by_place = scipy.stats.chisquare(tokens.sum(0)).statistic * 39 / (40 - ones)
        assert scipy.stats.chi2.sf(by_place, 39) > 1e-3
        assert len({tuple(row) for row in tokens.tolist()}) >= 39


def test_the_laws_of_abab():
    always = _sample(3, "abab", length=9, law="abab", observe="accept")
    assert always.inputs[0].tolist() == [[0, 1] * 4 + [0]] * 3
    assert always.targets[0].tolist() == [[0, 0, 0, 1] * 2 + [0]] * 3
    mixed = _sample(1000, "abab", length=40, law="abab_or_uniform", observe="accept")
    regular = (mixed.inputs[0] == torch.arange(40) % 2).all(-1)
    assert scipy.stats.binomtest(int(regular.sum()), 1000).pvalue > 1e-3
    others = mixed.inputs[0][~regular]
    assert scipy.stats.binomtest(int(others.sum()), others.numel()).pvalue > 1e-3
    assert (mixed.targets[0].sum(-1)[regular] == 10).all()
    assert 0.86 < (mixed.targets == 0).double().mean() < 0.89  # the card's majority baseline, about 87 %


def test_what_is_observed():
    """φ of the card's table, from the states' own descriptions."""
    cases = {
        ("Dyck_4_8", "top"): (9, lambda stack: stack[-1] + 1 if stack else 0),
        ("Dyck_4_2", "slots"): (81, lambda stack: int("".join(str(kind + 1) for kind in stack).ljust(4, "0"), 3)),
        ("Grid9", "boundary"): (2, lambda q: int(q in (0, 8))),
        ("S5_5", "first"): (5, lambda p: p[0]),
        ("C4", "zero"): (2, lambda q: int(q == 0)),
        ("D8", "rotation"): (4, lambda q: q[0]),
        ("abab", "accept"): (2, lambda q: int(q == 3)),
        ("C3", (1, 0, 1)): (2, lambda q: (1, 0, 1)[q]),
    }
    for (name, observe), (classes, phi) in cases.items():
        states = _sample(20, name, length=40).targets
        observed = _sample(20, name, length=40, observe=observe)
        described = semiautomaton(name).states
        assert _task(name, observe=observe).outputs == classes
        assert observed.targets.flatten().tolist() == [phi(described[q]) for q in states.flatten().tolist()]


def test_labels_are_revealed_in_training_and_all_scored():
    task = _task("C2", length=100, p_reveal=0.1)
    batch = task.sample(Draw(torch.tensor([2])), 500)
    assert set(batch.weights.unique().tolist()) == {0.0, 1.0}
    assert scipy.stats.binomtest(int(batch.weights.sum()), 50_000, 0.1).pvalue > 1e-3
    assert len({tuple(row) for row in batch.weights[0].tolist()}) > 490  # fresh for every word
    pairs = torch.bincount((2 * batch.inputs + batch.weights.long()).flatten(), minlength=4).view(2, 2)
    assert scipy.stats.chi2_contingency(pairs.numpy()).pvalue > 1e-3  # whatever the token
    scored = task.evaluation().sample(Draw(torch.tensor([2])), 500)
    assert scored.weights.min() == 1
    assert torch.equal(scored.inputs, batch.inputs)


@pytest.mark.parametrize(
    "fields",
    [
        {"automaton": "S5", "p_reveal": 0.3},
        {"automaton": "Dyck_4_2"},
        {"p_one": 0.3},
        {"ones": 9},
        {"automaton": "abab", "law": "abab_or_uniform"},
    ],
)
def test_a_word_depends_on_its_seed_and_number_alone(fields):
    task = tasks.build("automaton", length=37, **fields)
    whole = task.sample(Draw(torch.tensor([3, 4]), step=5), 8)
    alone = task.sample(Draw(torch.tensor([4]), step=5).rows(6), 2)
    picked = task.sample(Draw(torch.tensor([3, 4]), step=5).pick(torch.tensor([[7, 1], [0, 0]])), 2)
    for part in ("inputs", "targets", "weights"):
        assert torch.equal(getattr(whole, part)[1:, 6:], getattr(alone, part))
        rows = getattr(whole, part)
        assert torch.equal(getattr(picked, part), torch.stack([rows[0, [7, 1]], rows[1, [0, 0]]]))
    assert not torch.equal(whole.inputs[0], whole.inputs[1])


def test_the_words_are_frozen():
    drawn = {
        name: "".join(map(str, _task(name, length=24).sample(Draw(torch.tensor([7]), step=3), 1).inputs[0, 0].tolist()))
        for name in ("C2", "S5", "Dyck_4_2")
    }
    assert drawn == {"C2": "001110001100100100011111", "S5": "226651307533711521057566", "Dyck_4_2": "012320102312300110023232"}


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"length": 0}, "task.length = 0 must be at least 1"),
        ({"law": "ababab"}, "task.law = 'ababab' must be uniform or abab or abab_or_uniform"),
        ({"p_one": 1.5}, "task.p_one = 1.5 must be a probability"),
        ({"length": 8, "ones": 9}, "task.ones = 9 must be between 0 and task.length = 8"),
        ({"p_one": 0.5, "ones": 3}, "are 2 laws of the tokens: give one of them"),
        ({"automaton": "C3", "p_one": 0.5}, "task.p_one = 0.5 needs a semiautomaton of two tokens"),
        ({"automaton": "Dyck_4_1", "ones": 2}, "task.ones = 2 needs a semiautomaton of two tokens that are always valid"),
        ({"automaton": "S5", "law": "abab"}, "task.law = abab needs a semiautomaton of two tokens"),
        ({"p_reveal": 0}, "task.p_reveal = 0 must be a probability above 0"),
        ({"observe": "top"}, "task.observe = 'top' is no map of this semiautomaton: there is state, zero, or a list"),
        ({"automaton": "S5", "observe": "frist"}, r"did you mean first\?"),
        ({"observe": [0, 1, 1]}, "task.observe has 3 classes and the semiautomaton 2 states"),
        ({"observe": [0, 2]}, r"task.observe = \[0, 2\] must number its classes 0, 1"),
        ({"automaton": 5}, "task.automaton = 5 must be a word or a mapping"),
        ({"automaton": {}}, "task.automaton.table is missing: give a list"),
        ({"automaton": {"start": 0}}, "task.automaton.table is missing: give a list"),
        ({"automaton": {"table": [[0]]}}, "leave one class of labels"),
        ({"observe": [0, 0]}, "leave one class of labels"),
        ({"observe": ["a", "b"]}, "task.observe = 'a' must be a whole number"),
    ],
)
def test_impossible_tasks_are_refused(fields, sentence):
    with pytest.raises(ValueError, match=sentence):
        build("task", {"name": "automaton", **fields})


def test_the_page_says_what_can_be_built():
    """Every block of the page is a task or a whole study, and every name in its tables exists."""
    page = (Path(__file__).parents[3] / "docs" / "explanation" / "automata.md").read_text()
    blocks = [yaml.safe_load(text) for text in re.findall(r"^```yaml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)]
    *single, study = blocks
    assert len(single) == 2
    for block in single:
        build("task", block["task"])
    assert len(from_tree(study, []).conditions) == 2
    rows = page.partition("## The semiautomata")[2].partition("**A table")[0]
    names = re.findall(
        r"\b(?:[ACDQS]\d\S*?|Grid\d|Dyck_4_\d|abab)(?=[,)` ]|$)", "".join(re.findall(r"^\| (.*?) \|", rows, re.MULTILINE))
    )
    assert set(names) >= {"C8", "C2^3", "D6", "A5", "S4", "S5_5", "Q8", "Dyck_4_2", "Dyck_4_8", "Grid9", "abab"}
    for name in names:
        _task(name)


def test_a_study_of_them_trains_and_is_scored_at_every_position(tmp_path):
    """An LSTM simulates D6, on longer words too; of `hidden` 38 % of the batches have no label."""
    tree = yaml.safe_load(STUDY) | {
        "task": {"name": "automaton", "automaton": "D6", "length": 12},
        "model": {"name": "lstm", "width": 16},
        "train": {"steps": 500, "batch": 16, "lr": 1e-2, "warmup": 5},
        "evaluate": {"sets": {"same": {"sequences": 50}, "long": {"length": 20, "sequences": 10}}},
        "conditions": {
            "whole": {},
            "hidden": {"task": {"p_reveal": 0.005}},
            "own": {"task": {"automaton": {"table": [[1, -1, 2], [0, 1, -1], [-1, -1, 0]], "start": 1}}},
        },
        "store": str(tmp_path / "runs"),
    }
    assert run(from_tree(tree, ["replicates=1"]), say=lambda text: None) == 0
    store = open_store(tmp_path / "runs", "tiny")
    assert set(committed(store)["status"].to_pylist()) == {"finished"}
    rows = read(store, "evaluations").to_pylist()
    assert {(row["set"], row["metric"], row["count"]) for row in rows} == {("same", "read", 600), ("long", "read", 200)}
    names = {row["key"]: row["condition"] for row in committed(store).to_pylist()}
    assert max(row["errors"] / row["count"] for row in rows if names[row["key"]] == "whole") < 0.01
    profiles = [row for row in read(store, "profiles").to_pylist() if row["set"] == "same"]
    assert {row["axis"] for row in profiles} == {"position"}
    assert sorted({(row["lo"], row["hi"], row["count"]) for row in profiles}) == [(t, t + 1, 50) for t in range(12)]
