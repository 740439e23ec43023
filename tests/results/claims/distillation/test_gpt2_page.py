"""The section on GPT-2 says what its rows and verdicts say."""

import re

import pyarrow.compute as pc
import pytest

from results.claims import scoreboard
from results.store.tables import open_store, read
from tests.page_code import ROOT
from tests.results.claims.distillation.page_accuracies import accuracies_of, shown

CELLS = [(level, horizon) for level in (3, 2) for horizon in ("half", "whole")]
STRATEGIES = {"progressive": "the checkpoints in order", "one_shot": "the last", "labels": "labels"}


@pytest.fixture(scope="module")
def store():
    return open_store(str(ROOT / "docs/studies/distillation"), "gpt2")


@pytest.fixture(scope="module")
def section():
    page = (ROOT / "docs/studies/distillation/README.md").read_text()
    (found,) = re.findall(r"\n## A small GPT-2.*?(?=\n## |\Z)", page, re.DOTALL)
    return " ".join(found.split())


@pytest.fixture(scope="module")
def accuracies(store):
    """Of each condition on the test set, by replicate."""
    return accuracies_of(store, 14, 6)


def test_the_table_has_the_accuracies_of_the_rows(accuracies, section):
    for strategy, words in STRATEGIES.items():
        cells = [shown(accuracies[f"{strategy}_8_{horizon}, task.level={level}"]) for level, horizon in CELLS]
        assert f"| {words} | {' | '.join(cells)} |" in section
    teachers = [shown(accuracies[f"teacher, task.level={level}"]) for level in (3, 2)]
    assert f"teachers: {teachers[0]} at level 3, {teachers[1]} at level 2" in section


def test_the_sentences_have_the_numbers_of_the_verdicts(store, section):
    verdict = {verdict.claim.id: verdict for verdict in scoreboard(store)}
    assert (
        "**PD-R7**, that a student of the checkpoints is more accurate than one of the last: *not reproduced (scaled)*"
        in section
    )
    better = verdict["PD-R7"]
    assert better.verdict == "not reproduced (scaled)"
    found = re.findall(r"level (\d), (\d+) steps: ([+-][\d.]+)", better.finding.measured)
    gain = {(int(level), int(steps)): value for level, steps, value in found}
    assert len(gain) == 4
    medians = f"{gain[3, 800]} and {gain[3, 1600]} at level 3 (800 and 1,600 steps), and {gain[2, 800]} and {gain[2, 1600]} at level 2"
    assert f"The medians of the gain are {medians}" in section
    more, of = re.search(r"above 0 in (\d) of (\d) replicates", better.finding.measured).groups()
    assert f"above 0, on average over levels and horizons, in {more} of {of} replicates" in section
    assert f"behind the paired one in {int(of) - int(more)} of {of} seeds" in section
    assert {verdict[name].verdict for name in ("PD-R7-horizon", "PD-R7-tokens")} == {"precondition not met"}
    assert "enter the loss: *precondition not met*" in section


def test_the_cost_is_that_of_the_rows(store, section):
    rows = read(store, "replicates", ["train_s", "evaluate_s"])
    hours = sum(pc.sum(rows[name]).as_py() for name in rows.column_names) / 3600
    assert f"it took {hours:.1f} (the sum of `train_s` and `evaluate_s`)" in section
