"""The compiled loop of batch-1 SGD against torch's own loop, and that neither the pack, a look nor a stop changes a bit."""

import json
import os
import shutil
from dataclasses import replace

import pytest
import torch
from torch import nn

import harness.training.sgd_loop as sequential
from harness.announce import announce
from harness.draw import Draw
from harness.planning.pack import resolve
from harness.prepare import executor_of, prepare
from harness.study.config import Condition, EvaluationSet, build
from harness.study.load import from_tree
from harness.study.training_options import Monitor, Train
from harness.training.optimizer import FlatParameters
from harness.training.pack_state import Stopped, Training
from harness.training.schedule import learning_rate
from harness.training.train import train
from results.store.tables import open_store
from tasks.distillation.parity import SparseParity
from tests.harness.packs import pack
from tests.harness.training.float64 import assert_as_near, trainings_in_float64
from tests.rounding import assert_same

CPU = torch.device("cpu")
STEPS = 1000
PARITY = {"name": "sparse_parity"}
TREE = {"name": "hierarchical_parity"}
COSINE = {"schedule": "cosine", "final_lr": 0.1, "warmup": 0}
SMALL = {"name": "sparse_parity", "length": 30, "degree": 3}

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler: cc")


def condition(task=PARITY, width=100, steps=STEPS, name="c", **fields) -> Condition:
    plain = {"batch": 1, "optimizer": "sgd", "weight_decay": 0.0, "lr": 5e-3} | COSINE
    return Condition(name, build("task", task), build("model", {"name": "mlp", "width": width}), Train(steps, **plain | fields))


def losses_of(training: Training) -> torch.Tensor:
    """Losses of all steps, [S, R]; the loop's calls end at every 100th step, where `recent` holds them all."""
    found = []
    while training.step < training.train.steps:
        training.advance()
        if training.step % 100 == 0:
            found.append(training.recent[torch.arange(1, 101) % 100].clone())
    return torch.cat(found)


def looped(conditions, seeds, **options) -> Training:
    training = Training(pack(conditions, seeds, sets=(), curve_every=100, **options), CPU)
    assert training.loop is not None
    return training


def ordinary(conditions, seeds, **options) -> Training:
    training = Training(pack(conditions, seeds, sets=(), curve_every=100, **options), CPU)
    training.loop = None
    return training


def strings(task, data_seed: int):
    """Inputs [S, 1, d] and classes [S, 1] of every step: the steps as further replicates, some of them drawn alone as well."""
    steps = torch.arange(1, STEPS + 1)
    whole = task.sample(Draw(torch.full_like(steps, data_seed), "data", steps), 1)
    for step in (1, 2, 164, STEPS):
        alone = task.sample(Draw(torch.tensor([data_seed]), "data", step), 1)
        assert torch.equal(alone.inputs[0], whole.inputs[step - 1])
        assert torch.equal(alone.targets[0], whole.targets[step - 1])
    return whole.inputs, whole.targets[..., -1]


def plain_losses(one: Condition, seed: int, dtype=torch.float32) -> torch.Tensor:
    """Losses of a replicate as anyone would train it, [S]."""
    outputs = getattr(one.task, "outputs", 2)
    start = one.model.make(Draw(torch.tensor([seed]), "init"), 2, one.task.length, outputs)
    hidden, head = nn.Linear(one.task.length, one.model.width), nn.Linear(one.model.width, outputs)
    with torch.no_grad():
        for mine, theirs in ((hidden, start.layers[0]), (head, start.head)):
            mine.weight.copy_(theirs.weight[0].T)
            mine.bias.copy_(theirs.bias[0])
    model = nn.Sequential(hidden, nn.ReLU(), head).to(dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=one.train.lr)
    found = []
    for step, (tokens, label) in enumerate(zip(*strings(one.task, seed), strict=True), 1):
        optimizer.param_groups[0]["lr"] = learning_rate(one.train, step)
        loss = nn.functional.cross_entropy(model(1 - 2 * tokens.to(dtype)), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.detach())
    return torch.stack(found)


