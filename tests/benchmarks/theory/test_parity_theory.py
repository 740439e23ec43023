"""The theorems on distilled parity against all 2^d inputs, exact formulas and, where they are of samples, sampled strings."""

import itertools
import math
from dataclasses import replace

import pytest
import torch

from benchmarks.parity_theory import (
    drawn,
    every_input,
    found_from_labels,
    found_from_teacher,
    fresh,
    middle,
    one_batch,
    parity_of,
    two_stages,
)
from benchmarks.theory.parity_theory import (
    Network,
    Phase,
    after_one_step,
    degree_one,
    first_gradient,
    first_rate,
    hinge_loss,
    majority,
    removing,
    second_gradient,
    slope,
    strings_to_find,
    symmetric,
    train,
)
from harness.draw import Draw


@pytest.mark.parametrize("length", [1, 3, 5, 9])
def test_majority_coefficients_are_those_of_all_inputs(length):
    signs = every_input(length)
    largest = signs.sum(-1).sign()
    for degree in range(length + 1):
        for places in list(itertools.combinations(range(length), degree))[:3]:
            assert float((largest * signs[:, list(places)].prod(-1)).mean()) == float(majority(length, degree))


def test_majority_coefficients_of_the_erratum():
    """Values of the card, and the gap of Lemma 63; the printed order i^(-1/3) / C(d, i) is far below them."""
    for length, degree, value in ((101, 5, 2.49e-5), (101, 7, -1.31e-6), (31, 3, -4.98e-3), (31, 5, 5.54e-4)):
        assert float(majority(length, degree)) == pytest.approx(value, rel=2e-3)
    assert abs(float(majority(101, 5))) > 1000 * 5 ** (-1 / 3) / math.comb(101, 5)
    for length, degree in itertools.product((31, 101, 301), (2, 4, 6, 8)):
        gap = abs(majority(length, degree - 1)) - abs(majority(length, degree + 1))
        assert float(gap) >= 0.03 * (length - 1) ** (-(degree - 1) / 2)
    assert abs(majority(15, 7)) == abs(majority(15, 9))  # no gap for k = 8: d has to be large
    for length, degree in ((4, 1), (5, 6), (5, -1)):
        with pytest.raises(ValueError, match=r"^(length|degree) = "):
            majority(length, degree)


def test_a_fresh_network_is_zero_and_has_the_grid_of_biases():
    network = fresh(3, 400, 9, 4)
    assert network(every_input(9)).abs().max() < 1e-15
    assert set(network.weights.unique().tolist()) == {-1.0, 1.0}
    assert (4 * network.biases).unique().tolist() == list(range(-3, 4))
    assert network.outputs.abs().unique().tolist() == [1 / 400]
    with pytest.raises(ValueError, match=r"^units = 5 must be even"):
        symmetric(Draw(torch.tensor([0])), 5, 9, 4)


@pytest.mark.parametrize("kind", ["weights", "outputs"])
def test_the_gradients_are_those_of_autograd(kind):
    signs, labels = drawn(0, 9)(0, 200), parity_of(2)
    network = replace(fresh(0, 8, 9, 2), outputs=torch.linspace(-1, 1, 8, dtype=torch.float64).exp())
    taught = signs[:, 0] * 0.7 + 0.5
    leaf = getattr(network, kind).clone().requires_grad_()
    answers = replace(network, **{kind: leaf})(signs)
    loss = 0.3 * (1 - answers * labels(signs)).clamp(min=0) + 0.7 * (1 - answers * taught).clamp(min=0)
    loss.mean().backward()
    mine = {"weights": first_gradient, "outputs": second_gradient}[kind]
    torch.testing.assert_close(mine(network, signs, slope(network, signs, labels(signs), taught, 0.3)), leaf.grad)


@pytest.mark.parametrize(("length", "degree"), [(9, 2), (11, 4), (13, 6)])
def test_lemma_63_one_step_on_all_inputs_ends_at_the_closed_form(length, degree):
    signs, rate, network = every_input(length), first_rate(16, length, degree), fresh(1, 16, length, degree)
    phases = Phase(1, 1, rate, removing(rate)), Phase(0, 1, 1.0)
    after = train(network, lambda step, batch: signs, parity_of(degree), *phases)
    expected = after_one_step(network, tuple(range(degree)))
    torch.testing.assert_close(after.weights, expected.weights)
    sizes = after.weights.abs() * 2 * degree
    ratio = abs(float(majority(length, degree + 1) / majority(length, degree - 1)))
    torch.testing.assert_close(sizes[:, :degree], torch.ones_like(sizes[:, :degree]))
    torch.testing.assert_close(sizes[:, degree:], torch.full_like(sizes[:, degree:], ratio))
    assert torch.equal(after.biases, network.biases)
    assert torch.equal(after.outputs, network.outputs)
    printed = train(network, lambda step, batch: signs, parity_of(degree), Phase(1, 1, rate, 1.0), phases[1])
    assert printed.weights.abs().min() > 1  # the penalty 1 leaves the old weights times 1 - 2 rate


@pytest.mark.parametrize(("length", "degree", "batch"), [(31, 2, 2**15), (15, 4, 2**17)])
def test_lemma_63_one_batch_is_as_near_as_its_error(length, degree, batch):
    """tau_g by Hoeffding's bound for m d means of numbers in [-1, 1], at 1 %."""
    after, exact = one_batch(0, 32, length, degree, batch), after_one_step(fresh(0, 32, length, degree), tuple(range(degree)))
    accuracy = math.sqrt(2 * math.log(2 * 32 * length / 0.01) / batch)
    error = (after.weights - exact.weights).abs().max()
    assert 0 < error <= accuracy / (degree * abs(float(majority(length, degree - 1))))
    assert torch.equal(after.weights[:, :degree].sign(), exact.weights[:, :degree].sign())
    assert after.weights[:, :degree].abs().median() > 3 * after.weights[:, degree:].abs().median()


