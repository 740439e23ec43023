"""Correlations and attention of networks written down by hand, whose values are known."""

import math

import pytest
import torch

import models
from harness.draw import Draw
from harness.probes.distillation.parity import Monomials, monomials, support_attention
from harness.probes.probe import Nothing
from harness.probes.strings import strings
from tasks.distillation.hierarchical_parity import HierarchicalParity
from tasks.distillation.parity import SparseParity
from tests.rounding import rounded_single

TASK = SparseParity(length=6, degree=3, support=(1, 2, 4))
COUNT = 4096
NOISE = 5 / (2 * COUNT**0.5)  # five standard deviations of the mean of p · sign, p in 0 … 1


def by_item(rows):
    return {row["item"]: row["value"] for row in rows}


def _parity():
    """p = 1 where x1·x2·x4 = +1, else 0: of s = x1 + x2 + x4 the sign is -1 + relu(s + 3) - 2 relu(s + 1) + 2 relu(s - 1)."""
    model = models.build("mlp", Draw(torch.tensor([0]), "init"), vocabulary=2, length=6, width=3)
    weight, bias = torch.zeros(6, 3), torch.tensor([3.0, 1.0, -1.0])
    weight[list(TASK.coordinates)] = 1
    head = torch.stack([torch.tensor([1.0, -2.0, 2.0]), torch.zeros(3)], dim=-1) * 60
    with torch.no_grad():
        for parameter, value in zip(model.parameters(), (weight, bias, head, torch.tensor([-60.0, 0.0])), strict=True):
            assert parameter[0].shape == value.shape
            parameter.copy_(value[None])
    return model


def test_a_converged_network_correlates_with_the_whole_support_alone():
    found = by_item(monomials(_parity(), TASK, COUNT, Monomials(outside=10)))
    inputs = 1 - 2 * torch.cat([batch.inputs[0] for batch in strings(TASK, COUNT, COUNT)])
    share = float((inputs[:, [1, 2, 4]].prod(-1) == 1).double().mean())
    assert found["degree=3 x1 x2 x4"] == pytest.approx(share, abs=1e-6)
    assert found["degree=3 inside"] == found["degree=3 x1 x2 x4"]
    for item, value in found.items():
        if "ratio" not in item and item not in ("degree=3 x1 x2 x4", "degree=3 inside"):
            assert value < NOISE, item
    assert found["degree=3 ratio"] > 10
    assert {item for item in found if item.startswith("degree=2 x")} == {"degree=2 x1 x2", "degree=2 x1 x4", "degree=2 x2 x4"}


def test_a_network_of_one_coordinate_of_the_support_spikes_at_degree_one():
    model = _parity()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        weight, _, head, _ = model.parameters()
        weight[0, 2, 0], head[0, 0, 0] = 1, 60  # relu(x2): p = 1 at +1, 1/2 at -1
    found = by_item(monomials(model, TASK, COUNT, Monomials(degrees=1, outside=3)))
    assert found["degree=1 x2"] == pytest.approx(1 / 4, abs=NOISE)
    assert found["degree=1 inside"] == pytest.approx(1 / 12, abs=NOISE)
    assert found["degree=1 outside"] < NOISE
    assert not any("degree=2" in item for item in found)


def test_a_tree_has_its_path_to_the_first_class():
    task = HierarchicalParity(length=9, depth=2, degree=2)

    class Leaf:
        """Says the class for sure."""

        def __call__(self, inputs, needed):
            signs = (1 - 2 * inputs[..., :6]).unflatten(-1, (3, 2)).prod(-1)
            left, right = (signs[..., 0] == -1), (signs[..., 0] == 1)
            classes = torch.where(left, 0, 2) + torch.where(left, signs[..., 1] == 1, right & (signs[..., 2] == 1)).long()
            return torch.nn.functional.one_hot(classes, 4)[:, :, None] * 100.0

    found = by_item(monomials(Leaf(), task, COUNT, Monomials(outside=5)))
    (batch,) = strings(task, COUNT, COUNT)
    share = float((batch.targets[0, :, -1] == 0).double().mean())
    # class 0 is where both products are -1
    assert found["node=1 degree=2 x0 x1"] == found["node=2 degree=2 x2 x3"] == pytest.approx(share, abs=1e-6)
    assert max(found[f"node={node} degree=1 inside"] for node in (1, 2)) < NOISE
    assert max(found[f"node={node} degree=2 outside"] for node in (1, 2)) < NOISE
    assert not any(item.startswith("node=3") for item in found), "node 3 is not on the way to class 0"


def _looking(strength, layers, heads):
    """Proposition 9: attention in proportion to exp(c · 1[j in S]), in every head and layer."""
    options = {"norm": "none", "feed_forward": 0, "initial": "gpt2", "bias": True, "final_norm": False}
    model = models.build(
        "transformer",
        Draw(torch.tensor([0]), "init"),
        vocabulary=2,
        length=6,
        layers=layers,
        heads=heads,
        width=4 * heads,
        **options,
    )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.positions[0, list(TASK.coordinates), 0] = 1
        for block in model.blocks:
            for head in range(heads):
                block.key.weight[0, 0, 4 * head] = 1
                block.query.bias[0, 4 * head] = strength * 4**0.5
    return model


@pytest.mark.parametrize("strength", [0.0, 2.0, 20.0])
def test_attention_on_the_support_of_proposition_9(strength):
    found = by_item(support_attention(_looking(strength, 1, 1), TASK, 5, Nothing()))
    mass = 3 * math.exp(strength) / (3 * math.exp(strength) + 3)
    assert found == {"sum": rounded_single(mass), "mean": rounded_single(mass)}


def test_paths_of_two_layers_and_heads_are_added_up():
    found = by_item(support_attention(_looking(1.5, 2, 3), TASK, 5, Nothing()))
    weight = [math.exp(1.5) if j in TASK.coordinates else 1.0 for j in range(6)]
    reached = [sum(weight[j] for j in TASK.coordinates if j <= i) / sum(weight[: i + 1]) for i in range(6)]
    path = sum(weight[i] / sum(weight) * reached[i] for i in range(6))
    assert found["sum"] == rounded_single(9 * path)
    assert found["mean"] == rounded_single(path)
