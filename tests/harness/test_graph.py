"""The replayed step without a GPU: a "capture" that calls the step again shows that everything it needs is in its fixed places."""

import pytest
import torch

from harness.device import resolve
from harness.train import Training
from tests.harness.packs import condition, pack
from tests.harness.test_options import PAIRS, run

CPU = resolve("cpu")


def again(captured):
    """As a graph: run once to capture, then only ever the same call."""
    captured()
    return captured


@pytest.mark.parametrize("name", PAIRS)
def test_a_replayed_training_equals_an_eager_one(name):
    one = pack([condition(name=f"c{index}", **fields) for index, fields in enumerate(PAIRS[name])], [(1, 1), (2, 2)])
    losses, eager = run(one)
    state = Training(one, CPU)
    assert state.fix(again)
    found = []
    for _ in range(10):
        state.advance()
        found.append(state.recent[state.step % 100].clone())
        assert state.record()
    assert torch.equal(torch.stack(found), losses)
    assert torch.equal(state.flat.values, eager.flat.values)
    assert state.rows == eager.rows


def test_steps_that_overflow_the_block_are_computed_eagerly():
    one = pack(condition(length=32, steps=40, batch=16), [(1, 1), (2, 2)])
    states = [Training(one, CPU) for _ in range(2)]
    for state in states:
        state.feed.count = 5  # below the quantile, so that overflow is common
    assert states[1].fix(again)
    fitted = []
    for step in range(1, 41):
        fitted.append(states[1].replay.fits(states[1].feed.at(step)))
        for state in states:
            state.advance()
        assert torch.equal(states[0].recent, states[1].recent)
    assert True in fitted
    assert False in fitted


def test_a_replay_that_computes_something_else_is_not_used():
    state = Training(pack(condition(), [(1, 1), (2, 2)]), CPU)
    before = state.flat.values.clone()
    assert not state.fix(lambda captured: captured() or (lambda: None))
    assert state.replay is None
    assert torch.equal(state.flat.values, before)
    assert all(not tensor.any() for tensor in state.optimizer.state().values())
