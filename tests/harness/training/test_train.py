"""A replicate is the same alone and in any pack, with any neighbours, and after any resume."""

import math
from dataclasses import replace

import pyarrow as pa
import pytest
import torch

import harness.training.evaluate as evaluate_module
import harness.training.train as train_module
import harness.training.weights as artifacts
from harness.draw import Draw
from harness.exchange.replicate import find
from harness.machine.device import prepare
from harness.planning.pack import ScoredSet
from harness.study.config import Watch
from harness.training.checkpoint import steps as checkpoint_steps
from harness.training.evaluate import score, strings
from harness.training.pack_state import Stopped, Training
from harness.training.schedule import learning_rate
from harness.training.train import train
from results.store.schema import IDENTITY_COLUMNS
from results.store.tables import open_store, write_bytes
from tests.harness.packs import SETS, condition, pack

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _one_thread():
    prepare(CPU)


@pytest.fixture
def store(tmp_path):
    return open_store(tmp_path, "study")


def _losses(one, steps):
    state = Training(one, CPU)
    out = []
    for _ in range(steps):
        state.advance()
        out.append(state.recent[state.step % len(state.recent)].clone())
    return torch.stack(out), state


def _identity(tables):
    """Tables, ready to compare: `replicates` without where and when, the others without pack, sorted."""
    out = {}
    for name, rows in tables.items():
        rows = rows.select(IDENTITY_COLUMNS) if name == "replicates" else rows.drop_columns(["pack"])
        out[name] = sorted(repr(row) for row in rows.to_pylist())
    return out


