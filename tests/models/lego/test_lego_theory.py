"""The model that the theory analyses: its equations, the solution that is proved to be learned, and the law of its attention."""

import math

import pytest
import torch

from harness.draw import Draw
from models.lego.lego_relu import smoothed_relu
from tasks.lego.group_actions import Actions
from tasks.lego.lego import Lego
from tasks.lego.lego_attention import concentration, diluted
from tests.models.invariance import build, check_needed_equals_full, check_same_in_any_pack, strings
from tests.models.lego.construction import load

SMALL = {"neurons": 3, "knee": 2.0}
KLEIN = Actions(((0, 1, 2, 3), (1, 0, 3, 2), (2, 3, 0, 1), (3, 2, 1, 0)))


def _theory(task, neurons, **fields):
    return build("lego_theory", [0], task.vocabulary, task.tokens, neurons=neurons, **fields)


def _errors(model, task, sentences, seed=1):
    batch = task.sample(Draw(torch.tensor([seed])), sentences)
    answers = torch.arange(task.length, task.tokens).expand(1, sentences, -1)
    with torch.no_grad():
        logits = model(batch.inputs, [answers])
    return {name: int(wrong.sum()) for name, wrong in task.wrong(logits, batch.targets[:, :, task.length :]).items()}


@pytest.mark.parametrize(
    ("group", "neurons", "lengths"),
    [("C6", 6, (1, 5, 40, 160)), ("S3_regular", 6, (5, 40)), (KLEIN, 4, (5, 40)), ("S4", 4, (1, 5, 40)), ("A5", 5, (5, 40))],
)
def test_the_proved_solution_is_exact_at_all_lengths(group, neurons, lengths):
    for length in lengths:
        task = Lego(group, length=length, variables=max(lengths) + 1)
        model = load(_theory(task, neurons), task, concentration=12.0)
        assert _errors(model, task, 12) == {"read": 0, "clause": 0}


def test_the_proved_solution_of_s5_is_exact_at_the_largest_length():
    task = Lego("S5", length=160, variables=161)
    model = load(_theory(task, 5), task, concentration=12.0)
    assert _errors(model, task, 6) == {"read": 0, "clause": 0}
    with torch.no_grad():
        model.feed_forward[:, :, -task.action.values * 5 :] = 0  # the neurons that answer with values
    assert _errors(model, task, 6)["read"] > 0


@pytest.mark.parametrize(("group", "neurons"), [("C6", 6), pytest.param("S5", 5, marks=pytest.mark.slow)])
def test_attention_that_is_not_concentrated_enough_solves_short_lengths_alone(group, neurons):
    """Claim A and B in small: what is elsewhere is diluted as the context grows."""
    wrong = {}
    for length in (5, 40, 160):
        task = Lego(group, length=length, variables=161)
        wrong[length] = _errors(load(_theory(task, neurons), task, concentration=4.0), task, 4)["read"]
    assert wrong[5] == wrong[40] == 0
    assert wrong[160] > 100


@pytest.mark.parametrize("order", ["chain", "shuffled"])
@pytest.mark.parametrize(("strength", "gap"), [(0.0, 0.0), (3.0, 0.0), (5.0, 1.5), (200.0, 0.0)])
def test_attention_follows_the_exact_law_of_dilution(strength, gap, order):
    for length in (1, 2, 7):
        task = Lego("C6", length=length, variables=12, order=order)
        model = load(_theory(task, 6), task, strength, gap)
        batch, maps = task.sample(Draw(torch.tensor([3])), 4), []
        model(batch.inputs, attend=lambda layer, weights, maps=maps: maps.append(weights))
        found = concentration(maps[0], batch.inputs)
        assert found.epsilon.shape == (1, 4, 1, length)
        for answer in range(1, length + 1):
            predicate, itself = diluted(strength + gap / 2, strength - gap / 2, length, answer)
            torch.testing.assert_close(found.predicate[..., answer - 1], torch.full((1, 4, 1), predicate))
            torch.testing.assert_close(found.itself[..., answer - 1], torch.full((1, 4, 1), itself))
            assert found.gap[0, 0, 0, answer - 1].item() == pytest.approx(predicate - itself, abs=1e-6)
            if strength == 0:
                assert found.epsilon[0, 0, 0, answer - 1].item() == pytest.approx(1 - 2 / (length + answer), abs=1e-6)
        if 0 < strength < 100:
            other = torch.arange(1, length + 1) + length - 2
            expected = other / (math.exp(strength + gap / 2) + math.exp(strength - gap / 2))
            torch.testing.assert_close(found.odds[0, 0, 0], expected, rtol=1e-3, atol=1e-6)


