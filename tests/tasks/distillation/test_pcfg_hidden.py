"""Which tokens of a grammar's strings nobody attends to."""

import pytest
import torch

from harness.draw import Draw
from harness.study.identity import describe
from tasks.distillation.pcfg import MASK, PADDING, PCFG


def _sample(**fields):
    return PCFG(root=13, length=40, **fields).sample(Draw(torch.tensor([3, 4])), 200)


def test_padding_is_hidden_and_nothing_else():
    batch = _sample()
    assert torch.equal(batch.hidden, batch.targets == PADDING)
    assert 0 < batch.hidden.float().mean() < 1


def test_the_flag_hides_exactly_the_selected_positions_too():
    plain, batch = _sample(), _sample(hide_selected_from_attention=True)
    assert torch.equal(batch.inputs, plain.inputs)
    assert torch.equal(batch.targets, plain.targets)
    assert torch.equal(batch.weights, plain.weights)
    assert torch.equal(batch.hidden, plain.hidden | (batch.weights > 0))
    selected = batch.weights > 0
    # the random and the unchanged ones with those that show the mask
    assert (batch.inputs[selected] == MASK).float().mean() < 0.9
    assert batch.hidden[selected].all()


def test_strings_of_the_next_token_hide_nothing():
    """Padding is behind them, and the fused kernel of a causal model needs no mask."""
    assert _sample(objective="next").hidden is None
    with pytest.raises(ValueError, match=r"hide_selected_from_attention .*masked"):
        PCFG(objective="next", hide_selected_from_attention=True)


def test_masked_strings_are_of_another_revision_and_those_of_next_are_not():
    assert describe(PCFG()) == {"rev": 2}
    assert describe(PCFG(hide_selected_from_attention=True)) == {"rev": 2, "hide_selected_from_attention": True}
    assert describe(PCFG(objective="next")) == {"objective": "next"}
