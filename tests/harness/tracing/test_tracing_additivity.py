"""Additivity against shares of variance worked out by hand, and against models that are made additive, or of an exclusive or."""

import itertools
import math
from dataclasses import replace

import pytest
import torch

from benchmarks.planted import plant
from benchmarks.planted.flipflop import BACKGROUND
from harness.tracing.additivity import additivity
from harness.tracing.flipflop.prompt import prompt_of
from harness.tracing.flipflop.trace import Settings, evidence

EVENTS = (3, 8, 11)


def every_string(times=5):
    """Each combination of three events equally often in each fold."""
    rows = list(itertools.product([False, True], repeat=3))
    return torch.tensor([row for row in rows for _ in range(times)])


def of(log_p):
    """The additivity of ln P = log_p(events) over all combinations of three."""
    same = every_string()
    given = torch.tensor([log_p(*map(float, row)) for row in same.tolist()], dtype=torch.float64).exp()
    return additivity(same, given, range(3))


def test_shares_of_variance_are_those_of_a_balanced_design():
    additive = of(lambda a, b, c: -5 + a + 2 * b - c)
    assert (additive.r2, additive.pairs) == pytest.approx((1, 1), abs=1e-12)
    assert additive.interaction == pytest.approx(0, abs=1e-12)
    exclusive = of(lambda a, b, c: -5 + (a != b))
    assert exclusive.pairs == pytest.approx(1, abs=1e-12)
    assert exclusive.r2 == pytest.approx(0, abs=1e-12)
    assert exclusive.interaction == pytest.approx(1, abs=1e-12)
    both = of(lambda a, b, c: -5 + a * b)  # variance 3/16, of which a and b alone explain 1/16 each
    assert (both.r2, both.pairs) == pytest.approx((2 / 3, 1), abs=1e-12)
    assert both.interaction == pytest.approx(1 / 3, abs=1e-12)
    three = of(lambda a, b, c: -5 + (a + b + c) % 2)  # no pair of them says anything
    assert (three.r2, three.pairs) == pytest.approx((0, 0), abs=1e-12)


def test_strings_are_predicted_from_others():
    """Noise that has nothing to do with the events is never explained, however many they are; fitted to themselves it would be."""
    torch.manual_seed(0)
    same, noise = torch.rand(300, 12) < 0.5, torch.rand(300).double()
    found = additivity(same, noise, range(12))
    assert found.r2 < 0.02
    assert found.pairs < 0.02


def test_what_can_not_be_fitted_is_no_number():
    same = every_string()
    for probability, events in ((torch.full((40,), 0.3), range(3)), (torch.zeros(40), range(3))):
        found = additivity(same, probability.double(), events)
        assert math.isnan(found.r2)
        assert math.isnan(found.interaction)
    few = additivity(same[::8], torch.linspace(0.1, 0.5, 5).double(), range(3))
    assert math.isnan(few.r2)


def made(log_p):
    """A model whose P(wrong) is exp of `log_p` of which of three events stand at their places, and a prompt that has them."""
    defect = plant("absolute", 2, 0.0, 48)
    prompt = prompt_of(defect.task, defect.prompt)

    def cause(given):
        instructions, symbols = given
        here = [(instructions[..., e] == prompt.instructions[e]) & (symbols[..., e] == prompt.symbols[e]) for e in EVENTS]
        p = log_p(*(each.double() for each in here)).exp() - BACKGROUND
        return p[..., None].float().expand(instructions.shape)

    return replace(defect, effect=1.0, cause=cause, background=torch.zeros_like(defect.background)), prompt


@pytest.mark.parametrize(
    ("log_p", "r2", "interaction"),
    [
        (lambda a, b, c: -6 + a + 2 * b + 1.5 * c, (0.999, 1), (-1e-6, 1e-6)),
        (lambda a, b, c: -6 + 4 * (a != b).double(), (-0.1, 0.2), (0.8, 1.1)),
    ],
    ids=["additive", "exclusive or"],
)
def test_made_models_on_the_strings_of_a_search(log_p, r2, interaction):
    model, prompt = made(log_p)
    given = evidence(model, prompt, Settings(strings=2000, rate=1.0), 0)
    found = additivity(given.same, given.hit, EVENTS)
    assert found.pairs > 0.999
    assert r2[0] <= found.r2 <= r2[1]
    assert interaction[0] <= found.interaction <= interaction[1]
