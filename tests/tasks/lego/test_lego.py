"""LEGO sentences: labels against a sequential simulation, the law of the names, the engine's contract, and what is refused."""

from collections import Counter

import pytest
import torch
from scipy import stats

from harness.draw import Draw
from harness.study.config import build
from tasks.lego.group_actions import Actions
from tasks.lego.lego import IGNORED, Lego

KLEIN = Actions(((0, 1, 2, 3), (1, 0, 3, 2), (2, 3, 0, 1), (3, 2, 1, 0)))


def _parsed(task, inputs, targets):
    """A sentence of lists read back into (x_n, g_n, x_{n-1}) by input variable, the first answer, and the answers asked for."""
    length = task.length
    predicates = {}
    for output, action, given, *blanks in inputs[:length]:
        assert blanks == [0, 0]
        predicates[given] = (output, action - task.first_action)
    answers = inputs[length:] + targets[-1:]
    assert answers[1:] == targets[length:]
    assert all(clause[:3] == [0, 0, 0] for clause in answers)
    return predicates, answers


@pytest.mark.parametrize("group", ["C6", "S5", "A4_regular", "D10", KLEIN])
@pytest.mark.parametrize("order", ["chain", "shuffled"])
def test_labels_equal_a_sequential_simulation(group, order):
    for length in (1, 2, 5, 23):
        task = Lego(group, length=length, variables=24, order=order)
        table = task.action.table.tolist()
        batch = task.sample(Draw(torch.tensor([0, 7]), step=3), 40)
        assert batch.inputs.shape == batch.targets.shape == (2, 40, 2 * length, 5)
        assert batch.weights.tolist() == [[[0.0] * length + [1.0] * length] * 40] * 2
        assert batch.about["position"][0, 0, length:].tolist() == list(range(length))
        in_chain = 0
        for inputs, targets in zip(batch.inputs.flatten(0, 1).tolist(), batch.targets.flatten(0, 1).tolist(), strict=True):
            predicates, answers = _parsed(task, inputs, targets)
            name, value = answers[0][3], answers[0][4] - task.first_value
            seen = [name]
            for clause in answers[1:]:
                name, action = predicates[name]
                value = table[action][value]
                seen.append(name)
                assert clause == [0, 0, 0, name, value + task.first_value]
            assert len(set(seen)) == length + 1
            assert set(seen) <= set(range(1, 25))
            in_chain += [clause[0] for clause in inputs[:length]] == seen[1:]
        assert (in_chain == 80) == (order == "chain" or length == 1)


def test_names_actions_and_starts_are_uniform():
    """Goodness of fit; the names' pairs are those of sampling without replacement."""
    task = Lego("S3", length=2, variables=4)
    batch = task.sample(Draw(torch.tensor([5])), 24000)
    clauses = batch.inputs[0]
    pairs = Counter(zip(clauses[:, 0, 2].tolist(), clauses[:, 0, 0].tolist(), clauses[:, 1, 0].tolist(), strict=True))
    assert len(pairs) == 4 * 3 * 2
    for found in (
        list(pairs.values()),
        clauses[:, 0, 1].bincount()[task.first_action :].tolist(),
        clauses[:, 1, 1].bincount()[task.first_action :].tolist(),
        clauses[:, 2, 4].bincount()[task.first_value :].tolist(),
    ):
        assert stats.chisquare(found).pvalue > 1e-4
    assert len(clauses[:, 1, 1].bincount()[task.first_action :]) == 6


def test_every_name_is_drawn_in_long_sentences():
    task = Lego("C2", length=23, variables=24)
    inputs = task.sample(Draw(torch.tensor([0])), 5).inputs[0]
    for sentence in inputs:
        assert sorted([*sentence[:23, 0].tolist(), sentence[0, 2].item()]) == list(range(1, 25))