def test_lemma_64_degree_one_appears_with_the_first_step_and_its_sign_is_random():
    """Not E f x_j >= 1/(8k): its size is 1/(2k sqrt(2m)), its sign a coin; outside it is smaller by |zeta_(k+1) / zeta_(k-1)|."""
    length, degree, units = 11, 4, 64
    signs = every_input(length)
    before = [fresh(seed, units, length, degree) for seed in range(60)]
    after = [after_one_step(each, (2, 5, 7, 10)) for each in before]
    assert max(float(degree_one(each, signs).abs().max()) for each in before) < 1e-15
    found = torch.stack([degree_one(each, signs) for each in after])
    within, beyond = found[:, [2, 5, 7, 10]], found[:, [0, 1, 3, 4, 6, 8, 9]]
    size = 1 / (2 * degree * math.sqrt(2 * units))
    assert 0.8 * size < float(within.square().mean().sqrt()) < 1.4 * size
    assert 0.35 < float((within < 0).double().mean()) < 0.65
    assert float((within >= 1 / (8 * degree)).double().mean()) < 0.05
    ratio = abs(float(majority(length, degree + 1) / majority(length, degree - 1)))
    assert float(beyond.square().mean() / within.square().mean()) ** 0.5 == pytest.approx(ratio, rel=0.3)
    for each in after[:5]:  # f is odd: every even-degree coefficient is 0
        assert (each(signs) + each(-signs)).abs().max() < 1e-15


def test_what_a_student_sees_of_such_a_teacher_is_half_its_degree_one_alone():
    """Theorem 23: the gradient at w_ij of a fresh student is -a_i E f_T x_j / 2, whatever w_i."""
    signs, student = every_input(9), fresh(1, 12, 9, 4)
    teacher = after_one_step(fresh(0, 32, 9, 4), (0, 1, 2, 3))
    found = first_gradient(student, signs, slope(student, signs, signs[:, 0], teacher(signs)))
    torch.testing.assert_close(found, -student.outputs[:, None] / 2 * degree_one(teacher, signs))


@pytest.mark.slow
def test_the_degree_one_signal_fades_as_the_teacher_converges():
    """Corollary 4 in what it is used for: before, at and after the transition."""
    rows = two_stages(0, 64, 9, 2, 5000, 10)
    losses, signals = [loss for _, loss, _ in rows], [float(found[:2].abs().max()) for *_, found in rows]
    assert losses[0] > 0.98
    assert losses[-1] < 0.05
    assert max(signals) > 0.03
    assert signals[-1] < max(signals) / 3


def test_corollary_4_needs_more_than_a_small_hinge_loss():
    """f = 2y + x_1 has no hinge loss at all and E f x_1 = 1: the bound |E f x_i| <= loss holds for f within +-1."""
    signs = every_input(6)
    labels = parity_of(4)(signs)
    answers = 2 * labels + signs[:, 0]
    assert hinge_loss(answers, labels) == 0
    assert float((answers * signs[:, 0]).mean()) == 1
    for seed in range(20):
        noise = torch.rand(len(signs), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        bounded = labels * (1 - noise * signs[:, 0].clamp(min=0))
        assert (bounded @ signs / len(signs)).abs().max() <= hinge_loss(bounded, labels) + 1e-12


def test_theorem_23_teachers_show_the_support_in_few_strings_at_any_length():
    found = {length: middle([found_from_teacher(seed, length, 4) for seed in range(9)]) for length in (31, 127)}
    assert all(each <= 16 * math.log(length) * 8 for length, each in found.items())
    assert found[127] < 8 * found[31]  # d^3 would be 64 times as many
    labels = found_from_labels(0, 15, 4)
    assert labels is not None
    assert 2000 < labels < 2**20
    never = strings_to_find(fresh(0, 8, 15, 4), drawn(0, 15), parity_of(4), (0, 1, 2, 3), most=64)
    assert never is None


@pytest.mark.slow
def test_theorem_23_labels_need_strings_as_the_gap_to_the_minus_two():
    found = {length: middle([found_from_labels(seed, length, 4) for seed in range(5)]) for length in (9, 15, 31)}
    for length, count in found.items():
        gap = float(abs(majority(length, 3)) - abs(majority(length, 5)))
        assert 1 < count * gap**2 < 40
    assert found[31] > 30 * middle([found_from_teacher(seed, 31, 4) for seed in range(9)])


def test_lemma_66_few_parities_have_a_gradient_above_the_accuracy():
    """Its core, by Parseval: over all C(d, k) supports the squared gradients of a unit sum to E ||gradient||^2 at most."""
    signs, network = every_input(11), fresh(0, 6, 11, 4)
    network = Network(network.weights + 0.3 * signs[100:106], network.biases, torch.ones(6, dtype=torch.float64))
    total, above, accuracy = torch.zeros(6, dtype=torch.float64), torch.zeros(6), 0.3
    for support in itertools.combinations(range(11), 4):
        gradient = first_gradient(network, signs, -signs[:, list(support)].prod(-1)).square().sum(-1)
        total += gradient
        above += gradient > accuracy**2
    whole = (network.before(signs) > 0).double().mean(0) * 11  # E ||1[active] x||^2
    assert (total <= whole).all()
    assert total.max() > 0.05
    assert (above <= whole / accuracy**2).all()
