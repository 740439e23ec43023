"""The packed LSTM against torch.nn.LSTM on copied weights."""

import pytest
import torch

import models
import tasks
from harness.draw import Draw
from models.lstm import Recurrent
from tests.models.invariance import build, check_needed_equals_full, check_same_in_any_pack, noise, strings
from tests.rounding import assert_same


@pytest.fixture(autouse=True, params=["library", "packed"])
def kind(request, monkeypatch):
    """Both ways to compute it: as on a CPU and as on a GPU."""
    monkeypatch.setattr(Recurrent, "packed", request.param == "packed")
    return request.param


def _peer(pack, slot, width):
    kind, narrow = pack.tokens.dtype, pack.tokens.shape[-1]
    embedding = torch.nn.Embedding(5, narrow, dtype=kind)
    lstm = torch.nn.LSTM(narrow, width, batch_first=True, dtype=kind)
    head = torch.nn.Linear(width, 5, dtype=kind)
    with torch.no_grad():
        embedding.weight.copy_(pack.tokens[slot])
        lstm.weight_ih_l0.copy_(pack.input[slot].T)
        lstm.weight_hh_l0.copy_(pack.hidden[slot].T)
        lstm.bias_ih_l0.copy_(pack.input_bias[slot])
        lstm.bias_hh_l0.copy_(pack.hidden_bias[slot])
        head.weight.copy_(pack.head.weight[slot].T)
        head.bias.copy_(pack.head.bias[slot])
    return embedding, lstm, head


@pytest.mark.parametrize(("width", "embedding"), [(16, None), (9, None), (16, 8), (9, 5)])
def test_outputs_and_gradients_equal_torch(width, embedding):
    draw = Draw(torch.tensor([5, 6]), "init")
    pack = models.build("lstm", draw, vocabulary=5, length=40, width=width, embedding=embedding).double()
    batch = tasks.build("flipflop", length=40).sample(Draw(torch.tensor([1, 2])), 3)
    logits = pack(batch.inputs)
    logits.square().sum().backward()
    for slot in range(2):
        embedding, lstm, head = _peer(pack, slot, width)
        theirs = head(lstm(embedding(batch.inputs[slot]))[0])
        assert_same(logits[slot], theirs)
        theirs.square().sum().backward()
        for ours, other in (
            (pack.tokens.grad[slot], embedding.weight.grad),
            (pack.input.grad[slot].T, lstm.weight_ih_l0.grad),
            (pack.hidden.grad[slot].T, lstm.weight_hh_l0.grad),
            (pack.input_bias.grad[slot], lstm.bias_ih_l0.grad),
            (pack.hidden_bias.grad[slot], lstm.bias_hh_l0.grad),
            (pack.head.weight.grad[slot].T, head.weight.grad),
        ):
            assert_same(ours, other)


def test_evaluation_without_gradients_gives_the_same_logits(kind):
    pack = models.build("lstm", Draw(torch.tensor([5]), "init"), vocabulary=5, length=40, width=16).double()
    batch = tasks.build("flipflop", length=40).sample(Draw(torch.tensor([1])), 3)
    with torch.no_grad():
        without = pack(batch.inputs)
    if kind == "packed":
        assert torch.equal(without, pack(batch.inputs))
    assert_same(without, pack(batch.inputs))


def test_the_skyline_has_the_parameters_of_the_paper():
    pack = models.build("lstm", Draw(torch.tensor([0]), "init"), vocabulary=5, length=512, width=128)
    assert sum(parameter.numel() for parameter in pack.parameters()) == 133_381  # card, section 2


def test_initial_weights_follow_torch():
    pack = models.build("lstm", Draw(torch.tensor([0]), "init"), vocabulary=5, length=8, width=128)
    assert pack.hidden.abs().max().item() == pytest.approx(128**-0.5, rel=0.01)
    assert pack.tokens.std().item() == pytest.approx(1, rel=0.1)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(("width", "layers"), [(16, 2), (9, 3)])
def test_several_layers_equal_torch(width, layers):
    pack = build("lstm", [5, 6], 5, 12, 3, width=width, layers=layers).double()
    tokens = strings(2, 4, 12, vocabulary=5)
    logits = pack(tokens)
    logits.square().sum().backward()
    ours = [pack, *pack.upper]
    for slot in range(2):
        embedding, head = torch.nn.Embedding(5, width), torch.nn.Linear(width, 3)
        lstm = torch.nn.LSTM(width, width, num_layers=layers, batch_first=True)
        pairs = [(embedding.weight, pack.tokens), (head.weight, pack.head.weight), (head.bias, pack.head.bias)]
        for i, layer in enumerate(ours):
            pairs += [(getattr(lstm, f"weight_ih_l{i}"), layer.input), (getattr(lstm, f"weight_hh_l{i}"), layer.hidden)]
            pairs += [(getattr(lstm, f"bias_ih_l{i}"), layer.input_bias), (getattr(lstm, f"bias_hh_l{i}"), layer.hidden_bias)]
        turned = [theirs.dim() == 2 and theirs is not embedding.weight for theirs, _ in pairs]
        with torch.no_grad():
            for (theirs, mine), turn in zip(pairs, turned, strict=True):
                theirs.copy_(mine[slot].T if turn else mine[slot])
        expected = head(lstm(embedding(tokens[slot]))[0])
        assert_same(logits[slot], expected)
        expected.square().sum().backward()
        for (theirs, mine), turn in zip(pairs, turned, strict=True):
            gradient = mine.grad[slot].T if turn else mine.grad[slot]
            assert_same(gradient, theirs.grad)