@pytest.mark.parametrize("task", [PARITY, TREE], ids=["parity", "tree"])
@pytest.mark.parametrize(
    ("width", "rates"),
    [
        (100, [{"lr": 5e-3}, {"lr": 1e-2, "schedule": "constant"}, {"lr": 1e-3, "warmup": 60}]),
        (1, [{}]),
        (37, [{"lr": 1e-2}]),
        (1000, [{"lr": 1e-3, "schedule": "linear", "warmup": 10}]),
    ],
    ids=["100", "1", "37", "1000"],
)
def test_losses_are_those_of_torch_over_1000_steps(task, width, rates):
    conditions = [condition(task, width, name=f"c{number}", **fields) for number, fields in enumerate(rates)]
    found = losses_of(looped(conditions, range(len(rates))))
    assert found.shape == (STEPS, len(rates))
    for slot, one in enumerate(conditions):
        assert_as_near(found[:, slot], plain_losses(one, slot), plain_losses(one, slot, torch.float64))


def test_weights_are_those_of_the_ordinary_loop():
    conditions = [condition(TREE, 50, name=f"c{lr}", lr=lr) for lr in (1e-2, 1e-3)]
    one, other = looped(conditions, [1, 2]), ordinary(conditions, [1, 2])
    with trainings_in_float64():
        exact = ordinary(conditions, [1, 2])
    assert_as_near(losses_of(one), losses_of(other), losses_of(exact).double())
    assert_as_near(one.flat.values, other.flat.values, exact.flat.values)
    assert not torch.equal(one.flat.values, other.flat.values)  # another order of sums: the loop was used


def test_a_replicate_is_bitwise_the_same_in_any_pack():
    conditions = [condition(SMALL | {"support": [3, 5, 7]}, 33, 300, "a", lr=2e-2), condition(SMALL, 33, 300, "b", warmup=20)]
    packed = looped([*conditions, conditions[1]], [1, 2, 3])
    losses = losses_of(packed)
    for slot, (one, seed) in enumerate(zip([*conditions, conditions[1]], [1, 2, 3], strict=True)):
        alone = looped([one], [seed])
        assert torch.equal(losses_of(alone)[:, 0], losses[:, slot])
        assert torch.equal(alone.flat.values[0], packed.flat.values[slot])


@pytest.mark.parametrize("pool", [0, 70])
def test_looks_and_the_strings_drawn_at_once_change_no_bits(pool):
    one = condition(SMALL, 20, 230, pool=pool)
    found = []
    for every, window in ((1, 1000), (7, 13), (1000, 1000)):
        training = Training(pack([one] * 2, [4, 5], sets=(), curve_every=every), CPU)
        training.loop.window = window
        calls = 0
        while training.step < 230:
            training.advance()
            calls += 1
        found.append((training.flat.values, training.recent, calls))
    assert [each[2] for each in found] == [230, 48, 1]
    for values, recent, _ in found[1:]:
        assert torch.equal(values, found[0][0])
        assert torch.equal(recent, found[0][1])


def test_a_training_that_is_stopped_goes_on_bit_for_bit(tmp_path):
    sets = (EvaluationSet("same", {}, 64, every=60), EvaluationSet("end", {}, 32))
    one = pack([condition(SMALL, 20, 400)] * 2, [0, 1], sets=sets, curve_every=90)

    def tables(stops):
        store = open_store(tmp_path / f"{len(stops)}", "study")
        for stop in stops:
            reached = []
            with pytest.raises(Stopped):
                train(one, store, CPU, reached.append, lambda reached=reached, stop=stop: bool(reached) and reached[-1] >= stop)
            assert reached[-1] == stop
        steps = []
        found = train(one, store, CPU, steps.append)
        kept = {name: found[name].to_pylist() for name in ("evaluations", "curves", "profiles")}
        return kept, found["replicates"].select(["loss", "status"]).to_pylist(), steps

    whole, broken = tables([]), tables([60, 90, 270])
    assert whole[2] == [60, 90, 120, 180, 240, 270, 300, 360, 400]
    assert broken[:2] == whole[:2]
    assert broken[2] == [300, 360, 400]


