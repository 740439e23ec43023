"""The gradient at a k-gram's weights: what theorem 4.2 says of it, whatever a seed is measured beside."""

import math

import pytest
import torch

from harness.draw import Draw
from harness.experiments.ngrams.constructions import k_gram
from harness.experiments.ngrams.stationarity import Stationarity

SMALL = {"length": 24, "sequences": 192}


def measured(*seeds, **settings):
    (row,) = Stationarity(**SMALL | settings).measure(Draw(torch.tensor(seeds), "experiment"))
    return row


def test_at_the_unigram_the_gradient_is_zero():
    assert all(float(each.abs().max()) == 0 for each in measured(1, 2, k=1).values())


def test_only_the_keys_have_a_gradient_and_it_grows_with_the_root_of_c():
    once, twice = measured(1, 2, k=2), measured(1, 2, k=2, c=64.0)
    torch.testing.assert_close(
        twice["key"] / once["key"], torch.full((2,), math.sqrt(2), dtype=torch.float64), rtol=1e-3, atol=0
    )
    assert bool((once["others"] < 1e-3 * once["key"]).all())


def test_a_seeds_row_is_that_of_its_own_strings_by_autograd():
    together, alone = measured(5, 6, k=2), measured(6, k=2)
    for name, each in alone.items():
        torch.testing.assert_close(each[0], together[name][1], rtol=1e-12, atol=0)
    task = Stationarity(k=2, **SMALL).task()
    batch, made = task.sample(Draw(torch.tensor([6]), "experiment"), SMALL["sequences"]), k_gram(task, 2, 32.0)
    said = made(batch.inputs)[:, :, -1:]
    (-(batch.targets.double() * said).sum(-1).mean()).backward()
    torch.testing.assert_close(made.key.grad.norm(), alone["key"][0], rtol=1e-9, atol=0)
    torch.testing.assert_close(alone["key"] ** 2 - alone["floor"] ** 2, alone["squared"])


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"k": 4}, "experiment.k = 4 must be from 1 to experiment.order = 3"),
        ({"c": 0.0}, "experiment.c = 0 must be from 1 to 1000"),
        ({"sequences": 100}, "experiment.sequences = 100 must be a multiple of 64"),
        ({"length": 2}, "experiment.length = 2 must be at least 3 with experiment.order = 3"),
    ],
)
def test_settings_that_can_not_be_are_refused(settings, said):
    with pytest.raises(ValueError, match=said):
        Stationarity(**settings)
