"""The majority classes that docs/explanation/length-generalization.md prints are those of the words."""

from pathlib import Path

import pytest
import torch

import tasks
from harness.draw import Draw

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "length-generalization.md"
ROWS = [line.strip("| ").split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
SHARES = [row for row in ROWS if len(row) == 4 and row[3].startswith("0.")]


def test_the_table_has_every_task_of_a4():
    assert len(SHARES) == 7


@pytest.mark.parametrize(("automaton", "observe", "law", "share"), SHARES)
def test_the_majority_class_has_the_share_that_is_printed(automaton, observe, law, share):
    task = tasks.build("automaton", automaton=automaton, observe=observe, law=law, length=40)
    labels = task.sample(Draw(torch.tensor([0])), 4000).targets.flatten()
    assert torch.bincount(labels, minlength=task.outputs).max() / labels.numel() == pytest.approx(float(share), abs=0.01)