def test_rows_are_at_the_steps_of_the_ordinary_loop(tmp_path):
    sets = (EvaluationSet("same", {}, 64, every=60), EvaluationSet("end", {}, 32))
    one = condition(
        SMALL,
        20,
        200,
        lr=0.2,
        schedule="plateau",
        patience=0,
        factor=0.3,
        final_lr=0.0,
        monitor=Monitor(sequences=32, every=25),
    )
    rows, rates = [], []
    for loop in (True, False):
        training = Training(pack([one] * 2, [0, 1], sets=sets, curve_every=40), CPU)
        training.loop = training.loop if loop else None
        while training.step < 200:
            training.advance()
            assert training.record()
        places = [(row["metric"], row["step"], row["key"]) for row in training.rows.curves]
        places += [(row["metric"], row["step"], row["set"], row["key"]) for row in training.rows.evaluations]
        rows.append(places)
        rates.append([row["value"] for row in training.rows.curves if row["metric"] == "lr"])
    assert rows[0] == rows[1]
    assert rates[0] == rates[1]
    assert min(rates[0]) < 0.2  # a look at the monitor lowered it


def test_kept_weights_end_a_call():
    one = pack([condition(SMALL, 20, 200)], [0], sets=(), curve_every=50)
    kept = [sequential.until(replace(one, keep_steps=(130, 140)), step) for step in (0, 49, 50, 100, 129, 130, 139, 150, 199)]
    assert kept == [50, 50, 100, 130, 130, 140, 140, 200, 200]


def test_a_replicate_that_diverges_disturbs_no_other():
    conditions = [condition(SMALL, 20, 200, "wild", lr=1e30), condition(SMALL, 20, 200, "tame")]
    both, alone, slow = looped(conditions, [0, 1]), looped(conditions[1:], [1]), ordinary(conditions, [0, 1])
    found, tame, _ = (losses_of(each) for each in (both, alone, slow))
    assert both.diverged_at.tolist() == slow.diverged_at.tolist()
    assert both.diverged_at[0] > 0 > both.diverged_at[1]
    assert torch.equal(found[:, 1], tame[:, 0])
    assert torch.equal(both.flat.values[1], alone.flat.values[0])


def test_the_loss_is_of_the_probabilities_it_is_given():
    """The divergence from a probability for every class, and its gradient, as torch has them."""
    training = looped([condition(SMALL, 20, 50)] * 3, [0, 1, 2])
    model, loop = training.model, training.loop
    loop._draw(1)
    loop._targets = torch.rand(loop._targets.shape).softmax(-1)
    inputs, targets = loop._inputs[0][:, None], loop._targets[0]
    expected = nn.functional.kl_div(model(inputs)[:, 0, -1].log_softmax(-1), targets, reduction="none").sum(-1)
    before, flat = training.flat.values.clone(), training.flat
    flat.differentiate(expected.sum())
    rate = learning_rate(training.train, 1)
    found = loop.advance(0, 1)
    # sums over 30 inputs and 20 hidden units, there and back; of the weights only the last digits of a small update
    assert_same(found[0], expected.detach(), roundings=2**7)
    assert_same(flat.values, before - rate * flat.gradient, roundings=2)


OTHERS = {
    "batch": {"batch": 2},
    "optimizer": {"optimizer": "adamw"},
    "momentum": {"momentum": 0.5},
    "decay": {"weight_decay": 0.1},
    "clip": {"clip": 1.0},
    "ema": {"ema": 0.9},
    "precision": {"precision": "bf16"},
}


@pytest.mark.parametrize("name", OTHERS)
def test_every_other_training_takes_the_ordinary_loop(name):
    assert sequential.fits(condition(pool=50, monitor=Monitor(8, 10), warmup=7, eps=1e-3, positions="last"))
    assert not sequential.fits(condition(**OTHERS[name]))


def test_other_models_tasks_devices_and_stages_take_the_ordinary_loop():
    one = condition(SMALL)
    deep = replace(one, model=build("model", {"name": "mlp", "width": 9, "layers": 2}))
    flips = replace(one, task=build("task", {"name": "flipflop", "length": 16}))
    pairs = replace(one, task=build("task", {"name": "associations"}))
    taught = replace(one, stages=({"task": {}, "train": {}}, {"labels": "previous"}))
    begun = replace(one, stages=({"task": {}, "train": {}}, {"init": "previous"}))
    student = replace(
        one, stages=({"task": {}, "train": {}}, {"labels": "teacher", "temperature": 0.5, "teacher": {"shots": 3}})
    )
    assert [sequential.fits(each) for each in (deep, flips, pairs, taught)] == [False] * 4
    assert [sequential.fits(each) for each in (begun, student)] == [True, True]
    whole = pack([one], [0], sets=())
    assert sequential.takes(whole, CPU)
    assert not sequential.takes(whole, torch.device("cuda"))
    assert not sequential.takes(replace(whole, numerics={"compile": True}), CPU)


