"""Scratchpads: what the words look like, that evaluation reads no label, and a study that trains and is scored with one."""

import pytest
import torch
import yaml

import models
import tasks
from harness.draw import Draw
from harness.planning.pack import ScoredSet
from harness.run import run
from harness.study.load import from_tree
from harness.training.evaluate import score
from results.store.tables import committed, open_store, read
from tasks.automata.named_automata import semiautomaton
from tests.harness.tiny import STUDY
from tests.rounding import assert_same


def _pair(name, length=9, **fields):
    """The same words without and with a scratchpad."""
    draw = Draw(torch.tensor([3, 4]))
    plain, padded = (tasks.build("automaton", automaton=name, length=length, scratchpad=s, **fields) for s in (False, True))
    return plain, padded, plain.sample(draw, 5), padded.sample(draw, 5)


@pytest.mark.parametrize("name", ["C2", "S4", "Dyck_4_2"])
def test_labels_stand_between_the_tokens(name):
    plain, padded, word, mixed = _pair(name)
    kinds = semiautomaton(name).table.shape[1]
    assert mixed.inputs.shape == mixed.targets.shape == mixed.weights.shape == (2, 5, 17)
    assert torch.equal(mixed.inputs[..., ::2], word.inputs)
    assert torch.equal(mixed.inputs[..., 1::2], kinds + word.targets[..., :-1])
    assert torch.equal(mixed.targets[..., ::2], word.targets)
    assert mixed.weights[..., ::2].min() == 1
    assert mixed.weights[..., 1::2].max() == 0
    assert mixed.about["position"][0, 0].tolist() == [t // 2 for t in range(17)]
    assert (padded.vocabulary, padded.outputs, padded.tokens) == (kinds + plain.outputs, plain.outputs, 17)
    assert int(mixed.inputs.max()) < padded.vocabulary


class Last:
    """Answers the state that the table leads to from the answer that it reads before the token; the start at the first token."""

    def __init__(self, name, mistake=None):
        self.machine, self.mistake, self.lengths = semiautomaton(name), mistake, []

    def __call__(self, inputs, blocks):
        self.lengths.append(inputs.shape[-1])
        (position,) = blocks
        assert (position == inputs.shape[-1] - 1).all()
        kinds = self.machine.table.shape[1]
        before = inputs[..., -2] - kinds if inputs.shape[-1] > 1 else torch.full_like(inputs[..., 0], self.machine.start)
        after = self.machine.table[before, inputs[..., -1]]
        if self.mistake == inputs.shape[-1] // 2:
            after = (after + 1) % len(self.machine.table)
        return torch.nn.functional.one_hot(after, len(self.machine.table)).float()[..., None, :]


def test_evaluation_goes_on_from_the_models_own_answers():
    _, padded, word, mixed = _pair("C5")
    hidden = mixed.inputs.clone()
    hidden[..., 1::2] = 0  # no true label is there to be read
    right = Last("C5")
    found = padded.answers(right, hidden, None)
    assert torch.equal(found.argmax(-1), word.targets)
    assert right.lengths == [*range(1, 18, 2)]
    once = padded.answers(Last("C5", mistake=3), hidden, None).argmax(-1)
    late = torch.arange(9) >= 3
    assert torch.equal(once, (word.targets + late) % 5)  # one mistake is carried on


def test_a_transformer_answers_as_in_one_pass_over_what_it_wrote():
    _, padded, _, mixed = _pair("S4")
    made = models.REGISTRY["transformer"](layers=2, width=16, heads=2)
    model = made.make(Draw(torch.tensor([3, 4]), "init"), padded.vocabulary, padded.tokens, 24).double()
    with torch.no_grad():
        found = padded.answers(model, mixed.inputs, None)
        written = mixed.inputs.clone()
        written[..., 1::2] = 8 + found[..., :-1, :].argmax(-1)
        assert_same(found, model(written)[..., ::2, :])


def test_hidden_labels_and_a_scratchpad_exclude_each_other():
    with pytest.raises(ValueError, match=r"write task\.p_reveal = 1"):
        tasks.build("automaton", scratchpad=True, p_reveal=0.5)


def test_a_model_that_would_read_the_labels_ahead_is_refused():
    task = tasks.build("automaton", length=4, scratchpad=True)
    config = models.configure("transformer", layers=1, width=8, heads=2, causal=False)
    model = config.make(Draw(torch.tensor([0])), task.vocabulary, task.tokens, task.outputs)
    with pytest.raises(ValueError, match=r"leave model\.causal out"):
        score(model, [ScoredSet("long", task, 5, None, "0")], torch.device("cpu"), "fp32")


def test_a_study_with_a_scratchpad_carries_its_state_beyond_the_training_length(tmp_path):
    tree = yaml.safe_load(STUDY) | {
        "task": {"name": "automaton", "automaton": "C2", "length": 8, "scratchpad": True},
        "model": {"name": "lstm", "width": 16},
        "train": {"steps": 400, "batch": 16, "lr": 1e-2, "warmup": 5},
        "evaluate": {"sets": {"long": {"length": 20, "sequences": 30}, "ones": {"ones": 3, "sequences": 10}}},
        "conditions": {"scratchpad": {}},
        "store": str(tmp_path / "runs"),
    }
    assert run(from_tree(tree, ["replicates=1"]), say=lambda text: None) == 0
    store = open_store(tmp_path / "runs", "tiny")
    (row,) = committed(store).to_pylist()
    assert row["tokens"] == 400 * 16 * 15
    found = {row["set"]: row for row in read(store, "evaluations").to_pylist()}
    assert (found["long"]["errors"], found["long"]["count"], found["long"]["length"]) == (0, 600, 20)
    places = [row for row in read(store, "profiles").to_pylist() if row["set"] == "long"]
    assert [(row["lo"], row["count"]) for row in places] == [(t, 30) for t in range(20)]
