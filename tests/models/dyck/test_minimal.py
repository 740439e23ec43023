"""The packed minimal-first-layer model against its equation for one model, token by token in float64."""

import math

import pytest
import torch

import tasks
from harness.draw import Draw
from tests.models.invariance import build, check_needed_equals_full, check_same_in_any_pack
from tests.rounding import assert_same

T, VOCABULARY, CLASSES = 12, 6, 5
CASES = [{}, {"encoding": "parts", "width": 7}, {"encoding": "angle"}, {"attention": "uniform", "width": 20}]


def _strings(replicates, count, length=T, **fields):
    task = tasks.build("dyck", depth=3, length=length, **fields)
    return task.sample(Draw(torch.arange(replicates)), count).inputs


def _encoding(name, token, before, after):
    """Equations 2.55 to 2.57 for two types and depth 3, by hand; `before`, `after`: depths around the token."""
    level = before if token % 2 and token < 4 else after
    if name == "pair":
        found = torch.zeros(14)
        kinds = [(0, 1), (0, 2), (0, 3), (2, 1), (2, 2), (2, 3), (1, 1), (1, 2), (1, 3), (3, 1), (3, 2), (3, 3)]
        found[kinds.index((token, level)) if token < 4 else 8 + token] = 1
        return found.double()
    found = torch.zeros(6)
    found[token] = 1
    if name == "parts":
        depth = torch.zeros(4)
        depth[level if token < 4 else 0] = 1
        return torch.cat([found, depth]).double()
    theta = math.atan(after / (3 + 2 - after)) if token < 4 else 0.0
    return torch.cat([found, torch.tensor([math.cos(theta), math.sin(theta)], dtype=torch.float64)])


def _written_out(weights, tokens, encoding="pair", attention="learned", width=50):
    """Logits [B, T, V] of one model and its attention [B, T, T]."""
    logits, maps = [], []
    for string in tokens.tolist():
        depth, rows = 0, []
        for token in string:
            after = depth + (0 if token >= 4 else -1 if token % 2 else 1)
            rows.append(_encoding(encoding, token, depth, after))
            depth = after
        e = torch.stack(rows)
        scores = torch.zeros(len(string), len(string)).double()
        if attention == "learned":
            query = e @ weights["query.weight"] + weights["query.bias"]
            scores = query @ (e @ weights["key.weight"]).T / width**0.5
        alpha = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -math.inf).softmax(-1)
        read = alpha @ (e @ weights["value.weight"] + weights["value.bias"])
        normal = torch.nn.functional.layer_norm(read, (width,), weights["norm.gain"], weights["norm.bias"])
        logits.append(normal @ weights["head.weight"] + weights["head.bias"])
        maps.append(alpha)
    return torch.stack(logits), torch.stack(maps)


@pytest.mark.parametrize("fields", CASES, ids=str)
def test_outputs_gradients_and_attention_equal_the_equation(fields):
    pack = build("minimal_first_layer", [3, 4], VOCABULARY, T, CLASSES, depth=3, **fields).double()
    tokens = torch.cat([_strings(2, 3), _strings(2, 3, complete=False)], dim=1)
    maps = []
    logits = pack(tokens, attend=lambda layer, weights: maps.append(weights))
    assert_same(pack(tokens), logits)
    assert maps[0].shape == (2, 6, 1, T, T)
    logits.square().mean((1, 2, 3)).sum().backward()
    for slot in range(2):
        weights = {key: value[slot].detach().clone().requires_grad_() for key, value in pack.named_parameters()}
        theirs, alpha = _written_out(weights, tokens[slot], **fields)
        assert_same(logits[slot], theirs)
        assert_same(maps[0][slot, :, 0], alpha)
        theirs.square().mean().backward()
        for key, parameter in pack.named_parameters():
            assert_same(parameter.grad[slot], weights[key].grad, key)


@pytest.mark.parametrize("fields", CASES, ids=str)
def test_a_replicate_is_the_same_in_any_pack(fields):
    check_same_in_any_pack("minimal_first_layer", _strings(3, 5), VOCABULARY, T, outputs=CLASSES, depth=3, **fields)


def test_needed_positions_alone_and_attention_on_request_change_nothing():
    blocks = [torch.tensor([[[1, 3], [11, 0]]] * 3), torch.tensor([[[5, 5], [2, 7]]] * 3)]
    maps = check_needed_equals_full("minimal_first_layer", _strings(3, 2), VOCABULARY, T, blocks, depth=3)
    assert maps[0][1].requires_grad


def test_longer_strings_than_those_of_training_are_read():
    short, long = (build("minimal_first_layer", [0], VOCABULARY, length, depth=3) for length in (T, 60))
    tokens = _strings(1, 4, length=60, complete=False)
    assert torch.equal(short(tokens), long(tokens))


@pytest.mark.parametrize("tokens", [[5, 0, 0, 2, 0], [5, 0, 1, 3]], ids=["too deep", "unmatched"])
def test_a_string_of_another_depth_is_refused(tokens):
    pack = build("minimal_first_layer", [0], VOCABULARY, T, depth=3)
    with pytest.raises(ValueError, match=r"model.depth = 3 and a string that is not of brackets down to that depth"):
        pack(torch.tensor([[tokens]]))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"depth": 0}, "model.depth = 0 must be at least 1"),
        ({"width": 0}, "model.width = 0 must be at least 1"),
        ({"encoding": "hot"}, "model.encoding = 'hot' must be one of pair, parts, angle"),
        ({"attention": "none"}, "model.attention = 'none' must be one of learned, uniform"),
        ({"vocabulary": 5}, "an even number of tokens as the task dyck has, not 5"),
    ],
)
def test_bad_models_are_refused(fields, said):
    fields = dict(fields)
    with pytest.raises(ValueError, match=said):
        build("minimal_first_layer", [0], fields.pop("vocabulary", VOCABULARY), T, **fields)