@pytest.mark.parametrize("steps", [150, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("model", ["transformer", "lstm"])
def test_a_replicate_is_bitwise_the_same_alone_and_in_any_pack(model, steps):
    """On CPU in fp32: losses and final weights."""
    one = condition(model, length=16, steps=steps)
    alone, state = _losses(pack(one, [(7, 9)]), steps)
    for seeds, slot in (([(3, 3), (7, 9)], 1), ([(s, s) for s in range(5)] + [(7, 9), (8, 8), (9, 9)], 5)):
        packed, other = _losses(pack(one, seeds), steps)
        assert torch.equal(packed[:, slot], alone[:, 0])
        assert torch.equal(other.flat.values[slot], state.flat.values[0])


def test_strings_that_overflow_the_needed_block_keep_replicates_apart():
    """Where one string has more reads than K, a second block runs for the whole pack and adds exact zeros elsewhere."""
    one = condition(length=32, task={"p_ignore": 0.8}, steps=60, batch=16)
    packed, alone = (Training(pack(one, seeds), CPU) for seeds in ([(s, s) for s in range(12)] + [(7, 9)], [(7, 9)]))
    packed.feed.count = alone.feed.count = 5  # below the quantile, so that overflow is common
    blocks = set()
    for step in range(1, 61):
        reads = packed.task.sample(Draw(packed.feed.seeds, "data", step), 16).weights.sum(-1).amax(-1)
        blocks.add((reads.max().item() > 5, reads[-1].item() > 5))
        packed.advance()
        alone.advance()
        assert torch.equal(packed.recent[:, -1], alone.recent[:, 0])
    assert {(True, False), (True, True)} <= blocks  # the pack overflowed where this replicate alone did not


def test_initial_weights_and_data_do_not_depend_on_the_pack():
    one = condition()
    small, large = (Training(pack(one, seeds), CPU) for seeds in ([(4, 5)], [(1, 1), (2, 2), (4, 5)]))
    assert torch.equal(small.flat.values[0], large.flat.values[2])
    batches = [state.feed.at(3).inputs for state in (small, large)]
    assert torch.equal(batches[0][0], batches[1][2])
    assert torch.equal(batches[1], large.task.sample(Draw(large.feed.seeds, "data", 3), 4).inputs)


def test_init_seed_and_data_seed_are_independent():
    state = Training(pack(condition(), [(0, 0), (0, 1), (1, 0)]), CPU)
    weights, batch = state.flat.values, state.feed.at(1).inputs
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    assert torch.equal(batch[0], batch[2])
    assert not torch.equal(batch[0], batch[1])


def test_conditions_that_change_no_shape_share_a_pack():
    slow, fast = condition(lr=1e-4, weight_decay=0.0, betas=(0.8, 0.9)), condition(lr=1e-2, schedule="constant", warmup=0)
    mixed, _ = _losses(pack([slow, fast], [(1, 1), (2, 2)]), 10)
    assert torch.equal(mixed[:, 0], _losses(pack(slow, [(1, 1)]), 10)[0][:, 0])
    assert torch.equal(mixed[:, 1], _losses(pack(fast, [(2, 2)]), 10)[0][:, 0])


@pytest.mark.parametrize("stop_at", [1, 4, 9])
def test_a_resumed_pack_equals_an_undisturbed_one(store, stop_at):
    one = pack(condition(), [(1, 1), (2, 2)])
    whole = train(one, open_store(store.root, "other"), CPU)
    reached = []
    with pytest.raises(Stopped):
        train(one, store, CPU, report=reached.append, should_stop=lambda: len(reached) == stop_at)
    assert checkpoint_steps(store, one.id) == [stop_at]
    assert _identity(train(one, store, CPU)) == _identity(whole)


@pytest.mark.parametrize(
    ("change", "first"),
    [
        ({}, 7),
        ({"curve_every": 4}, 1),
        ({"watch": Watch(every=2, lags=1, strings=4)}, 1),
        ({"sets": SETS[:1]}, 1),
    ],
)
def test_a_checkpoint_of_other_sets_or_curves_is_passed_over(store, change, first):
    """A pack keeps its id when the number of strings or the rows of its curves change, and a checkpoint holds the rows so far."""
    one = pack(condition(), [(1, 1), (2, 2)], sets=SETS[1:2])
    sets = change.get("sets") and pack(condition(), [(1, 1), (2, 2)], sets=change["sets"])
    asked = replace(one, replicates=sets.replicates) if sets else replace(one, **change)
    whole = train(asked, open_store(store.root, "other"), CPU)
    reached = []
    with pytest.raises(Stopped):
        train(one, store, CPU, report=reached.append, should_stop=lambda: len(reached) == 6)
    again = []
    assert _identity(train(asked, store, CPU, report=again.append)) == _identity(whole)
    assert again[0] == first


@pytest.mark.parametrize("stop_at", [3, 9])
def test_a_pack_that_is_watched_is_resumed(store, stop_at):
    one = replace(
        pack(condition(), [(1, 1), (2, 2)]), watch=Watch(every=2, sequences=8, lags=2, strings=4), keep=True, keep_steps=(0, 4)
    )
    reached, again = [], []
    with pytest.raises(Stopped):
        train(one, store, CPU, report=reached.append, should_stop=lambda: len(reached) == stop_at)
    train(one, store, CPU, report=again.append)
    assert again[0] == stop_at + 1


@pytest.mark.parametrize("stop_at", [1, 3, 4, 9])
def test_kept_steps_hold_the_weights_after_them_however_often_a_pack_is_stopped(store, stop_at):
    one = replace(pack(condition(), [(1, 1), (2, 2)]), keep=True, keep_steps=(0, 4))
    last = one.replicates[0].condition.train.steps
    reached = []
    with pytest.raises(Stopped):
        train(one, store, CPU, report=reached.append, should_stop=lambda: len(reached) == stop_at)
    train(one, store, CPU)
    state = Training(one, CPU)
    for step in range(last + 1):
        if step in (0, 4, last):
            for slot, replicate in enumerate(one.replicates):
                found = find(store, replicate.key, step).tensors
                for name, parameter in state.model.named_parameters():
                    assert torch.equal(found[name], parameter[slot])
        if step < last:
            state.advance()
    for replicate in one.replicates:
        assert artifacts.steps_of(store, replicate.key, 0) == [0, 4, last]
        assert find(store, replicate.key).step == last


def test_slow_checkpoints_are_written_less_often(store, monkeypatch):
    """A store that takes 10 s for a checkpoint, steps of 1 s: one after 6 s, then one in 500 s, so 2 % of the time."""
    clock, saves = [0.0], []
    monkeypatch.setattr(train_module.time, "monotonic", lambda: clock[0])

    def save(state, where):
        saves.append(state.step)
        clock[0] += 10.0

    def step(_):
        clock[0] += 1.0

    monkeypatch.setattr(Training, "save", save)
    train(pack(condition(steps=600), [(1, 1)]), store, CPU, report=step, checkpoint_s=5.0)
    assert saves == [7, 508]


def test_a_pack_stopped_within_an_evaluation_scores_that_step_again(store, monkeypatch):
    one = pack(condition(), [(1, 1), (2, 2)])
    whole = train(one, open_store(store.root, "other"), CPU)
    asked = []
    real = evaluate_module.prepared

    def interrupted(*arguments):
        for batch in real(*arguments):
            asked.append(batch)
            yield batch

    monkeypatch.setattr(evaluate_module, "prepared", interrupted)
    with pytest.raises(Stopped) as stopped:
        train(one, store, CPU, should_stop=lambda: len(asked) >= 4)  # the last step's second set
    assert stopped.value.step == 10
    assert _identity(train(one, store, CPU)) == _identity(whole)


def test_a_damaged_checkpoint_is_passed_over(store):
    one = pack(condition(), [(1, 1)])
    write_bytes(store, f"checkpoints/{one.id}/5.safetensors", b"\x10\x00\x00\x00\x00\x00\x00\x00{torn")
    reached = []
    train(one, store, CPU, report=reached.append)
    assert reached[0] == 1


def test_a_diverged_replicate_is_recorded_and_disturbs_no_other(store):
    tame, wild = condition(steps=30), condition(steps=30, lr=1e18, warmup=0, weight_decay=1.0)
    both = train(pack([wild, tame], [(1, 1), (2, 2)]), store, CPU)
    alone = train(pack(tame, [(2, 2)]), open_store(store.root, "alone"), CPU)
    rows = both["replicates"].to_pylist()
    assert [row["status"] for row in rows] == ["diverged", "finished"]
    assert 1 <= rows[0]["diverged_at"] <= 30
    assert math.isnan(rows[0]["loss"])
    assert rows[1]["diverged_at"] is None
    of = {row["key"]: row for row in rows}
    last = [row for row in both["evaluations"].to_pylist() if row["step"] == 30]
    assert all((row["errors"] is None) == (of[row["key"]]["status"] == "diverged") for row in last)
    tame_rows = [name for name in _identity(both)["evaluations"] if rows[1]["key"] in name]
    assert tame_rows == _identity(alone)["evaluations"]


def test_sets_are_scored_at_their_own_cadence_and_curves_are_means(store):
    tables = train(pack(condition(steps=10), [(1, 1)]), store, CPU)
    at = {}
    for row in tables["evaluations"].to_pylist():
        at.setdefault((row["set"], row["metric"]), []).append(row["step"])
    assert at["online", "read"] == at["online", "read_restricted"] == [4, 8, 10]
    assert at["sparse", "read"] == at["dense", "read"] == [10]
    losses, _ = _losses(pack(condition(steps=10), [(1, 1)]), 10)
    curve = {(row["metric"], row["step"]): row["value"] for row in tables["curves"].to_pylist()}
    assert curve["loss", 5] == pytest.approx(losses[:5].double().mean().item())
    assert curve["loss", 10] == pytest.approx(losses[5:].double().mean().item())
    assert curve["lr", 5] == learning_rate(condition(steps=10).train, 5)


def test_scores_are_counts_of_the_set_whatever_the_pack():
    state = Training(pack(condition(length=64), [(1, 1), (2, 2)]), CPU)
    scored = ScoredSet("s", state.task, 700, None, "0123456789abcdef")  # 64 · 700 tokens: several forward passes
    (scores, first), (again, second) = score(state.model, [scored, scored], CPU, "fp32")
    assert (scores, first, second) == (again, 0, 1)
    errors = torch.zeros(2, dtype=torch.int64)
    squares = torch.zeros(2, dtype=torch.int64)
    reads = crossed = 0
    with torch.no_grad():
        for batch in strings(scored, CPU):
            wrong = (state.model(batch.inputs.expand(2, -1, -1)).argmax(-1) != batch.targets) & (batch.weights > 0)
            per_string = wrong.sum(-1)
            errors += per_string.sum(-1)
            squares += (per_string**2).sum(-1)
            reads += int(batch.weights.sum())
            crossed += int((per_string * batch.weights.sum(-1)).sum(-1)[0])
    row = scores.evaluation_rows(0, diverged=False)[0]
    assert (row["metric"], row["errors"], row["count"], row["errors_sq"]) == ("read", errors[0], reads, squares[0])
    assert row["errors_x_count"] == crossed
    assert sum(r["errors"] for r in scores.profile_rows(second) if r["axis"] == "since_write") == errors[1]
    assert sum(r["count"] for r in scores.profile_rows(second) if r["axis"] == "since_event") == reads


def test_an_evaluation_set_follows_from_its_hash_alone():
    scored = ScoredSet("s", condition(length=64).task, 300, None, "0123456789abcdef")
    whole = torch.cat([batch.inputs for batch in strings(scored, CPU)], dim=1)
    assert whole.shape == (1, 300, 64)
    one = next(iter(strings(replace(scored, sequences=1), CPU)))
    assert torch.equal(one.inputs[0, 0], whole[0, 0])
    other = next(iter(strings(replace(scored, hash="1123456789abcdef"), CPU)))
    assert not torch.equal(other.inputs[0, :50], whole[0, :50])


def test_a_pack_of_any_size_is_the_same_table_rows(store):
    one = condition(steps=6)
    together = train(pack(one, [(s, s) for s in range(3)]), store, CPU)
    apart = [train(pack(one, [(s, s)]), store, CPU) for s in range(3)]
    joined = {name: pa.concat_tables([tables[name] for tables in apart]) for name in together}
    ours, theirs = _identity(together), _identity(joined)
    assert ours == theirs
