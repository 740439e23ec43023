"""Strings of the task against a parser with an explicit stack, and their law against `Law`."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
import torch

import tasks
from harness.draw import Draw
from tasks.dyck.dyck import closers, last_open
from tasks.dyck.law import depths
from tests.tasks.dyck.prefix_laws import log_probability


def _task(**fields):
    return tasks.build("dyck", **{"depth": 3, "length": 12} | fields)


def _draw(*seeds, **rest):
    return Draw(torch.tensor(seeds), **rest)


def _stacks(brackets, types):
    """The open brackets before each token and after the last; fails where a bracket closes what is not open."""
    stack = []
    for bracket in brackets:
        yield list(stack)
        if bracket % 2 == 0:
            stack.append(bracket)
        else:
            assert stack.pop() == bracket - 1
    yield list(stack)


@pytest.mark.parametrize("types", [2, 3])
@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("scored", ["every", "closing", "stack"])
def test_strings_are_scored_where_they_say(types, complete, scored):
    task = _task(types=types, complete=complete, scored=scored, first=3)
    batch = task.sample(_draw(5, 6, step=3), 40)
    assert batch.inputs.shape == (2, 40, 12) == batch.targets.shape
    truth = _task(types=types, complete=complete).sample(_draw(5, 6, step=3), 40).targets
    for inputs, tokens, targets, weights, depth in zip(
        *(each.flatten(0, 1).tolist() for each in (batch.inputs, truth, batch.targets, batch.weights, batch.about["depth"])),
        strict=True,
    ):
        assert inputs == [task.start, *tokens[:-1]]
        brackets = tokens[: tokens.index(task.end)] if complete else tokens
        stacks = list(_stacks(brackets, types))
        assert max(map(len, stacks)) <= 3
        assert not complete or (stacks[-1] == [] and 2 <= len(brackets) <= 11)
        for place in range(12):
            weight = place >= 2 and place < len(brackets) + complete
            if place < len(stacks):
                assert depth[place] == len(stacks[place])
            if scored == "closing":
                weight = weight and place < len(brackets) and brackets[place] % 2 == 1
            elif scored == "stack":
                weight = weight and place < len(stacks) and bool(stacks[place])
            assert weights[place] == weight
            if weight:
                assert targets[place] == (stacks[place][-1] + 1 if scored == "stack" else tokens[place])


def test_complete_strings_have_the_laws_lengths_and_prefixes_have_the_laws_depths():
    task = _task()
    lengths = (task.sample(_draw(1), 20_000).inputs[0] < task.end).sum(-1)
    # the last token of a string is never read, so that a string of 11 brackets shows all of them
    expected = 20_000 * task.law.lengths
    kept = expected > 5
    assert (
        scipy.stats.chisquare(np.bincount(lengths, minlength=12)[kept], expected[kept] * (20_000 / expected[kept].sum())).pvalue
        > 1e-3
    )
    task = _task(complete=False)
    seen = np.bincount(depths(task.sample(_draw(2), 20_000).targets[0].numpy(), 2)[:, -1], minlength=4)
    expected = 20_000 * task.law.occupation[-1]
    assert scipy.stats.chisquare(seen[expected > 0], expected[expected > 0]).pvalue > 1e-3


def test_a_string_is_a_function_of_its_seed_and_row():
    for task in (_task(), _task(complete=False)):
        together = task.sample(_draw(7, 8, 9, step=4), 6)
        alone = task.sample(_draw(8, step=4).rows(2), 3)
        assert torch.equal(alone.targets[0], together.targets[1, 2:5])
        picked = task.sample(_draw(7, 9, step=4).pick(torch.tensor([[5], [0]])), 1)
        assert torch.equal(picked.inputs[:, 0], torch.stack([together.inputs[0, 5], together.inputs[2, 0]]))


def test_the_loss_of_the_law_itself_is_its_entropy():
    task = _task(length=8)
    law, batch = task.law, task.sample(_draw(3), 4000)
    strings = [tokens[: tokens.index(task.end) + 1] for tokens in batch.targets[0].tolist()]
    found = -np.array([log_probability(law, each) for each in strings])
    assert found.mean() == pytest.approx(law.entropy, abs=4 * found.std() / math.sqrt(len(found)))


def test_long_prefixes_are_scored_from_their_first_token_on():
    """The out-of-distribution set of the thesis: the last bracket of prefixes of 400 to 500 tokens that end in a closing bracket."""
    task = tasks.build("dyck", complete=False, length=500, first=400).evaluation()
    assert task.scored == "closing"
    batch = task.sample(_draw(1), 8)
    places = batch.weights[0].nonzero()[:, 1]
    assert places.min() >= 399
    assert places.max() > 490
    assert 8 * 40 < len(places) < 8 * 61


def test_an_answer_is_wrong_by_its_type_and_by_its_share():
    task = _task()
    # a share of 0.8 needs logits log 4 apart; an opening bracket and the end take no part
    logits = torch.tensor([[9.0, 1.5, 9.0, 0.0, 9.0], [0.0, 1.3, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.5, 0.0]])
    wrong = task.wrong(logits, torch.tensor([1, 1, 1]))
    assert wrong["close"].tolist() == [False, False, True]
    assert wrong["mass"].tolist() == [False, True, True]
    sure = replace(task, sure=0.8).wrong(logits, torch.tensor([1, 1, 1]))
    assert sure["close"].tolist() == sure["mass"].tolist() == wrong["mass"].tolist()
    assert [each.tolist() for each in task.wrong(logits, torch.tensor([3, 4, 3])).values()] == [[True, True, False]] * 2


def test_the_last_open_bracket_is_that_of_a_stack():
    task = _task(types=3, complete=False, length=40)
    inputs = task.sample(_draw(4), 30).inputs
    depth = torch.from_numpy(depths(inputs.numpy(), 3))
    places, answers = last_open(inputs, depth, 3)[0], closers(inputs, depth, 3)[0]
    for tokens, found, said in zip(inputs[0].tolist(), places.tolist(), answers.tolist(), strict=True):
        stack = []
        for place, token in enumerate(tokens):
            if place and token % 2 == 0:
                stack.append(place)
            elif place:
                stack.pop()
            assert found[place] == (stack[-1] if stack else -1)
            assert said[place] == (tokens[stack[-1]] + 1 if stack else 0)


def test_a_view_puts_closed_brackets_between_the_start_and_the_string():
    task = _task(types=3)
    inputs = task.sample(_draw(1, 2), 60).inputs
    view = task.view(_draw(1, 2, stream="view", step=5), inputs)
    pairs, kinds = set(), set()
    for old, new, places, weights in zip(
        *(each.flatten(0, 1).tolist() for each in (inputs, view.inputs, view.places, view.weights)), strict=True
    ):
        size = places[0]
        prefix = new[1 : size + 1]
        opened = prefix[: size // 2]
        assert new[0] == task.start
        assert [each + 1 for each in reversed(opened)] == prefix[size // 2 :]
        assert all(each % 2 == 0 for each in opened)
        assert len(new) == len(old) + 2 * task.depth
        assert new[size + 1 :] == old[1:] + [task.end] * (2 * task.depth - size)
        assert weights == [float(each < task.end) for each in old]
        assert all(new[place] == token for place, token, weight in zip(places, old, weights, strict=True) if weight)
        pairs.add(size // 2)
        kinds |= set(opened)
    assert (pairs, kinds) == ({1, 2, 3}, {0, 2, 4})


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"types": 1}, "task.types = 1 must be at least 2"),
        ({"depth": 0}, "task.depth = 0 must be at least 1"),
        ({"depth": 63}, "task.types = 2 with task.depth = 63 makes more than 2"),
        ({"q": 0.0}, "task.q = 0 must be a probability"),
        ({"length": 2}, "task.length = 2 must be at least 3"),
        ({"scored": "all"}, "task.scored = 'all' must be every or closing or stack"),
        ({"first": 12}, "task.first = 12 must be from 1 to 11"),
    ],
)
def test_what_cannot_be_is_refused(fields, said):
    with pytest.raises(ValueError, match=said):
        _task(**fields)
