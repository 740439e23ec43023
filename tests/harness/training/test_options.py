"""Training options in packs: every replicate equals its own single-condition pack bit for bit, and resumes so."""

from dataclasses import replace

import pytest
import torch

from harness.draw import Draw
from harness.machine.device import resolve
from harness.planning.plan import signature
from harness.study.training_options import Sharpen
from harness.training.attention_penalty import Sharpness
from harness.training.pack_state import Stopped, Training
from harness.training.train import train
from models.noise import Noise
from results.store.tables import open_store
from tests.harness.packs import SETS, condition, pack
from tests.harness.training.option_pairs import PAIRS, SMALL, losses_of_steps

CPU = resolve("cpu")


@pytest.mark.parametrize("name", PAIRS)
def test_a_replicate_in_a_mixed_pack_equals_its_own_pack(name):
    first, second = (condition(name=f"c{index}", **fields) for index, fields in enumerate(PAIRS[name]))
    assert signature(first, SETS) == signature(second, SETS)
    mixed, state = losses_of_steps(pack([first, second, first], [(1, 1), (2, 2), (3, 3)]))
    for slot, (one, seed) in enumerate([(first, 1), (second, 2), (first, 3)]):
        alone, single = losses_of_steps(pack(one, [(seed, seed)]))
        assert torch.equal(mixed[:, slot], alone[:, 0])
        assert torch.equal(state.flat.values[slot], single.flat.values[0])
        if state.average is not None:
            assert torch.equal(state.average.values[slot], single.average.values[0])
        mine = [row for row in state.rows.evaluations if row["key"] == state.pack.replicates[slot].key]
        assert [{**row, "pack": ""} for row in mine] == [{**row, "pack": ""} for row in single.rows.evaluations]


def test_neighbours_of_one_condition_go_by_their_own_plateaus():
    one = condition(**PAIRS["plateau"][0])
    seeds = [(seed, seed) for seed in (1, 2, 3, 4)]
    packed, state = losses_of_steps(pack(one, seeds))
    assert len(set(state.plateau.scale)) > 1
    for slot, seed in enumerate(seeds):
        alone, single = losses_of_steps(pack(one, [seed]))
        assert torch.equal(packed[:, slot], alone[:, 0])
        assert torch.equal(state.flat.values[slot], single.flat.values[0])


@pytest.mark.parametrize("name", PAIRS)
def test_a_resumed_pack_equals_an_undisturbed_one(name, tmp_path):
    conditions = [condition(name=f"c{index}", **fields) for index, fields in enumerate(PAIRS[name])]
    one = pack(conditions, [(1, 1), (2, 2)])
    whole = train(one, open_store(str(tmp_path / "whole"), "study"), CPU)
    broken = open_store(str(tmp_path / "broken"), "study")
    reached: list[int] = []
    for stop_at in (3, 7):
        with pytest.raises(Stopped):
            train(one, broken, CPU, report=reached.append, should_stop=lambda stop=stop_at: len(reached) >= stop)
    again = train(one, broken, CPU)
    for table in ("evaluations", "profiles", "curves"):
        assert again[table].equals(whole[table])
    assert again["replicates"]["loss"].equals(whole["replicates"]["loss"])


def test_data_probabilities_may_differ_in_a_pack():
    """Each replicate draws from its own condition's distribution."""
    some, other = (condition(length=64, name=str(p), task={"p_ignore": p, "mode": "generative"}) for p in (0.5, 0.7))
    assert signature(some, SETS) == signature(other, SETS)
    mixed, state = losses_of_steps(pack([some, other], [(1, 1), (2, 2)]), 5)
    for slot, one in enumerate((some, other)):
        alone, single = losses_of_steps(pack(one, [(slot + 1, slot + 1)]), 5)
        assert torch.equal(mixed[:, slot], alone[:, 0])
        assert torch.equal(state.feed.at(3).inputs[slot], single.feed.at(3).inputs[0])
    ignored = [(state.feed.at(1).inputs[slot][:, 2:-2:2] == 2).float().mean() for slot in range(2)]
    assert ignored[0] < ignored[1]


def test_sets_of_different_conditions_are_scored_in_one_pack():
    tasks = [{"p_ignore": p, "mode": "generative"} for p in (0.50, 0.52)]
    some, other = (condition(length=64, name=str(index), task=task) for index, task in enumerate(tasks))
    sets = (replace(SETS[0], name="in_distribution", definition={}), SETS[2])
    assert signature(some, sets) == signature(other, sets)  # so near that K is the same
    _, state = losses_of_steps(pack([some, other], [(1, 1), (2, 2)], sets=sets))
    hashes = {(row["key"], row["set"]): row["set_hash"] for row in state.rows.evaluations}
    assert len({digits for (_, name), digits in hashes.items() if name == "in_distribution"}) == 2
    assert len({digits for (_, name), digits in hashes.items() if name == "dense"}) == 1
    for slot, one in enumerate((some, other)):
        _, single = losses_of_steps(pack(one, [(slot + 1, slot + 1)], sets=sets))
        mine = [row | {"pack": ""} for row in state.rows.evaluations if row["key"] == state.pack.replicates[slot].key]
        assert mine == [row | {"pack": ""} for row in single.rows.evaluations]
        mine = [row | {"pack": ""} for row in state.rows.profiles if row["key"] == state.pack.replicates[slot].key]
        assert mine == [row | {"pack": ""} for row in single.rows.profiles]


