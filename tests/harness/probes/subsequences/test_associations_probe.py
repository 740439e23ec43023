"""Gaps and gradients of pairs against a model whose gradient is known in closed form, and against strings as they are sampled."""

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import models
from harness.draw import Draw
from harness.probes.probe import Nothing
from harness.probes.subsequences.associations import associations
from harness.run import run as run_study
from harness.study.load import load
from launch.cli import main
from results.store.tables import open_store, read
from tasks.subsequences.associations import Associations
from tests.rounding import rounded

TASK = Associations(length=8, pairs=5, symbols=3, fillers=2, outputs=4, decoys=1, zipf=1.0, sure=0.8)
STUDY = """
name: tiny
question: Which pairs are learned?
task: {name: associations, length: 6, pairs: 3, symbols: 2, fillers: 2, outputs: 3}
model: {name: transformer, layers: 1, width: 8, heads: 2}
train: {steps: 3, batch: 4, warmup: 0}
evaluate: {sets: {own: {sequences: 8}}}
grid: {task.pairs: [3, 4], task.zipf: [0.0, 1.0]}
replicates: 1
executor: local
wandb: off
keep: steps(0, 1)
"""


def by_item(rows):
    return {row["item"]: row["value"] for row in rows}


class Constant(nn.Module):
    """The same logits whatever it reads."""

    def __init__(self, logits):
        super().__init__()
        self.logits = nn.Parameter(torch.tensor(logits)[None])

    def forward(self, inputs, needed):
        return self.logits[:, None, None].expand(1, inputs.shape[1], needed[0].shape[-1], -1)


def test_a_constant_answer_has_the_gradient_of_its_softmax():
    model = Constant([0.3, -1.0, 0.5, 2.0])
    found, said, law = (
        by_item(associations(model, TASK, 7, Nothing())),
        model.logits[0].detach().double().softmax(-1),
        TASK.law(Draw.of_seed),
    )
    assert len(found) == 3 * TASK.pairs
    for pair, frequency in enumerate(TASK.frequencies().tolist()):
        own = int(TASK.table(Draw.of_seed)[pair, 2])
        assert found[f"pair={pair} frequency"] == frequency
        assert found[f"pair={pair} gap"] == rounded(abs(float(said[own]) - 0.8))
        assert found[f"pair={pair} gradient"] == pytest.approx(frequency * float((said - law[pair]).norm()), rel=1e-6)


def test_an_answer_by_the_exact_law_has_neither_gap_nor_gradient():
    same = Associations(8, 4, 2, 2, 4, sure=0.5)
    law = same.law(Draw.of_seed)
    pair = 1
    found = by_item(associations(Constant(law[pair].log().tolist()), same, 4, Nothing()))
    assert found[f"pair={pair} gap"] == pytest.approx(0, abs=1e-6)
    assert found[f"pair={pair} gradient"] == pytest.approx(0, abs=1e-6)
    assert max(found[f"pair={other} gradient"] for other in range(4)) > 0.01


def test_a_network_has_those_of_the_strings_that_are_sampled():
    """With sure answers: rows of a sample that hold the pair by brute force, and the cross entropy of their targets."""
    task = Associations(length=6, pairs=3, symbols=2, fillers=2, outputs=3, zipf=1.0)
    config = models.REGISTRY["transformer"](layers=1, width=8, heads=2)
    model = config.make(Draw(torch.tensor([3]), "init"), task.vocabulary, task.length, task.outputs)
    found, count = by_item(associations(model, task, 3000, Nothing())), 6000
    batch = task.sample(Draw(torch.tensor([5])), count)
    for pair, (first, second, own) in enumerate(task.table(Draw.of_seed).tolist()):
        has = torch.tensor([first in row and second in row[row.index(first) :] for row in batch.inputs[0].tolist()])
        assert abs(has.double().mean() - found[f"pair={pair} frequency"]) < 5 / (2 * count**0.5)
        logits = model(batch.inputs[:, has])[0, :, -1]
        wanted = torch.autograd.grad(
            cross_entropy(logits, batch.targets[0, has, -1]), list(model.parameters()), allow_unused=True
        )
        norm = sum(float(each.square().sum()) for each in wanted if each is not None) ** 0.5
        assert found[f"pair={pair} gradient"] == pytest.approx(found[f"pair={pair} frequency"] * norm, rel=0.05)
        assert found[f"pair={pair} gap"] == pytest.approx(1 - float(logits.detach().softmax(-1)[:, own].mean()), abs=0.01)


def test_rows_reach_the_store_by_step(tmp_path, capsys):
    path = tmp_path / "study.yaml"
    path.write_text(STUDY)
    assert run_study(load(path, [f"store={tmp_path}/runs"]), lambda text: None) == 0
    main(["probe", str(tmp_path / "runs"), "--probe", "associations", "--strings", "4"])
    assert "associations of 4 replicates added" in capsys.readouterr().out
    rows = read(open_store(str(tmp_path / "runs"), "tiny"), "probes").to_pylist()
    assert {row["step"] for row in rows} == {0, 1, 3}
    assert len(rows) == 3 * 3 * 2 * (3 + 4)
    first = {(row["key"], row["item"]): row["value"] for row in rows if row["step"] == 0}
    last = {(row["key"], row["item"]): row["value"] for row in rows if row["step"] == 3}
    assert all(first[name] == last[name] for name in first if name[1].endswith("frequency"))
    assert any(first[name] != last[name] for name in first if name[1].endswith("gap"))
