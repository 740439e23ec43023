"""Bracket strings of one length: their law, what is scored, and what an error is."""

import itertools

import pytest
import scipy.stats
import torch

import tasks
from harness.draw import Draw
from tasks.generation.processes import leaf_law

DRAW = Draw(torch.tensor([2, 5]), step=7)


@pytest.mark.parametrize("count", [4_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_strings_follow_the_law_of_the_process(count):
    """χ² over all strings of 6 brackets; a false alarm would have a chance of 1e-5 with other seeds."""
    task = tasks.build("bracket_strings", length=6, depth=2)
    law = leaf_law(task.law, task.law.law)[0]
    strings = task.strings(DRAW, count)
    numbers = (strings * 4 ** torch.arange(5, -1, -1)).sum(-1)
    possible = law > 0
    for own in numbers:
        seen = torch.bincount(own, minlength=4**6).double()
        assert seen[~possible].sum() == 0
        expected = law[possible] * len(own)
        assert expected.min() > 5
        assert scipy.stats.chisquare(seen[possible].numpy(), expected.numpy()).pvalue > 1e-5


def test_every_string_closes_what_it_opens_within_its_depth():
    task = tasks.build("bracket_strings", length=16, depth=3, first_type=0.8)
    strings = task.strings(DRAW, 50).flatten(0, 1).tolist()
    deepest, firsts = 0, []
    for string in strings:
        stack = []
        for token in string:
            if token % 2:
                assert stack.pop() == token // 2
            else:
                stack.append(token // 2)
                firsts.append(token == 0)
            deepest = max(deepest, len(stack))
        assert stack == []
    assert deepest == 3
    assert sum(firsts) / len(firsts) == pytest.approx(0.8, abs=0.06)


def test_a_model_reads_the_start_and_answers_with_the_end_and_closing_brackets_are_scored():
    task = tasks.build("bracket_strings", length=8)
    batch, scored = task.sample(DRAW, 3), task.evaluation().sample(DRAW, 3)
    assert batch.inputs.shape == batch.targets.shape == (2, 3, 9)
    assert (batch.inputs[..., 0] == 5).all()
    assert (batch.targets[..., -1] == 4).all()
    assert torch.equal(batch.inputs[..., 1:], batch.targets[..., :-1])
    assert (batch.weights == 1).all()
    assert torch.equal(scored.weights.bool(), (scored.targets == 1) | (scored.targets == 3))
    assert (scored.weights.sum(-1) == 4).all()


def test_an_error_is_the_other_closing_bracket():
    task = tasks.build("bracket_strings")
    for right, said in itertools.product((1, 3), (1, 3)):
        logits = torch.zeros(5)
        logits[said], logits[0] = 1.0, 9.0  # an opening bracket is no answer to which bracket closes
        assert bool(task.wrong(logits, torch.tensor(right))["close"]) == (right != said)


@pytest.mark.parametrize(
    "options", [{"length": 7}, {"depth": 0}, {"depth": 18}, {"opens": 1.5}, {"scored": "some"}, {"first_type": -0.1}]
)
def test_what_is_no_language_is_refused(options):
    with pytest.raises(ValueError, match=f"task.{next(iter(options))}"):
        tasks.build("bracket_strings", **options)