def test_the_first_layer_does_not_depend_on_the_others():
    one, two = (build("lstm", [5], 5, 12, width=16, layers=layers) for layers in (1, 2))
    assert torch.equal(one.hidden, two.hidden)
    assert not torch.equal(two.hidden, two.upper[0].hidden)
    assert two.upper[0].input.abs().max().item() == pytest.approx(16**-0.5, rel=0.01)


@pytest.mark.parametrize("batch", [1, 3, 16])
@pytest.mark.parametrize("fields", [{"width": 16}, {"width": 128}, {"width": 9, "layers": 2}, {"width": 1, "layers": 3}])
def test_a_replicate_is_the_same_in_any_pack(batch, fields):
    tokens = strings(3, batch, 12, vocabulary=5)
    needed = [strings(3, batch, 3, vocabulary=12, seed=1)]
    check_same_in_any_pack("lstm", tokens, 5, 12, needed, **fields)
    check_same_in_any_pack("lstm", tokens, 5, 12, outputs=2, **fields)


def test_needed_positions_of_several_layers_equal_the_full_computation():
    blocks = [strings(3, 4, 3, vocabulary=12, seed=seed) for seed in (1, 2)]
    check_needed_equals_full("lstm", strings(3, 4, 12, vocabulary=5), 5, 12, blocks, width=9, layers=2)


def test_dropout_acts_between_the_layers_with_each_replicates_rate():
    fields = {"width": 16, "layers": 2, "dropout": 0.5}
    tokens = strings(3, 4, 12, vocabulary=5)
    check_same_in_any_pack("lstm", tokens, 5, 12, rates={"dropout": [0.1, 0.5, 0.3]}, **fields)
    pack, plain = build("lstm", [3, 4], 5, 12, **fields), build("lstm", [3, 4], 5, 12, width=16, layers=2)
    scene = noise([3, 4], dropout=[0.5, 0.25])
    assert torch.equal(pack(tokens[:2]), plain(tokens[:2]))  # none in scoring
    # by hand: the states of the lower layer, dropped, through torch's upper layer
    dropped = pack(tokens[:2], None, scene)
    rates = scene.mask((12, 4, 16), "dropout", 0)
    assert (rates == 0).float().mean((1, 2, 3)).tolist() == pytest.approx([0.5, 0.25], abs=0.05)
    assert rates.amax((1, 2, 3)).tolist() == pytest.approx([2, 4 / 3])
    for slot in range(2):
        embedding, lower, _ = _peer(pack, slot, 16)
        upper = torch.nn.LSTM(16, 16, batch_first=True)
        with torch.no_grad():
            for name, mine in (("weight_ih_l0", "input"), ("weight_hh_l0", "hidden")):
                getattr(upper, name).copy_(getattr(pack.upper[0], mine)[slot].T)
            upper.bias_ih_l0.copy_(pack.upper[0].input_bias[slot])
            upper.bias_hh_l0.copy_(pack.upper[0].hidden_bias[slot])
        states = lower(embedding(tokens[slot]))[0] * rates[slot].transpose(0, 1)
        theirs = upper(states)[0] @ pack.head.weight[slot] + pack.head.bias[slot]
        assert_same(dropped[slot], theirs)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"width": 0}, "model.width = 0 must be at least 1"),
        ({"layers": 0}, "model.layers = 0 must be at least 1"),
        ({"layers": 2, "dropout": 1.0}, "model.dropout = 1.0 must be at least 0 and below 1"),
        ({"dropout": 0.1}, "acts between layers: give model.layers = 2"),
    ],
)
def test_bad_models_are_refused(fields, sentence):
    with pytest.raises(ValueError, match=sentence):
        build("lstm", [0], 5, 12, **fields)


def test_it_has_no_attention_to_hand_out():
    with pytest.raises(ValueError, match="no attention"):
        build("lstm", [0], 5, 12, width=16)(strings(1, 2, 12, vocabulary=5), attend=lambda layer, weights: None)


def test_in_bf16_it_learns_what_it_learns_in_fp32_up_to_rounding(kind):
    """Autocast is on in forward and off in backward, so a packed recurrence of its own must keep its dtypes apart."""
    gradients = {}
    for precise in (True, False):
        pack = models.build("lstm", Draw(torch.tensor([5, 6]), "init"), vocabulary=5, length=40, width=16, layers=2)
        batch = tasks.build("flipflop", length=40).sample(Draw(torch.tensor([1, 2])), 8)
        with torch.autocast("cpu", torch.bfloat16, enabled=not precise):
            logits = pack(batch.inputs)
        torch.nn.functional.cross_entropy(logits.float().flatten(0, -2), batch.targets.flatten()).backward()
        gradients[precise] = {name: parameter.grad for name, parameter in pack.named_parameters()}
    for name, exact in gradients[True].items():
        rounded = gradients[False][name]
        assert rounded.dtype == torch.float32
        # bfloat16 has 8 bits; 40 steps of a recurrence lose a few of them
        assert (rounded - exact).norm() < 0.05 * exact.norm(), name
