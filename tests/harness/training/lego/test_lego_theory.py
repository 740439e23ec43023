"""The analysed model, trained in the two stages of the theory, becomes what the theorems say."""

import dataclasses
import itertools
import statistics

import pytest
import torch

from harness.draw import Draw
from harness.planning.pack import ScoredSet
from harness.training.evaluate import score
from harness.training.pack_state import Training
from tasks.lego.lego import ACTION, VALUE
from tasks.lego.lego_attention import concentration
from tests.harness.training.lego.packs import lego_pack

CPU = torch.device("cpu")


@pytest.mark.slow
def test_the_analysed_model_learns_in_the_two_stages_of_the_theory():
    """Algorithm 1 with Adam in place of population gradient descent: W on sentences of one step, then Q on two, values alone.

    Theorem 4.1: it then solves longer ones; the two diagonals of Q end equal (the gap closes), and the neurons that know a fact weigh its
    action and its value alike (theorem B.1).
    """

    def stage(length, learns, steps, lr, loss):
        model = {"name": "lego_theory", "neurons": 24, "learns": learns}
        return Training(lego_pack(model, [{"variables": 24, "length": length, "loss": loss}], [0], steps, lr=lr, batch=64), CPU)

    first, second = stage(1, "feed_forward", 1400, 2e-2, "clause"), stage(2, "attention", 300, 5e-2, "value")
    while first.step < 1400:
        first.advance()
    assert not first.model.to_input.any()
    with torch.no_grad():
        second.model.feed_forward.copy_(first.model.feed_forward)
    while second.step < 300:
        second.advance()
    assert torch.equal(second.model.feed_forward, first.model.feed_forward)
    task, model = second.task.evaluation(), second.model
    for length in (1, 2, 5, 10):
        scored = ScoredSet(str(length), dataclasses.replace(task, length=length), 300, None, f"{length:015x}")
        found, number = score(model, [scored], CPU, "fp32")[0]
        assert found.evaluation_rows(number, False)[1]["sequences_wrong"] <= 3
    diagonals = [block[0].diagonal()[1 : task.first_action] for block in (model.to_input, model.to_answered)]
    assert min(diagonal.min() for diagonal in diagonals) > 1
    assert abs(diagonals[0].mean() - diagonals[1].mean()) < 0.05
    batch, maps = task.sample(Draw(torch.tensor([3])), 100), []
    model(batch.inputs, attend=lambda layer, weights: maps.append(concentration(weights, batch.inputs)))
    assert maps[0].gap.abs().mean() < 0.05
    weight = model.feed_forward[0].detach().view(5, task.vocabulary, 5, task.vocabulary, 24)
    ratios = []
    for action, value in itertools.product(range(6), repeat=2):
        answer = weight[:, :, VALUE, task.first_value + int(task.action.table[action, value])]
        on_action, on_value = answer[ACTION, task.first_action + action], answer[VALUE, task.first_value + value]
        neuron = (on_action + on_value).argmax()
        ratios.append(float((on_action / on_value)[neuron]))
    assert statistics.median(ratios) == pytest.approx(1, abs=0.1)
