"""The packed n-gram perceptron against torch modules on copied weights, and what it can see."""

import pytest
import torch
from torch import nn

import models
from tests.models.invariance import build, check_needed_equals_full, check_same_in_any_pack, strings
from tests.rounding import assert_same


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(("context", "outputs"), [(1, 5), (3, 5), (12, 2)])
def test_outputs_and_gradients_equal_a_convolution_of_torch(context, outputs):
    """The last n vectors side by side and a linear map are a causal convolution of reach n."""
    pack = build("ngram_mlp", [5, 6], 5, 9, outputs, context=context, width=4, hidden=7).double()
    tokens = strings(2, 3, 9, vocabulary=5)
    logits = pack(tokens)
    assert logits.shape == (2, 3, 9, outputs)
    logits.square().sum().backward()
    for slot in range(2):
        table, reach, head = nn.Embedding(6, 4), nn.Conv1d(4, 7, context), nn.Linear(7, outputs)
        with torch.no_grad():
            table.weight.copy_(pack.table[slot])
            reach.weight.copy_(pack.hidden.weight[slot].view(context, 4, 7).permute(2, 1, 0))
            reach.bias.copy_(pack.hidden.bias[slot])
            head.weight.copy_(pack.head.weight[slot].T)
            head.bias.copy_(pack.head.bias[slot])
        padded = nn.functional.pad(tokens[slot], (context - 1, 0), value=5)
        theirs = head(torch.tanh(reach(table(padded).mT)).mT)
        assert_same(logits[slot], theirs)
        theirs.square().sum().backward()
        assert_same(pack.table.grad[slot], table.weight.grad)
        assert_same(pack.hidden.weight.grad[slot].view(context, 4, 7).permute(2, 1, 0), reach.weight.grad)
        assert_same(pack.head.weight.grad[slot].T, head.weight.grad)


@pytest.mark.parametrize("context", [1, 2, 5])
def test_an_answer_depends_on_the_last_tokens_and_on_no_other(context):
    """The change of one token moves the logits at its own place and at the context - 1 places after it."""
    pack = build("ngram_mlp", [3], 5, 12, context=context, width=4, hidden=8)
    tokens = strings(1, 1, 12, vocabulary=5)
    other = tokens.clone()
    other[..., 4] = (other[..., 4] + 1) % 5
    moved = (pack(tokens) != pack(other)).any(-1)[0, 0].nonzero().flatten().tolist()
    assert moved == list(range(4, min(4 + context, 12)))


@pytest.mark.parametrize("needed", [None, [torch.tensor([1, 7]).expand(3, 2, 2)]])
def test_bits_do_not_depend_on_the_pack(needed):
    check_same_in_any_pack("ngram_mlp", strings(3, 2, 8, vocabulary=5), 5, 8, needed, context=3, width=4, hidden=6)


def test_logits_at_few_positions_equal_those_of_the_full_call():
    blocks = [strings(3, 2, 2, vocabulary=8, seed=1), strings(3, 2, 1, vocabulary=8, seed=2)]
    check_needed_equals_full("ngram_mlp", strings(3, 2, 8, vocabulary=5), 5, 8, blocks, context=3, width=4, hidden=6)


def test_what_it_cannot_do_is_said():
    with pytest.raises(ValueError, match=r"model\.context = 0 must be at least 1"):
        models.configure("ngram_mlp", context=0)
    with pytest.raises(ValueError, match="no attention to hand out"):
        build("ngram_mlp", [3], 5, 8)(strings(1, 1, 8, vocabulary=5), attend=lambda layer, weights: None)