def test_what_turns_a_part_of_the_step_on_is_one_for_a_pack():
    plain = condition()
    for fields in ({"clip": 1.0}, {"ema": 0.9}, {"sharpen": Sharpen(weight=1.0)}, {"pool": 10}, {"optimizer": "adam"}):
        assert signature(condition(**fields)) != signature(plain)
    assert signature(condition(model_fields=SMALL | {"embedding_dropout": 0.1})) != signature(condition(model_fields=SMALL))
    assert signature(condition(sharpen=Sharpen(weight=0.0))) == signature(plain)
    assert signature(condition(sharpen=Sharpen(weight=1.0))) == signature(condition(sharpen=Sharpen(weight=2.0, start=3)))
    assert signature(condition(sharpen=Sharpen("l2", 1.0))) != signature(condition(sharpen=Sharpen("entropy", 1.0)))


def test_a_penalty_of_weight_zero_changes_no_bit():
    plain, _ = losses_of_steps(pack(condition(), [(1, 1)]))
    zero, state = losses_of_steps(pack(condition(sharpen=Sharpen(weight=0.0)), [(1, 1)]))
    assert torch.equal(plain, zero)
    assert state.penalties is None


def test_a_pool_is_passed_over_in_shuffled_epochs():
    """Every string of the pool once an epoch, another order each epoch, the same strings forever."""
    one = condition(length=16, batch=4, steps=30, pool=12)
    state = Training(pack(one, [(1, 1), (1, 2)]), CPU)
    strings = torch.cat([state.feed.at(step).inputs for step in range(1, 10)], dim=1)  # 36 strings: three epochs
    pool = state.task.sample(Draw(state.feed.seeds, "pool"), 12).inputs
    for slot in range(2):
        epochs = strings[slot].view(3, 12, 16)
        for epoch in epochs:
            assert sorted(map(tuple, epoch.tolist())) == sorted(map(tuple, pool[slot].tolist()))
        assert not torch.equal(epochs[0], epochs[1])
    odd = Training(pack(condition(length=16, batch=5, steps=30, pool=12), [(1, 1)]), CPU)  # batches that straddle epochs
    seen = torch.cat([odd.feed.at(step).inputs for step in range(1, 13)], dim=1)[0].view(5, 12, 16)
    for epoch in seen:
        assert sorted(map(tuple, epoch.tolist())) == sorted(map(tuple, pool[0].tolist()))


def test_last_scores_one_position_a_string():
    state = Training(pack(condition(positions="last"), [(1, 1)]), CPU)
    strings = state.feed.at(1)
    assert strings.needed.weights.shape[-1] == 1
    assert (strings.needed.order == 14).all()  # the final read of 16 tokens


def test_the_strings_of_a_step_are_the_same_after_other_steps_and_alone():
    """Strings are drawn for several steps at once, from whichever step is asked for first."""
    one = pack(condition(), [(1, 1), (2, 2)])
    feed = Training(one, CPU).feed
    for step in (7, 3, 1, 2, 10, 3):
        ours, alone = feed.at(step), Training(one, CPU).feed.at(step)
        assert torch.equal(ours.inputs, alone.inputs)
        assert torch.equal(ours.needed.targets, alone.needed.targets)
        assert torch.equal(ours.needed.order, alone.needed.order)


def test_the_plateau_lowers_rates_by_what_the_monitor_says():
    _, state = losses_of_steps(pack(condition(**PAIRS["plateau"][0]), [(1, 1)]))
    curves = {(row["metric"], row["step"]): row["value"] for row in state.rows.curves}
    assert curves["lr", 10] < 3.0  # the constant rate that it begins with
    assert {step for metric, step in curves if metric == "monitor_loss"} == {2, 4, 6, 8, 10}
    assert not any(row["set"] == "monitor" for row in state.rows.evaluations)
    assert state.monitored() == pytest.approx([curves["monitor_loss", 10]])


def test_averaged_weights_are_scored_beside_the_raw_ones():
    _, state = losses_of_steps(pack(condition(ema=0.9), [(1, 1)]))
    kinds = {(row["weights"], row["set"]) for row in state.rows.evaluations}
    assert kinds == {(weights, each.name) for weights in ("raw", "ema") for each in SETS}
    assert len({(row["axis"], row["lo"], row["set"]) for row in state.rows.profiles}) == len(state.rows.profiles)


def test_dropout_follows_the_initial_seed_and_is_off_in_scoring():
    """Card F3: the model seed covers dropout; the data seed does not."""
    one = condition(model_fields=SMALL | {"embedding_dropout": 0.5}, lr=1e-9, warmup=0)
    state = Training(pack(one, [(1, 1), (1, 2), (2, 1)]), CPU)
    noise = Noise(Draw(state.init_seeds, "dropout", 3), Draw(state.feed.seeds, "shift", 3), state.rates)
    masks = noise.mask((100,), "embedding_dropout", 0)
    assert torch.equal(masks[0], masks[1])
    assert not torch.equal(masks[0], masks[2])
    strings = state.feed.at(1)
    with torch.no_grad():
        assert torch.equal(state.losses(strings), state.losses(strings))
        assert not torch.equal(state.losses(strings), state.losses(strings, noise))


def test_a_penalty_on_a_layer_that_the_model_lacks_is_refused():
    sharpness = Sharpness("entropy", (0, 2))
    for layer in range(2):
        sharpness(layer, torch.full((1, 1, 1, 2, 2), 0.5))
    with pytest.raises(ValueError, match=r"\[0, 2\] names a layer that the model lacks: the last one is 1"):
        sharpness.mean()


def test_a_penalty_on_a_model_without_attention_is_refused():
    with pytest.raises(ValueError, match=r"train\.sharpen .*\blstm\b"):
        condition("lstm", sharpen=Sharpen(weight=1.0))
