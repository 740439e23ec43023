"""Capacity, gradients and additivity of Sun et al. 2025 against automatic differentiation, code words, enumeration and counterexamples."""

import itertools
import math

import pytest
import torch

from benchmarks.subsequence_theory import corpus, directions, every, first_clash, of_pair, product_generator, worst
from benchmarks.theory.subsequence_theory import (
    Linear,
    associations,
    cap_bound,
    capacity,
    ends,
    exceeding,
    gold_vectors,
    needed,
    pressure,
    summed,
)


@pytest.mark.parametrize(("count", "cosine"), [(50, 0.22), (1e3, 0.2), (1e6, 0.1)])
def test_the_dimension_inverts_the_capacity(count, cosine):
    dimension = needed(count, cosine)
    assert cosine * dimension * math.exp(dimension * cosine**2 / 2) == pytest.approx(count)
    assert capacity(cosine, 100) == pytest.approx(cosine * 100 * math.exp(50 * cosine**2))


def test_the_integral_is_that_of_lemma_7():
    angles = torch.linspace(0, math.pi / 2 - 0.3, 20_001, dtype=torch.float64)
    assert cap_bound(0.3, 24) == pytest.approx(1 / float(torch.trapezoid(angles.sin() ** 22, angles)), rel=1e-6)
    # its asymptote, where e sqrt(d) is large
    assert cap_bound(0.1, 2500) == pytest.approx(capacity(0.1, 2500), rel=0.1)


def test_random_directions_clash_as_often_as_said():
    vectors = directions(600, 32, torch.Generator().manual_seed(0))
    cosines = (vectors @ vectors.T)[torch.ones(600, 600).triu(1) > 0].abs()
    assert float((cosines >= 0.3).double().mean()) == pytest.approx(exceeding(0.3, 32), rel=0.05)


def test_random_vectors_are_far_fewer_than_the_capacity():
    generator = torch.Generator().manual_seed(0)
    clash = sum(first_clash(0.4, 64, generator, most=300) for _ in range(40)) / 40
    assert clash == pytest.approx(math.sqrt(math.pi / 2 / exceeding(0.4, 64)), rel=0.25)
    assert capacity(0.4, 64) > 50 * clash


