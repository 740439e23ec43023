"""LEGO in the engine: the loss is the paper's, a replicate is bitwise the same alone, in any pack and after a resume, and it learns."""

import dataclasses
import re
from pathlib import Path

import pytest
import torch
import yaml
from torch.nn.functional import cross_entropy

from harness.planning.pack import ScoredSet
from harness.run import run
from harness.study import load as study
from harness.study.config import build
from harness.training.evaluate import score
from harness.training.pack_state import Training
from harness.training.training_strings import Feed
from harness.training.weights import path
from results.store.tables import committed, open_store, read
from tasks.lego.lego import Lego
from tests.harness.tiny import tables
from tests.harness.training.float64 import training_in_float64
from tests.harness.training.lego.packs import lego_pack
from tests.rounding import assert_same

CPU = torch.device("cpu")
MODELS = [
    {"name": "clauses", "width": 6, "feed_forward": 20, "residual": False, "activation": "smoothed_relu"},
    {"name": "lego_theory", "neurons": 3, "knee": 2.0},
    {"name": "lego_transformer", "width": 20, "layers": 2, "positions": "rotary", "heads": 5},
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model["name"])
@pytest.mark.parametrize("pool", [0, 16])
def test_a_training_is_bitwise_the_same_alone_and_in_any_pack(model, pool):
    """Three conditions that share a pack: they differ in the order of predicates and in what the loss is of."""
    tasks = [{"length": 3}, {"length": 3, "order": "shuffled", "loss": "value"}, {"length": 3, "steps": (2,)}]

    def trained(slots):
        training = Training(lego_pack(model, [tasks[slot] for slot in slots], [10 + slot for slot in slots], pool=pool), CPU)
        losses = []
        for _ in range(6):
            training.advance()
            losses.append(training.recent[training.step].clone())
        return torch.stack(losses), training.flat.values.clone()

    losses, values = trained([0, 1, 2])
    assert len(set(losses[-1].tolist())) == 3
    for slots in ([0], [1], [2], [2, 0]):
        some, weights = trained(slots)
        assert torch.equal(some, losses[:, slots])
        assert torch.equal(weights, values[slots])


@pytest.mark.parametrize(("loss", "steps"), [("clause", ()), ("value", ()), ("clause", (1, 3)), ("value", (2,))])
def test_the_loss_is_the_papers_next_clause_loss(loss, steps):
    """Equation 6a, over the number of answers: every answer, every slot, blanks included, given the true clauses before it."""
    training = training_in_float64(lego_pack(MODELS[0], [{"length": 3, "loss": loss, "steps": steps}] * 2, [1, 2]))
    strings = training.feed.at(1)
    found = training.losses(strings)
    for slot in range(2):
        total = []
        for inputs, targets in zip(strings.inputs[slot], strings.needed.targets[slot], strict=True):
            for answer in steps or (1, 2, 3):
                prompt = inputs[: 3 + answer][None, None].expand(2, -1, -1, -1)
                logits = training.model(prompt)[slot, 0, -1]
                truth = targets[strings.needed.order[slot, 0].tolist().index(2 + answer)] if steps else targets[answer - 1]
                slots = range(5) if loss == "clause" else (4,)
                total.append(sum(cross_entropy(logits[i], truth[i]) for i in slots))
        assert_same(found[slot].detach(), torch.stack(total).mean().detach())


def test_a_fixed_set_is_passed_over_in_epochs():
    """10,000 sentences in the card: every epoch reads each once, in another order."""
    feed = Feed(lego_pack(MODELS[0], [{"length": 2}], [3], steps=8, batch=4, pool=16), CPU)
    epochs = [torch.cat([feed.at(step).inputs[0] for step in range(first, first + 4)]).flatten(1) for first in (1, 5)]
    assert not torch.equal(*epochs)
    assert sorted(epochs[0].tolist()) == sorted(epochs[1].tolist())