@torch.no_grad()
def test_logits_are_the_papers_equations():
    """Written out clause by clause in float64."""
    size, length = 9, 6
    pack = build("lego_theory", [3, 4], size, length, neurons=2, knee=0.7, leak=0.2, floor=0.5, clip=0.8)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in (pack.to_input, pack.to_answered):
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    tokens = strings(2, 2, length, 5, vocabulary=size)
    logits = pack(tokens)
    clip, bias = 0.8 * math.log(size), size**-0.5 * math.log(size)
    clipped = 0
    for slot in range(2):
        weight = pack.feed_forward[slot].double().view(5 * size, 5, size, 2)
        for string in range(2):
            vectors = torch.zeros(length, 5, size, dtype=torch.float64)
            for t, clause in enumerate(tokens[slot, string].tolist()):
                for place, token in enumerate(clause):
                    if token:
                        vectors[t, place, token] = 1
            q = torch.zeros(5, size, 5, size, dtype=torch.float64)
            q[3, :, 2], q[3, :, 3] = pack.to_input[slot].double(), pack.to_answered[slot].double()
            for t in range(length):
                scores = torch.stack([torch.einsum("ab,abcd,cd", vectors[t], q, vectors[k]) for k in range(t + 1)])
                x = (scores.softmax(0)[:, None, None] * vectors[: t + 1]).sum(0).flatten()
                for i in range(5):
                    for j in range(size):
                        expected = sum(_plain_relu(float(x @ weight[:, i, j, r]) + bias) for r in range(2))
                        clipped += expected > clip
                        assert logits[slot, string, t, i, j].item() == pytest.approx(min(expected, clip), abs=1e-5)
    assert 0 < clipped < 2 * 2 * length * 5 * size


def _plain_relu(x, q=4, rho=0.7, leak=0.2, floor=0.5):
    if x > rho:
        return x - rho * (1 - 1 / q)
    if x > 0:
        return x**q / (q * rho ** (q - 1))
    if x > -leak:
        return -(x**2) / 2
    return leak * max(x, -floor) + leak**2 / 2


def test_the_smoothed_relu_is_its_formula_and_smooth():
    x = torch.linspace(-2, 3, 5001, dtype=torch.float64, requires_grad=True)
    for power, knee, leak, floor in ((4, 0.7, 0.2, 0.5), (2, 1.5, 0.0, 1.0), (6, 0.5, 0.1, 3.0)):
        y = smoothed_relu(x, power, knee, leak, floor)
        expected = [_plain_relu(each, power, knee, leak, floor) if leak or each > 0 else 0.0 for each in x.tolist()]
        torch.testing.assert_close(y, torch.tensor(expected, dtype=torch.float64))
        (slope,) = torch.autograd.grad(y.sum(), x)
        away = (x + floor).abs() > 0.002  # the one corner that the paper's formula has
        jumps = (slope[1:] - slope[:-1]).abs()[away[1:] & away[:-1]]
        assert jumps.max() < 2.5 * (power - 1) / knee * 0.001 + 1e-9


def test_training_starts_as_the_paper_says():
    size = 213
    pack = build("lego_theory", [0], size, 10)
    assert not pack.to_input.any()
    assert not pack.to_answered.any()
    assert pack.feed_forward.std().item() == pytest.approx(size**-0.5, rel=0.01)
    assert pack.bias == pytest.approx(0.37, abs=0.005)  # the card's value at d = 213
    assert {name for name, _ in pack.named_parameters()} == {"to_input", "to_answered", "feed_forward"}


@pytest.mark.parametrize("learns", ["feed_forward", "attention"])
def test_the_part_that_does_not_learn_has_no_gradient(learns):
    pack = build("lego_theory", [0], 9, 4, neurons=2, learns=learns)
    pack(strings(1, 2, 4, 5, vocabulary=9)).square().sum().backward()
    assert (pack.feed_forward.grad is None) == (learns == "attention")
    assert (pack.to_input.grad is None) == (pack.to_answered.grad is None) == (learns == "feed_forward")


@pytest.mark.parametrize("fields", [SMALL, {"neurons": 1, "leak": 0.1}])
@pytest.mark.parametrize("batch", [1, 4])
def test_a_replicate_is_the_same_in_any_pack(fields, batch):
    clauses = strings(3, batch, 7, 5, vocabulary=13)
    check_same_in_any_pack("lego_theory", clauses, 13, 7, **fields)
    check_same_in_any_pack("lego_theory", clauses, 13, 7, [torch.arange(3, 6).expand(3, batch, -1)], **fields)


def test_needed_clauses_alone_equal_the_full_computation():
    clauses, blocks = strings(3, 4, 7, 5, vocabulary=13), [strings(3, 4, 3, vocabulary=7, seed=seed) for seed in (1, 2)]
    maps = check_needed_equals_full("lego_theory", clauses, 13, 7, blocks, **SMALL)
    assert [(layer, tuple(weights.shape)) for layer, weights in maps] == [(0, (3, 4, 1, 7, 7))]


@pytest.mark.parametrize(
    ("arguments", "fields", "sentence"),
    [
        ((9, 4), {"neurons": 0}, "model.neurons = 0 must be at least 1"),
        ((9, 4), {"power": 3}, "model.power = 3 must be an even number"),
        ((9, 4), {"knee": 0.0}, "model.knee = 0.0 must be above 0"),
        ((9, 4), {"leak": 1.0}, "below model.floor"),
        ((9, 4), {"learns": "nothing"}, "must be both, feed_forward or attention"),
        ((1, 4), {}, "at least one other token"),
        ((9, 4, 3), {}, "3 outputs are not possible"),
    ],
)
def test_bad_models_are_refused(arguments, fields, sentence):
    with pytest.raises(ValueError, match=sentence):
        build("lego_theory", [0], *arguments, **fields)
    with pytest.raises(ValueError, match="5 a clause"):
        build("lego_theory", [0], 9, 4)(strings(1, 2, 4, vocabulary=9))
