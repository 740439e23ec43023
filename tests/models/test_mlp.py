"""The packed MLP against torch.nn.Sequential on copied weights."""

import itertools
import math

import pytest
import torch
from torch import nn

from harness.draw import Draw
from models.aligned import product
from tests.models.invariance import build, check_needed_equals_full, check_same_in_any_pack, strings
from tests.rounding import assert_same


def _peer(pack, slot):
    parts = []
    for layer in [*pack.layers, pack.head]:
        linear = nn.Linear(*layer.weight.shape[1:])
        with torch.no_grad():
            linear.weight.copy_(layer.weight[slot].T)
            linear.bias.copy_(layer.bias[slot])
        parts += [linear, nn.ReLU()]
    return nn.Sequential(*parts[:-1])


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(("layers", "outputs", "batch"), [(1, 2, 1), (1, 8, 5), (3, 2, 4)])
def test_outputs_and_gradients_equal_torch(layers, outputs, batch):
    pack = build("mlp", [5, 6], 2, 20, outputs, width=50, layers=layers).double()
    tokens = strings(2, batch, 20, vocabulary=2)
    logits = pack(tokens)
    logits.square().sum().backward()
    for slot in range(2):
        peer = _peer(pack, slot)
        theirs = peer(1.0 - 2.0 * tokens[slot])
        assert_same(logits[slot, :, -1], theirs)
        theirs.square().sum().backward()
        for ours, linear in zip([*pack.layers, pack.head], peer[::2], strict=True):
            assert_same(ours.weight.grad[slot].T, linear.weight.grad)
            assert_same(ours.bias.grad[slot], linear.bias.grad)


def test_it_answers_at_the_last_position_alone():
    pack = build("mlp", [5, 6], 2, 20, width=50)
    logits = pack(strings(2, 3, 20, vocabulary=2))
    assert logits.shape == (2, 3, 20, 2)
    assert (logits[:, :, :-1] == 0).all()
    assert (logits[:, :, -1] != 0).all()


def test_needed_positions_alone_equal_the_full_computation():
    last = torch.full((3, 4, 1), 19)
    check_needed_equals_full("mlp", strings(3, 4, 20, vocabulary=2), 2, 20, [last], width=33)
    check_needed_equals_full("mlp", strings(3, 4, 20, vocabulary=2), 2, 20, [last, last - 5], width=33, layers=2)


@pytest.mark.parametrize("batch", [1, 2, 5, 32])
@pytest.mark.parametrize("fields", [{"width": 100}, {"width": 37, "layers": 2}, {"width": 1000}])
def test_a_replicate_is_the_same_in_any_pack(batch, fields):
    last = torch.full((3, batch, 1), 99)
    check_same_in_any_pack("mlp", strings(3, batch, 100, vocabulary=2), 2, 100, [last], **fields)


def test_one_unit_is_the_same_in_any_pack():
    check_same_in_any_pack("mlp", strings(3, 32, 100, vocabulary=2), 2, 100, [torch.full((3, 32, 1), 99)], width=1)


def test_the_teacher_of_the_paper_is_the_same_in_any_pack():
    last = torch.full((3, 1, 1), 99)
    check_same_in_any_pack("mlp", strings(3, 1, 100, vocabulary=2), 2, 100, [last], width=50_000)


def test_initial_weights_follow_torch_and_are_those_of_the_name_however_they_are_drawn():
    pack = build("mlp", [5, 6], 2, 100, width=50_000)  # 5 million numbers a replicate: drawn in parts
    whole = (Draw(torch.tensor([5, 6]), "init").named("layers.0.weight").rows(70).uniform((3, 50_000)) * 2 - 1) * 0.1
    assert torch.equal(pack.layers[0].weight[:, 70:73], whole)
    assert pack.layers[0].weight.abs().max().item() == pytest.approx(0.1, rel=1e-4)
    assert pack.head.weight.abs().max().item() == pytest.approx(50_000**-0.5, rel=1e-3)
    small = build("mlp", [5], 2, 16, width=9)
    drawn = Draw(torch.tensor([5]), "init").named("head.bias").uniform((2,)) * 2 - 1
    assert torch.equal(small.head.bias, drawn * (1 / math.sqrt(9)))


@pytest.mark.parametrize(
    ("arguments", "fields", "sentence"),
    [
        ((2, 10), {"width": 0}, "model.width = 0 must be at least 1"),
        ((2, 10), {"layers": 0}, "model.layers = 0 must be at least 1"),
        ((5, 10), {}, "this task has 5 tokens"),
        ((2, 10, 1), {}, "at least 2 outputs"),
        ((2, 10), {"heads": 2}, "model.heads is not an option of the mlp"),
    ],
)
def test_bad_models_are_refused(arguments, fields, sentence):
    with pytest.raises(ValueError, match=sentence):
        build("mlp", [0], *arguments, **fields)


def test_strings_of_another_length_and_attention_are_refused():
    pack = build("mlp", [0], 2, 10, width=4)
    with pytest.raises(ValueError, match="strings of 10 tokens, not of 9"):
        pack(strings(1, 2, 9, vocabulary=2))
    with pytest.raises(ValueError, match="no attention"):
        pack(strings(1, 2, 10, vocabulary=2), attend=lambda layer, weights: None)


def test_products_of_any_shape_are_the_same_in_any_pack():
    """Starts of matrices within a 64-byte line and products of one column would change bits without `product`'s padding."""
    generator = torch.Generator().manual_seed(0)
    for rows, inputs, outputs in itertools.product((1, 3, 33, 64), (1, 5, 16, 100), (1, 2, 5, 7, 20)):
        shapes = ((rows, inputs), (inputs, outputs), (outputs,))
        drawn = [torch.randn(3, *shape, generator=generator) for shape in shapes]

        def run(slots, drawn=drawn):
            x, weight, bias = (part[slots].requires_grad_() for part in drawn)
            out = product(x, weight, bias)
            out.square().sum().backward()
            return out, x.grad, weight.grad, bias.grad

        together = run(slice(0, 3))
        torch.testing.assert_close(together[0], torch.einsum("rni,rio->rno", drawn[0], drawn[1]) + drawn[2][:, None])
        for slot in range(3):
            alone = run(slice(slot, slot + 1))
            assert all(torch.equal(one, other[slot : slot + 1]) for one, other in zip(alone, together, strict=True))