STUDY = """
name: lego
question: Does a small model learn C3?
task: {name: lego, group: C3, length: 2, variables: 9}
model: {name: clauses, width: 6, feed_forward: 20}
train: {steps: 30, batch: 8, optimizer: adam, lr: 3.0e-3, weight_decay: 0.0, warmup: 0, schedule: constant}
evaluate:
  sets:
    same: {sequences: 40, every: 15}
    long: {length: 8, sequences: 30}
    mixed: {order: shuffled, sequences: 40}
    free: {decode: greedy, sequences: 40}
conditions:
  plain: {}
  values: {task: {loss: value}}
  own: {task: {group: {table: [[0, 1], [1, 0]]}}}
replicates: 3
keep: all
executor: local
wandb: off
"""


def _study(folder, *overrides):
    file = folder / "lego.yaml"
    file.write_text(STUDY)
    return study.load(str(file), list(overrides))


def test_a_study_is_trained_scored_and_the_same_in_any_pack(tmp_path):
    stores = [tmp_path / name for name in ("one", "many")]
    for store, size in zip(stores, (1, 6), strict=True):
        run(_study(tmp_path, f"store={store}", f"pack.size={size}"))
    assert tables(stores[0], "lego") == tables(stores[1], "lego")
    opened = open_store(str(stores[1]), "lego")
    packs = committed(opened).to_pylist()
    assert len(packs) == 9
    assert len({row["pack"] for row in packs}) == 2  # `values` trains beside `plain`
    rows = read(opened, "evaluations").to_pylist()
    assert {(row["set"], row["length"], row["metric"]) for row in rows} == {
        (name, length, metric)
        for name, length in (("same", 2), ("long", 8), ("mixed", 2), ("free", 2))
        for metric in ("read", "clause")
    }
    assert all(row["count"] == row["sequences"] * row["length"] for row in rows)
    profile = [row for row in read(opened, "profiles").to_pylist() if row["set"] == "long"]
    assert {(row["lo"], row["hi"]) for row in profile} == {(n, n + 1) for n in range(8)}
    assert opened.filesystem.get_file_info(path(opened, packs[0]["key"], 0, 30)).is_file


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (
            ["model.name=lstm"],
            "model.name = 'lstm' reads 1 token a position and the task lego has 5: choose clauses, lego_theory",
        ),
        (
            ["task.name=flipflop"],
            "model.name = 'clauses' reads 5 tokens a position and the task flipflop has 1: choose transformer",
        ),
        (["evaluate.sets.long.length=9"], "task.length = 9 needs 10 different variables and task.variables = 9"),
    ],
)
def test_what_does_not_fit_is_refused_before_any_work(tmp_path, overrides, sentence):
    with pytest.raises(ValueError, match=sentence):
        _study(tmp_path, "only=[plain]", *overrides)


@pytest.mark.slow
def test_a_small_model_learns_c6_and_goes_beyond_its_length():
    """1,200 steps on sentences of 5 clauses; the whole of every answer, at 2 and at 4 times that length."""
    model = {"name": "clauses", "width": 16, "feed_forward": 160}
    pack = lego_pack(model, [{"variables": 24}], [0], steps=1200, batch=64, lr=1e-3)
    training = Training(pack, CPU)
    while training.step < 1200:
        training.advance()
    task = training.task
    for length, least in ((5, 0.99), (10, 0.98), (20, 0.9)):
        scored = ScoredSet(str(length), dataclasses.replace(task, length=length), 300, None, f"{length:015x}")
        found, number = score(training.model, [scored], CPU, "fp32")[0]
        rows = {row["metric"]: row for row in found.evaluation_rows(number, False)}
        assert 1 - rows["clause"]["sequences_wrong"] / 300 >= least


def test_the_page_is_true():
    """Its study loads, its table is a group, and the names that it lists are there."""
    page = (Path(__file__).parents[4] / "docs" / "explanation" / "lego.md").read_text()
    table, example = (yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```", page, re.DOTALL | re.MULTILINE))
    action = build("task", table["task"]).action
    assert action.actions == action.values
    loaded = study.from_tree(example, [])
    assert [each.task(loaded.conditions[0].task).length for each in loaded.sets] == [5, 10, 20, 40, 5, 40]
    for field in dataclasses.fields(Lego):
        assert f"| `{field.name}` |" in page
    for name in ("clauses", "lego_transformer", "lego_theory"):
        assert f"| `{name}` |" in page
