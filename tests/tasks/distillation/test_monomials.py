"""Correlations with monomials against exact Fourier coefficients, and the sets that they are taken over."""

import itertools
import math

import pytest
import torch

from harness.draw import Draw
from tasks.distillation.monomials import contrast, correlations, first_class, inside, outside, signs_of
from tasks.distillation.parity import SparseParity


def _every(length):
    return signs_of(torch.tensor(list(itertools.product((0, 1), repeat=length))))


def _draw(seed=0):
    return Draw(torch.tensor([seed]))


def test_correlations_are_the_coefficients_of_a_polynomial():
    signs = _every(8)
    answers = 0.5 + 0.1 * signs[:, 2] - 0.2 * signs[:, 0] * signs[:, 5] + 0.05 * signs[:, 1] * signs[:, 2] * signs[:, 7]
    both = torch.stack([answers, 1 - answers])
    wanted = {(2,): 0.1, (0, 5): 0.2, (1, 2, 7): 0.05}
    for degree in (1, 2, 3):
        sets = inside(tuple(range(8)), degree)
        found = correlations(both, signs, sets, chunk=500)
        for row, value in zip(sets.tolist(), found.T, strict=True):
            assert value.tolist() == pytest.approx([wanted.get(tuple(row), 0.0)] * 2, abs=1e-6)


def test_majority_has_its_published_coefficients():
    """ζ_i of majority for odd d, O'Donnell, Analysis of Boolean functions, section 5.3."""
    length = 9
    signs = _every(length)
    majority = signs.sum(-1).sign()[None]
    for degree in (1, 2, 3):
        half = (degree - 1) // 2
        exact = math.comb((length - 1) // 2, half) / math.comb(length - 1, degree - 1)
        exact *= 2 ** (1 - length) * math.comb(length - 1, (length - 1) // 2) * (degree % 2)
        found = correlations(majority, signs, inside(tuple(range(length)), degree))
        assert torch.allclose(found, torch.full_like(found, exact), atol=1e-12)


def test_a_parity_has_no_lower_degree_and_its_own_in_full():
    task = SparseParity(12, 3, (1, 4, 9))
    batch = task.sample(_draw(), 4096)
    logits = torch.nn.functional.one_hot(batch.targets[..., -1], 2) * 100.0
    answers, signs = first_class(logits), signs_of(batch.inputs[0])
    assert correlations(answers, signs, inside(task.coordinates, 3)).item() == pytest.approx(0.5, abs=0.02)
    for degree in (1, 2):
        assert correlations(answers, signs, inside(task.coordinates, degree)).max() < 6 / 4096**0.5
    rest = outside(12, task.coordinates, 3, 100, _draw())
    assert correlations(answers, signs, rest).max() < 6 / 4096**0.5
    found = contrast(correlations(answers, signs, inside(task.coordinates, 3)), correlations(answers, signs, rest))
    assert found["ratio"].item() > 10
    assert found["outside_sd"].item() > 0


@pytest.mark.parametrize(
    ("length", "degree", "most"), [(100, 1, 94), (100, 2, 100), (100, 3, 100), (8, 2, 100), (8, 2, 5), (7, 3, 3)]
)
def test_sets_outside_are_different_and_not_within_the_support(length, degree, most):
    support = tuple(range(6))
    sets = outside(length, support, degree, most, _draw(3)).tolist()
    total = math.comb(length, degree) - math.comb(6, degree)
    assert len(sets) == len({tuple(row) for row in sets}) == min(most, total)
    assert all(row == sorted(set(row)) and len(row) == degree and not set(row) <= set(support) for row in sets)
    assert sets == outside(length, support, degree, most, _draw(3)).tolist()


def test_sets_with_an_irrelevant_coordinate():
    sets = outside(100, (), 2, 60, _draw(), free=tuple(range(35, 100))).tolist()
    assert len(sets) == 60
    assert all(max(row) >= 35 for row in sets)
    assert any(min(row) < 35 for row in sets)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: inside((0, 1), 3), "degree = 3 must be from 1 to 2, the size of the support"),
        (lambda: outside(4, (0,), 5, 3, _draw()), "degree = 5 must be from 1 to 4"),
        (lambda: outside(4, (0, 9), 2, 3, _draw()), "must be of 0 … 3"),
        (lambda: outside(2, (0, 1), 1, 3, _draw()), "there are 0 sets of 1 coordinates"),
        (lambda: outside(4, (0, 1), 1, 0, _draw()), "most = 0 of them are asked for"),
        (lambda: correlations(torch.zeros(1, 3), torch.ones(4, 2), inside((0,), 1)), "3 answers do not go with 4 inputs"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
