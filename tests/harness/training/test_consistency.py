"""The penalty on answers that depend on how a string is shown, against its definition, in packs and across a stop."""

from dataclasses import replace

import pytest
import torch

import models
import tasks
from harness.draw import Draw
from harness.machine.device import resolve
from harness.planning.plan import signature
from harness.study.config import Condition
from harness.study.training_options import Consistency, Sharpen, Train
from harness.training.pack_state import Stopped, Training
from harness.training.train import train
from results.store.tables import open_store
from tests.harness.packs import condition, pack
from tests.harness.training.fake_graph import called_again
from tests.harness.training.float64 import training_in_float64
from tests.harness.training.option_pairs import losses_of_steps
from tests.rounding import assert_same

CPU = resolve("cpu")


def _condition(weight=None, name="c", **fields):
    consistency = None if weight is None else Consistency(weight)
    settings = {"steps": 6, "batch": 4, "lr": 1e-2, "warmup": 0, "weight_decay": 0.0, "consistency": consistency}
    task = tasks.build("dyck", depth=2, length=9)
    return Condition(name, task, models.configure("minimal_first_layer", depth=2, width=8), Train(**settings | fields))


def _pack(conditions, seeds):
    return replace(pack(conditions, seeds, sets=()), curve_every=2)


def test_the_penalty_is_the_mean_squared_difference_of_logits_that_follow_the_same_tokens():
    state = training_in_float64(_pack(_condition(0.5), [1, 2]))
    strings, apart = state.feed.at(1), []
    for slot in range(2):
        squares = []
        for row in range(4):
            old, new = strings.inputs[slot, row], strings.view.inputs[slot, row]
            shift = len(old) and int((new < 4).sum()) - int((old < 4).sum())
            both = [state.model(each.expand(2, 1, -1))[slot, 0] for each in (old, new)]
            squares += [(both[0][t] - both[1][t + shift]).square().mean() for t in range(1, 9) if old[t] < 4]
        apart.append(torch.stack(squares).mean())
    state.advance()
    assert_same(state.penalties[1], torch.stack(apart).detach().to(state.penalties.dtype), roundings=1)
    assert state.penalties[1].min() > 0


def test_gradients_are_those_of_the_loss_and_the_weighted_penalty():
    """Through both branches: the gradient is linear in the weight, and at 0 it is the loss's own."""

    def gradient(weight):
        state = training_in_float64(_pack(_condition(weight), [1, 2]))
        state.advance()
        return state.flat.gradient.clone()

    plain, half, whole = gradient(None), gradient(0.5), gradient(1.0)
    assert_same(half - plain, (whole - plain) / 2)
    assert (half - plain).abs().max() > 1e-4


def test_a_replicate_in_a_pack_of_several_weights_equals_its_own_and_a_stopped_one_goes_on(tmp_path):
    first, second = _condition(0.1, "a"), _condition(1.0, "b")
    assert signature(first) == signature(second) != signature(_condition())
    assert signature(_condition(0.0)) == signature(_condition())
    mixed, state = losses_of_steps(_pack([first, second], [1, 2]), 6)
    for slot, one in enumerate((first, second)):
        alone, single = losses_of_steps(_pack(one, [slot + 1]), 6)
        assert torch.equal(mixed[:, slot], alone[:, 0])
        assert torch.equal(state.flat.values[slot], single.flat.values[0])
    both = _pack([first, second], [1, 2])
    whole = train(both, open_store(str(tmp_path / "whole"), "study"), CPU)
    broken, reached = open_store(str(tmp_path / "broken"), "study"), []
    with pytest.raises(Stopped):
        train(both, broken, CPU, report=reached.append, should_stop=lambda: len(reached) >= 3)
    again = train(both, broken, CPU)
    assert again["curves"].equals(whole["curves"])
    assert {"penalty", "loss"} <= set(whole["curves"].column("metric").to_pylist())


@pytest.mark.parametrize("count", [1, 2])
def test_positions_of_a_block_that_others_fill_are_in_no_penalty(count):
    """With K positions a block, each replicate alone fills other blocks than the three together."""
    fields = {
        "task": tasks.build("dyck", depth=2, length=9, scored="closing"),
        "train": replace(_condition(0.5).train, batch=1),
    }
    one = replace(_condition(0.5), **fields)

    def trained(seeds):
        state = Training(_pack(one, seeds), CPU)
        state.feed.count = count
        for _ in range(6):
            state.advance()
        blocks = [len(state.feed.at(step).needed.blocks) for step in range(1, 7)]
        return state.penalties[1:7], state.flat.values, blocks

    penalties, values, blocks = trained([1, 2, 3])
    others = []
    for slot in range(3):
        own_penalties, own_values, own_blocks = trained([slot + 1])
        assert torch.equal(penalties[:, slot], own_penalties[:, 0])
        assert torch.equal(values[slot], own_values[0])
        others.append(own_blocks)
    assert any(own != blocks for own in others)


@pytest.mark.parametrize("blocks", [1, 2])
def test_a_replayed_training_equals_an_eager_one_in_weights_and_penalties(blocks):
    """A capture that calls the step again: it reads the views, too, from its fixed places, also those of a second block."""
    one = _pack([_condition(0.3), _condition(0.9, name="other")], [1, 2])
    eager, replayed = Training(one, CPU), Training(one, CPU)
    for state in (eager, replayed):
        state.feed.count = 9 if blocks == 1 else 5
    assert replayed.fix(called_again)
    steps = [replayed.feed.at(step) for step in range(1, 7)]
    assert max(len(strings.needed.blocks) for strings in steps) == blocks
    assert all(any(replay.fits(strings) for replay in replayed.replays) for strings in steps)
    for _ in range(6):
        eager.advance()
        replayed.advance()
        assert torch.equal(replayed.penalties, eager.penalties)
    assert torch.equal(replayed.flat.values, eager.flat.values)


def test_views_change_with_the_step_and_not_with_the_chunk_they_are_drawn_in():
    feed = Training(_pack(_condition(1.0, pool=8), [1]), CPU).feed
    later = feed.at(5).view.inputs
    assert torch.equal(later, Training(_pack(_condition(1.0, pool=8), [1]), CPU).feed.at(5).view.inputs)
    strings = feed.at(5)
    assert torch.equal(later, feed.tasks[0].view(Draw(feed.seeds, "view", 5), strings.inputs).inputs)
    assert not torch.equal(later, feed.tasks[0].view(Draw(feed.seeds, "view", 6), strings.inputs).inputs)


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match=r"train\.consistency compares a task's views and the flipflop has none"):
        condition(consistency=Consistency())
    with pytest.raises(ValueError, match=r"train\.consistency\.weight = -1 must be a number of at least 0"):
        Consistency(-1)
    with pytest.raises(ValueError, match="are both penalties: leave one out"):
        Train(consistency=Consistency(), sharpen=Sharpen(weight=1.0))
