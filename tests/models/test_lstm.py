"""The packed LSTM against torch.nn.LSTM on copied weights."""

import pytest
import torch

import models
import tasks
from harness.draw import Draw


def _peer(pack, slot, width):
    embedding = torch.nn.Embedding(5, width)
    lstm = torch.nn.LSTM(width, width, batch_first=True)
    head = torch.nn.Linear(width, 5)
    with torch.no_grad():
        embedding.weight.copy_(pack.tokens[slot])
        lstm.weight_ih_l0.copy_(pack.input[slot].T)
        lstm.weight_hh_l0.copy_(pack.hidden[slot].T)
        lstm.bias_ih_l0.copy_(pack.input_bias[slot])
        lstm.bias_hh_l0.copy_(pack.hidden_bias[slot])
        head.weight.copy_(pack.head.weight[slot].T)
        head.bias.copy_(pack.head.bias[slot])
    return embedding, lstm, head


@pytest.mark.parametrize("width", [16, 9])
def test_outputs_and_gradients_equal_torch(width):
    pack = models.build("lstm", Draw(torch.tensor([5, 6]), "init"), vocabulary=5, length=40, width=width)
    batch = tasks.build("flipflop", length=40).sample(Draw(torch.tensor([1, 2])), 3)
    logits = pack(batch.inputs)
    logits.square().sum().backward()
    for slot in range(2):
        embedding, lstm, head = _peer(pack, slot, width)
        theirs = head(lstm(embedding(batch.inputs[slot]))[0])
        torch.testing.assert_close(logits[slot], theirs, rtol=1e-5, atol=1e-6)
        theirs.square().sum().backward()
        for ours, other in (
            (pack.tokens.grad[slot], embedding.weight.grad),
            (pack.input.grad[slot].T, lstm.weight_ih_l0.grad),
            (pack.hidden.grad[slot].T, lstm.weight_hh_l0.grad),
            (pack.input_bias.grad[slot], lstm.bias_ih_l0.grad),
            (pack.hidden_bias.grad[slot], lstm.bias_hh_l0.grad),
            (pack.head.weight.grad[slot].T, head.weight.grad),
        ):
            torch.testing.assert_close(ours, other, rtol=1e-4, atol=1e-5)


def test_evaluation_without_gradients_gives_the_same_logits():
    pack = models.build("lstm", Draw(torch.tensor([5]), "init"), vocabulary=5, length=40, width=16)
    batch = tasks.build("flipflop", length=40).sample(Draw(torch.tensor([1])), 3)
    with torch.no_grad():
        without = pack(batch.inputs)
    assert torch.equal(without, pack(batch.inputs))


def test_the_skyline_has_the_parameters_of_the_paper():
    pack = models.build("lstm", Draw(torch.tensor([0]), "init"), vocabulary=5, length=512, width=128)
    assert sum(parameter.numel() for parameter in pack.parameters()) == 133_381  # card, section 2


def test_initial_weights_follow_torch():
    pack = models.build("lstm", Draw(torch.tensor([0]), "init"), vocabulary=5, length=8, width=128)
    assert pack.hidden.abs().max().item() == pytest.approx(128**-0.5, rel=0.01)
    assert pack.tokens.std().item() == pytest.approx(1, rel=0.1)