def test_a_sentence_depends_on_its_seed_step_and_number_alone():
    task = Lego("S5", length=4, order="shuffled")
    whole = task.sample(Draw(torch.tensor([3, 4]), step=9), 6000)  # more than are drawn at once
    alone = task.sample(Draw(torch.tensor([4]), step=9).rows(5990), 10)
    assert torch.equal(whole.inputs[1, 5990:], alone.inputs[0])
    assert torch.equal(whole.targets[1, 5990:], alone.targets[0])
    picked = task.sample(Draw(torch.tensor([4]), step=9).pick(torch.tensor([[5991, 2]])), 2)
    assert torch.equal(whole.inputs[1, [5991, 2]], picked.inputs[0])
    assert not torch.equal(whole.inputs[0], whole.inputs[1])


def test_shuffling_changes_the_order_of_predicates_alone():
    chain, shuffled = (Lego(length=6, order=order).sample(Draw(torch.tensor([1])), 50) for order in ("chain", "shuffled"))
    assert torch.equal(chain.inputs[:, :, 6:], shuffled.inputs[:, :, 6:])
    assert torch.equal(chain.targets, shuffled.targets)
    for one, other in zip(chain.inputs[0, :, :6].tolist(), shuffled.inputs[0, :, :6].tolist(), strict=True):
        assert sorted(one) == sorted(other)


def test_vocabulary_and_first_tokens():
    task = Lego("S5", variables=200)
    assert (task.first_action, task.first_value, task.vocabulary) == (201, 321, 326)
    assert (task.scored_positions(), task.tokens) == (5, 10)
    assert Lego("C6").vocabulary == 213


def test_a_loss_of_values_or_of_some_answers_alone():
    values = Lego(length=3, loss="value", steps=(2,))
    batch, full = (task.sample(Draw(torch.tensor([2])), 4) for task in (values, Lego(length=3)))
    assert batch.weights[0, 0].tolist() == [0, 0, 0, 0, 1, 0]
    assert (batch.targets[..., :4] == IGNORED).all()
    assert torch.equal(batch.targets[..., 4], full.targets[..., 4])
    assert torch.equal(batch.inputs, full.inputs)
    assert values.evaluation() == Lego(length=3)


def test_a_value_and_a_clause_are_wrong():
    task = Lego("C2", length=1, variables=2)  # tokens: blank, 2 variables, 2 actions, 2 values
    targets = torch.tensor([[0, 0, 0, 2, 5], [0, 0, 0, 1, 6]])
    said = torch.tensor([[[0, 0, 0, 2, 5], [0, 0, 0, 1, 6]], [[0, 0, 0, 1, 5], [3, 0, 0, 1, 5]]])
    wrong = task.wrong(torch.nn.functional.one_hot(said, 7).float(), targets)
    assert list(wrong) == ["read", "clause"]
    assert wrong["read"].tolist() == [[False, False], [False, True]]
    assert wrong["clause"].tolist() == [[False, False], [True, True]]
    assert task.wrong(torch.zeros(2, 5, 7), targets)["read"].all()  # of equal logits the lowest token


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (
            {"length": 5, "variables": 5},
            "task.length = 5 needs 6 different variables and task.variables = 5: a length of at most 4",
        ),
        ({"length": 0}, "task.length = 0 must be at least 1"),
        ({"group": "C7x"}, "task.group = 'C7x' is not known"),
        ({"group": {"table": [[0, 1], [1]]}}, "is no function"),
        ({"group": {"table": [[0, 1], [0, 0]]}}, "is no group action"),
        ({"group": {"table": [[0, 1, 2], [1, 0, 2]]}}, "no action leads from value 0 to value 2"),
        ({"group": {"tabel": [[0]]}}, "did you mean task.group.table"),
        ({"order": "random"}, "task.order = 'random' must be chain or shuffled"),
        ({"decode": "beam"}, "task.decode = 'beam' must be forced or greedy"),
        ({"loss": "slots"}, "task.loss = 'slots' must be clause or value"),
        ({"steps": [1, 6]}, r"task.steps = \[1, 6\] must be answers 1 … task.length = 5"),
    ],
)
def test_bad_tasks_are_refused(fields, sentence):
    with pytest.raises(ValueError, match=sentence):
        build("task", {"name": "lego", **fields})


def test_a_table_in_yaml_is_a_group():
    task = build("task", {"name": "lego", "group": {"table": [[0, 1], [1, 0]]}, "length": 3, "variables": 9})
    assert task.vocabulary == 1 + 9 + 2 + 2
