"""Copying of Dyck strings, and models that copy exactly whatever they attend to."""

import pytest
import torch

import models
import tasks
from harness.draw import Draw


def test_every_bracket_is_answered_with_itself():
    task = tasks.build("dyck_copy", types=3, depth=3, length=12)
    batch = task.sample(Draw(torch.tensor([0, 1])), 20)
    assert torch.equal(
        batch.inputs, tasks.build("dyck", types=3, depth=3, length=12).sample(Draw(torch.tensor([0, 1])), 20).inputs
    )
    assert torch.equal(batch.targets, batch.inputs)
    assert torch.equal(batch.weights > 0, batch.inputs < 6)
    logits = torch.nn.functional.one_hot(batch.inputs, task.outputs).double()
    assert not task.wrong(logits, batch.targets)["token"].any()
    assert task.wrong(-logits, batch.targets)["token"].all()


def test_what_no_dyck_string_can_be_is_refused():
    with pytest.raises(ValueError, match=r"task\.types = 1 must be at least 2"):
        tasks.build("dyck_copy", types=1)


@pytest.mark.parametrize("layers", [1, 4])
@pytest.mark.parametrize("scale", [0.0, 10.0])
def test_a_model_copies_exactly_whatever_it_attends_to(layers, scale):
    """Half of the width holds the token and is read by the head; attention, uniform (scale 0) or arbitrary, writes into the other half."""
    task = tasks.build("dyck_copy")
    size = task.vocabulary
    fields = {"layers": layers, "width": 2 * size, "heads": 1, "positions": "none", "norm": "none", "feed_forward": 0}
    config = models.configure("transformer", **fields, final_norm=False)
    model = config.make(Draw(torch.tensor([0, 1]), "init"), size, task.length, task.outputs).double()
    seen = []
    with torch.no_grad():
        model.tokens.zero_()[..., :size] = torch.eye(size)
        for block in model.blocks:
            block.query.weight.mul_(scale)
            block.out.weight[..., :size] = 0
        model.head.weight.zero_()[:, :size] = torch.eye(size)
        model.head.bias.zero_()
        batch = task.sample(Draw(torch.tensor([2, 3])), 30)
        logits = model(batch.inputs, attend=lambda layer, weights: seen.append(weights))
    assert (logits - torch.nn.functional.one_hot(batch.inputs, size)).abs().max() < 1e-9
    uniform = torch.ones(task.length, task.length).tril().double()
    uniform /= uniform.sum(-1, keepdim=True)
    assert all(torch.allclose(weights, uniform.expand_as(weights)) == (scale == 0) for weights in seen)
    assert len(seen) == layers