def test_a_task_whose_classes_are_laws_takes_the_ordinary_loop():
    class Soft(SparseParity):
        soft = True

    one = condition(SMALL)
    assert not sequential.fits(replace(one, task=Soft(length=30, degree=3)))
    assert sequential.fits(replace(one, task=SparseParity(length=30, degree=3)))


def test_the_row_says_which_loop_it_was_and_no_compiler_is_said_aloud(tmp_path, monkeypatch):
    one = pack([condition(SMALL, 20, 30)], [0], sets=(), curve_every=10)
    said: list[str] = []

    def trained(name):
        found = train(one, open_store(tmp_path / name, "study"), CPU, say=said.append)["replicates"]
        return json.loads(found["numerics"][0].as_py()), found["loss"][0].as_py()

    fast = trained("fast")
    assert fast[0]["loop"].startswith("sequential, ")
    assert not said
    monkeypatch.setenv("CC", "no-such-compiler")
    sequential._built.cache_clear()
    try:
        slow = trained("slow")
    finally:
        sequential._built.cache_clear()
    assert "loop" not in slow[0]
    # 30 steps, each with sums of 30 terms whose roundings are of either sign
    assert fast[1] == pytest.approx(slow[1], rel=0, abs=2**8 * torch.finfo(torch.float32).eps)
    assert len(said) == 1
    assert "there is no C compiler `no-such-compiler`" in said[0]


def test_a_study_takes_the_loop_by_itself_and_its_plan_says_so(tmp_path):
    train_node = {
        "steps": 300,
        "batch": 1,
        "optimizer": "sgd",
        "lr": 0.01,
        "schedule": "constant",
        "warmup": 0,
        "weight_decay": 0.0,
    }
    tree = {
        "name": "batch-one",
        "question": "Which loop?",
        "task": SMALL,
        "model": {"name": "mlp", "width": 20},
        "train": train_node,
    }
    tree |= {
        "evaluate": {"sets": {"test": {"sequences": 64, "every": 100}}, "curve_every": 50},
        "replicates": 3,
        "executor": "local",
    }
    staged = {"stages": [{"train": {"steps": 200}, "init": "previous"}]}  # a condition of two stages is one condition
    tree |= {
        "conditions": {"one": staged, "two": {"train": {"batch": 2}}},
        "store": str(tmp_path),
        "wandb": "off",
        "device": "cpu",
    }
    tree |= {"pack": {"size": 2}}
    study, said = from_tree(tree), list[str]()
    prepared = prepare(study, executor_of(study))
    announce(prepared, said.append)
    assert "  batch-1 SGD (1 of 2 conditions) takes the compiled loop" in said
    packs = resolve(prepared.plan, prepared.numerics, {})
    assert {(each.replicates[0].condition.name, sequential.takes(each, CPU)) for each in packs} == {
        ("one", True),
        ("two", False),
    }
    assert all(rate.step_s > 0 for rate in prepared.rates.values())


def test_a_compiler_that_fails_is_quoted(tmp_path, monkeypatch):
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\necho 'out of luck' >&2\nexit 1\n")
    os.chmod(broken, 0o755)
    monkeypatch.setenv("CC", str(broken))
    sequential._built.cache_clear()
    try:
        assert sequential.missing() == f"the C compiler `{broken}` failed: out of luck"
    finally:
        sequential._built.cache_clear()


def test_parameters_lie_as_the_source_reads_them():
    training = looped([condition(SMALL, 21, 10)] * 2, [0, 1])
    flat = training.flat
    assert isinstance(flat, FlatParameters)
    for parameter in training.loop.parameters:
        assert parameter.stride(0) == flat.values.stride(0)
        assert parameter[0].is_contiguous()
