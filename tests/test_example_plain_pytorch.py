"""The example in plain PyTorch: its strings are those of the task, its committed rows give the table of its page, its commands run."""

import importlib
import re
import shutil
from pathlib import Path

import pytest
import torch

from harness.draw import Draw
from harness.run import run
from harness.study.load import load
from models.custom import custom
from tasks.flipflop.flipflop import FlipFlop
from tests.harness.killed import without_report

FOLDER = Path(__file__).parents[1] / "examples" / "plain_pytorch"


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """plain.py and compare.py, in a copy of the folder that is the current one."""
    monkeypatch.chdir(shutil.copytree(FOLDER, tmp_path / "example"))
    monkeypatch.syspath_prepend(str(tmp_path / "example"))
    monkeypatch.setattr(custom, "_allowed", {"plain"})
    yield importlib.import_module("plain"), importlib.import_module("compare")
    for name in ("plain", "compare"):
        importlib.sys.modules.pop(name)


def test_the_committed_rows_give_the_table_of_the_page(modules, capsys):
    _, example = modules
    example.main("errors.csv")
    table = capsys.readouterr().out
    assert table in (FOLDER / "README.md").read_text()
    assert table.count("| 60, 60 |") == table.count("| equivalent |") == 4


def test_the_commands_of_the_page_run(modules, monkeypatch, capsys):
    """Cut to a few steps, the two studies have errors of each model on each set."""
    _, example = modules
    without_report(monkeypatch)
    few = ["replicates=2", "executor=local", "wandb=off"]
    assert run(load("here.yaml", [*few, "train.steps=20", "train.warmup=5"]), say=lambda text: None) == 0
    assert run(load("plain.yaml", [*few, "experiment.steps=2"]), say=lambda text: None) == 0
    capsys.readouterr()
    example.main("runs")
    assert len(re.findall(r"\| 2, 2 \| [01]\.\d{4} \| [01]\.\d{4} ", capsys.readouterr().out)) == 4
    assert len(Path("errors.csv").read_text().splitlines()) == 1 + 2 * 2 * 2 * 2


def test_strings_follow_the_law_of_the_task(modules):
    plain, _ = modules
    tokens, read = plain.strings(4000, 0.8, torch.Generator().manual_seed(3))
    batch = FlipFlop(plain.T, 0.8).sample(Draw(torch.tensor([3]), "data"), 4000)
    ours, scored = batch.inputs[0], batch.weights[0] > 0
    for at in range(plain.T):
        shares = [torch.bincount(each[:, at], minlength=5) / len(each) for each in (tokens, ours)]
        assert (shares[0] - shares[1]).abs().max() < 0.05  # five standard errors
    assert torch.equal(ours == 1, scored)
    for row, where in zip(tokens[:200].tolist(), read[:200].tolist(), strict=True):
        bit = None
        for at in range(0, plain.T, 2):
            assert where[at] == (row[at] == 1)
            if row[at] == 0:
                bit = row[at + 1]
            elif row[at] == 1:
                assert row[at + 1] == bit


def test_the_models_have_the_same_parameters(modules):
    plain, _ = modules
    for name, plain_model in (("transformer", plain.Transformer()), ("lstm", plain.LSTM())):
        condition = next(each for each in load("here.yaml").conditions if each.name == name)
        model = condition.model.make(Draw(torch.tensor([0]), "init"), 5, plain.T)
        ours = sum(each.numel() for each in model.parameters())
        assert ours == sum(each.numel() for each in plain_model.parameters())
