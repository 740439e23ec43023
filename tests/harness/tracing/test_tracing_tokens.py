"""Tracing by token identity against loops: what is replaced, what contains what, what the best subsequence is."""

import itertools
import math

import pytest
import torch

from harness.draw import Draw
from harness.tracing.search import Search
from harness.tracing.subsequence_search import _Table, search_tokens
from harness.tracing.tokens import around, neighbours, perturbed_tokens, places_of
from tests.rounding import rounded

DRAW = Draw(torch.tensor([7]), "evaluate", 5)


def contains(string, subsequence):
    rest = iter(string)
    return all(token in rest for token in subsequence)


def some_strings(seed, count, length, kinds):
    return Draw(torch.tensor([seed])).integers(kinds, (count, length))[0]


def test_containment_with_a_token_inserted_is_that_of_a_loop():
    strings = some_strings(0, 60, 7, 4)
    known = torch.tensor([0, 1, 3])
    table = _Table(strings, known)
    for size in range(4):
        for each in itertools.product(range(3), repeat=size):
            found = table.inserted(each)
            assert found.shape == (60, size + 1, 3)
            for gap, token in itertools.product(range(size + 1), range(3)):
                whole = [int(known[k]) for k in (*each[:gap], token, *each[gap:])]
                assert found[:, gap, token].tolist() == [contains(row, whole) for row in strings.tolist()]


@pytest.mark.parametrize("hard", [False, True])
def test_an_endless_beam_is_an_exhaustive_search(hard):
    prompt = torch.tensor([2, 0, 1, 2, 4])
    strings = torch.where(Draw(torch.tensor([1])).uniform((400, 5), 1)[0] < 0.7, prompt, some_strings(2, 400, 5, 5))
    hit = Draw(torch.tensor([3])).uniform((400,), 0)[0].double()
    hit = (hit < 0.4).double() if hard else hit
    found = search_tokens(strings, prompt, hit, Search(beam=None, size=5, support=1, z=0))
    assert len(found) == 5
    for size, best in enumerate(found, 1):
        scores = {}
        for places in itertools.combinations(range(5), size):
            each = tuple(int(prompt[j]) for j in places)
            rows = [float(h) for h, row in zip(hit, strings.tolist(), strict=True) if contains(row, each)]
            scores[each] = (sum(rows) / len(rows), len(rows)) if rows else (-1, 0)
        top = min(scores, key=lambda each: (-round(scores[each][0], 12), each))
        assert best.events == top
        assert (best.mean, best.support) == rounded(scores[top])
        assert best.psi == rounded(math.log(best.mean / float(hit.mean())))


def test_a_support_leaves_out_what_few_strings_hold():
    prompt = torch.tensor([0, 1])
    strings = torch.tensor([[0, 2]] * 30 + [[1, 2]] * 3)
    hit = torch.tensor([0.0] * 30 + [1.0] * 3).double()
    assert search_tokens(strings, prompt, hit, Search(size=1, support=1, z=0))[0].events == (1,)
    assert search_tokens(strings, prompt, hit, Search(size=1, support=5, z=0))[0].events == (0,)


def test_neighbours_are_the_nearest_by_cosine():
    angles = torch.tensor([0.0, 0.1, 0.3, 2.0, 2.1])
    embeddings = torch.stack([angles.cos(), angles.sin()], dim=-1) * torch.tensor([1.0, 5, 1, 1, 9])[:, None]
    assert neighbours(embeddings, torch.tensor([0, 4, 0]), 3) == [[1, 2], [3, 2], [1, 2]]
    assert neighbours(embeddings, torch.tensor([0]), 3, lambda token, nearest: nearest[2:]) == [[2]]


@pytest.mark.parametrize("masking", ["rgrand", "bernoulli"])
def test_perturbed_tokens_are_neighbours_at_some_places(masking):
    prompt = torch.tensor([0, 10, 20, 30, 40, 50])
    choices = [[1, 2], [11], [], [31, 32, 33], [41], [51]]
    found = perturbed_tokens(prompt, choices, 3000, 0.5, DRAW, masking)
    changed = found != prompt
    assert not bool(changed[:, 2].any())
    for column, each in enumerate(choices):
        assert set(found[:, column].tolist()) == {int(prompt[column]), *each}
    thirds = torch.bincount(found[:, 3] - 31 + 1, minlength=4)[1:].double()
    assert float(thirds.max() / thirds.min()) < 1.3
    share = float(changed[:, 0].double().mean())
    if masking == "rgrand":
        assert set(changed.sum(-1).tolist()) == {0, 1, 2, 3}  # M of 1 … 3 places, one of which may have no choice
        assert share == pytest.approx(2 / 6, abs=0.04)
    else:
        assert int(changed.sum(-1).max()) == 5
        assert share == pytest.approx(0.5, abs=0.04)
    assert torch.equal(perturbed_tokens(prompt, choices, 10, 0.5, DRAW, masking), found[:10])


def test_the_right_most_occurrence_is_kept_and_the_rest_replaced():
    prompt = torch.tensor([5, 6, 5, 7, 6])
    assert places_of(prompt, [5, 6]) == [2, 4]
    assert places_of(prompt, [6, 7]) == [1, 3]
    with pytest.raises(ValueError, match="no subsequence of the prompt"):
        places_of(prompt, [7, 5])
    choices = [[50], [60], [50], [70], [60]]
    near = around(prompt, [2, 4], "near", 4, DRAW, choices, (100, 200))
    assert near.tolist() == [[50, 60, 5, 70, 6]] * 4
    rand = around(prompt, [2, 4], "rand", 300, DRAW, choices, (100, 200))
    assert (rand[:, [2, 4]] == torch.tensor([5, 6])).all()
    others = rand[:, [0, 1, 3]]
    assert (int(others.min()), int(others.max())) == (100, 199)
    moved = around(prompt, [2, 4], "moved", 300, DRAW, choices, (100, 200)).tolist()
    assert all([token for token in row if token < 100] == [5, 6] for row in moved)
    assert len({tuple(token < 100 for token in row) for row in moved}) == 10