@pytest.mark.parametrize("degree", [3, 5])
def test_code_words_are_more_than_the_printed_bound(degree):
    vectors = gold_vectors(degree)
    count, dimension = vectors.shape
    assert (count, dimension) == (4**degree, 2**degree - 1)
    cosine = float((vectors @ vectors.T - torch.eye(count, dtype=torch.float64)).abs().max())
    assert cosine == pytest.approx((1 + 2 ** ((degree + 1) // 2)) / dimension)
    assert count > 2 * max(capacity(cosine, dimension), cap_bound(cosine, dimension))


def test_an_orthonormal_basis_is_more_than_the_printed_bound():
    assert cap_bound(0.01, 64) < 7 < 64
    assert cap_bound(0.01, 3) < 2 < 3


def test_ends_are_those_of_the_definition():
    strings, pieces = every(3, 4), [(0,), (0, 1), (1, 1), (2, 0, 2)]
    for string, where in zip(strings.tolist(), ends(strings, pieces), strict=True):
        for piece, at in zip(pieces, where.T.tolist(), strict=True):
            spelt = {
                places[-1]
                for places in itertools.combinations(range(4), len(piece))
                if tuple(string[i] for i in places) == piece
            }
            assert {t for t in range(4) if at[t]} == spelt


@pytest.mark.parametrize("repeats", [False, True])
def test_the_terms_add_up_to_the_gradient(repeats):
    model, ended, _ = corpus(repeats, 3)
    generator = torch.Generator().manual_seed(5)
    shares = torch.full((len(ended),), 1 / len(ended), dtype=torch.float64)
    answers = torch.randn(len(ended), 4, generator=generator, dtype=torch.float64).softmax(-1)
    terms = pressure(model, ended, shares, answers)
    psi, omega = (each.detach().requires_grad_() for each in model.terms(ended))
    loss = -(shares[:, None] * answers * (psi * omega[..., None]).sum(1).log_softmax(-1)).sum()
    loss.backward()
    torch.testing.assert_close(terms.psi.sum(0), psi.grad.sum((0, 1)))
    torch.testing.assert_close(terms.omega.sum(), omega.grad.sum())
    # what the proposition calls the gradient by Psi adds up over all answers: it is always 0
    assert abs(float(psi.grad.sum())) < 1e-12


def test_the_printed_bound_holds_where_no_token_repeats():
    assert max(worst(model, terms)[0] for model, _, terms in (corpus(False, seed) for seed in range(10))) <= 1


def test_the_printed_bound_fails_where_tokens_repeat_and_holds_with_the_absolute_value_inside():
    ratios = [worst(model, terms) for model, _, terms in (corpus(True, seed) for seed in range(30))]
    assert max(ratio[0] for ratio in ratios) > 1
    assert max(ratio[1] for ratio in ratios) <= 1


def two_strings(strings, scores):
    """Answers of 0.2 above and below the model's in two strings alike: terms of the token 0."""
    ended = ends(torch.tensor(strings), [(0,), (1,)])
    model = Linear(torch.eye(3, dtype=torch.float64), torch.eye(2, 3, dtype=torch.float64), torch.zeros(3, 3).double(), scores)
    # no values: the model says 1/2
    shares, answers = torch.tensor([0.5, 0.5]).double(), torch.tensor([[0.7, 0.3], [0.3, 0.7]]).double()
    return pressure(model, ended, shares, answers)


def test_a_gap_of_nothing_does_not_bound_the_gradient():
    scores = torch.zeros(3, 3, dtype=torch.float64)
    scores[0, 2] = 1
    repeated, once = two_strings([[0, 0], [0, 1]], scores), two_strings([[1, 0], [0, 1]], scores)
    assert repeated.printed[0].tolist() == pytest.approx([0, 0])
    assert repeated.psi[0].tolist() == pytest.approx([-0.1, 0.1])
    assert once.psi[0].tolist() == pytest.approx([0, 0])


def test_the_bound_is_met_by_the_scores_of_one_piece():
    strings = torch.tensor(list(itertools.permutations(range(3), 2)))
    scores = torch.zeros(4, 4, dtype=torch.float64)
    scores[0, 3] = 2.5
    model = Linear(torch.eye(4, dtype=torch.float64), torch.eye(2, 4, dtype=torch.float64), torch.ones(4, 4).double(), scores)
    answers = torch.tensor([[0.9, 0.1]] * 3 + [[0.2, 0.8]] * 3, dtype=torch.float64)
    terms = pressure(model, ends(strings, [(0,), (1,), (2,)]), torch.full((6,), 1 / 6, dtype=torch.float64), answers)
    assert float(terms.printed[0].max()) > 0.01
    torch.testing.assert_close(terms.psi[0].abs(), 2.5 * terms.printed[0])


def test_associations_are_those_of_the_definition():
    strings, shares, outcome = product_generator()
    found = associations(shares, outcome, ends(strings, [(0,), (0, 2)]).any(1))
    total = sum(outcome.tolist()) / 4
    assert found.tolist() == pytest.approx([math.log((outcome[0] + outcome[1]) / 2 / total), math.log(outcome[0] / total)])


def test_associations_of_independent_tokens_add_up():
    strings, shares, outcome = product_generator()
    events = ends(strings, [(0,), (1,), (2,), (3,)]).any(1)
    for row in range(4):
        said, total = summed(shares, outcome, events, row)
        assert total == pytest.approx(said)


def test_associations_do_not_add_up_with_the_pair_or_where_tokens_interact():
    strings, shares, outcome = product_generator()
    events = ends(strings, [(0,), (1,), (2,), (3,), (0, 2)]).any(1)
    said, total = summed(shares, outcome, events, 0)
    # a pair is never there without its tokens: its events are not independent of theirs, and it is counted twice
    assert total - said == pytest.approx(float(associations(shares, outcome, events)[4]))
    assert total - said > 0.5
    for chance in (of_pair(0.9, 0.1, 0.1), of_pair(0.9, 0.1, 0.9)):
        said, total = summed(shares, chance, events[:, :4], 0)
        assert abs(total - said) > 0.05
