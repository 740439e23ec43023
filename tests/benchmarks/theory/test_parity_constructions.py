"""Propositions 9 and 10: weights written by hand solve every parity on every input, within the sizes and norms that are stated."""

import itertools

import pytest
import torch

from benchmarks.parity_theory import every_input
from benchmarks.theory.parity_constructions import sharp_attention, uniform_attention

CASES = [(5, (0, 1)), (9, (1, 4, 8)), (12, (0, 3, 5, 11)), (12, tuple(range(6))), (7, tuple(range(7))), (6, (5,))]


@pytest.mark.parametrize(("length", "support"), CASES)
def test_attention_on_the_support_and_a_small_mlp_solve_parity(length, support):
    signs, degree = every_input(length), len(support)
    weights, mlp = sharp_attention(length, support)
    answers = mlp((signs @ weights)[:, None])
    torch.testing.assert_close(answers, signs[:, list(support)].prod(-1))
    assert len(mlp.biases) == 4 * (degree + 1)
    if degree > 1:
        assert mlp.norm() <= 4 * degree * (degree + 1)
    assert float(weights.sum()) == pytest.approx(1)


@pytest.mark.parametrize(("length", "support"), CASES)
def test_uniform_attention_and_a_wide_mlp_solve_parity(length, support):
    signs, degree = every_input(length), len(support)
    weights, values, mlp = uniform_attention(length, support)
    answers = mlp((signs * weights) @ values)
    torch.testing.assert_close(answers, signs[:, list(support)].prod(-1))
    assert len(mlp.biases) == 2**degree
    assert mlp.norm() <= 2 ** (degree + 2)


def test_attention_that_is_not_sharp_enough_fails():
    signs = every_input(12)
    for sharpness, solved in ((2.0, False), (4.0, True), (20.0, True)):
        weights, mlp = sharp_attention(12, (0, 1, 2, 3), sharpness)
        assert bool((mlp((signs @ weights)[:, None]) * signs[:, :4].prod(-1) > 0).all()) == solved


def test_all_supports_of_a_length_are_solved():
    signs = every_input(6)
    for degree in (2, 3):
        for support in itertools.combinations(range(6), degree):
            weights, mlp = sharp_attention(6, support)
            assert ((mlp((signs @ weights)[:, None]) - signs[:, list(support)].prod(-1)).abs() < 1e-9).all()
