"""The section on forty fresh seeds of P13 says what its rows and verdicts say."""

import re
from statistics import fmean

import pyarrow.compute as pc
import pytest

from results.claims import scoreboard
from results.claims.distillation.students import FREQUENT
from results.statistics.intervals import clopper_pearson
from results.store.tables import open_store, read
from tests.page_code import ROOT
from tests.results.claims.distillation.page_accuracies import accuracies_of, shown

HORIZONS = ("quarter", "half", "whole")
STRATEGIES = {
    "progressive": "the checkpoints in order",
    "one_shot": "the last, temperature 1",
    "one_shot_cold": "the last, temperature 1e-4",
    "labels": "labels",
}


@pytest.fixture(scope="module")
def store():
    return open_store(str(ROOT / "docs/studies/distillation"), "p13-40-seeds")


@pytest.fixture(scope="module")
def section():
    page = (ROOT / "docs/studies/distillation/README.md").read_text()
    (found,) = re.findall(r"\n### Forty fresh seeds \(study `p13-40-seeds`\).*?(?=\n##|\Z)", page, re.DOTALL)
    return " ".join(found.split())


@pytest.fixture(scope="module")
def accuracies(store):
    """Of each condition on the test set, by replicate."""
    return accuracies_of(store, 13, 40)


def test_the_table_has_the_accuracies_of_the_rows(accuracies, section):
    for strategy, words in STRATEGIES.items():
        cells = [shown(accuracies[f"{strategy}_{horizon}"]) for horizon in HORIZONS]
        assert f"| {words} | {' | '.join(cells)} |" in section
    assert f"teachers: {shown(accuracies['teacher'])}" in section


def test_the_sentences_have_the_numbers_of_the_verdicts(store, section):
    verdicts = {verdict.claim.id: verdict for verdict in scoreboard(store)}
    assert set(verdicts) == {"PD-P13", "PD-P13-one-shot", "PD-P13-labels"}
    for name, verdict in verdicts.items():
        assert f"**{name}**" in section
        (said,) = re.findall(rf"\*\*{name}\*\*[^*]*\*([^*]+)\*", section)
        assert said == verdict.verdict
        gains = re.findall(r"\d+ steps: ([+-][\d.]+)", verdict.finding.measured)
        assert len(gains) == 3
        assert f"{gains[0]}, {gains[1]} and {gains[2]}" in section
    more, of = re.search(r"in (\d+) of (\d+) replicates", verdicts["PD-P13"].finding.measured).groups()
    ends = clopper_pearson(int(more), int(of))
    assert f"it is above 0 in {more} of {of} [{100 * ends.low:.1f} %, {100 * ends.high:.1f} %]" in section
    for name in ("PD-P13-one-shot", "PD-P13-labels"):
        share, low, high = re.search(r"in (\d+)% of pairs \[([\d.]+), ([\d.]+)\]", verdicts[name].finding.measured).groups()
        assert f"in {share} % of pairs [{low}, {high}]" in section


def test_the_gains_by_horizon_are_those_of_the_rows(accuracies, section):
    """Against temperature 1, which is the better one at each horizon."""
    gains = []
    for horizon in HORIZONS:
        progressive, one_shot, cold = (accuracies[f"{arm}_{horizon}"] for arm in ("progressive", "one_shot", "one_shot_cold"))
        assert fmean(one_shot) > fmean(cold)
        gains.append([one - other for one, other in zip(progressive, one_shot, strict=True)])
    short, middle, long = (sum(gain > 0 for gain in each) for each in gains)
    assert (
        f"At 400 steps it is above 0 in {short} of 40, at 800 in {middle}, and at the longest it is above 0 in {long} of 40"
        in section
    )
    later = sum(one + other > 0 for one, other in zip(*gains[1:], strict=True))
    ends = clopper_pearson(later, 40)
    assert f"over the longer two it is so in {later} [{100 * ends.low:.1f} %, {100 * ends.high:.1f} %]" in section


def test_the_students_that_have_hardly_learned_are_those_of_the_rows(accuracies, section):
    few = {arm: sum(value <= FREQUENT for value in accuracies[f"{arm}_quarter"]) for arm in STRATEGIES}
    assert few["one_shot"] == few["one_shot_cold"]
    assert f"{few['labels']} of 40 students of labels and {few['one_shot']} of 40 of the last checkpoint are right" in section


def test_the_cost_is_that_of_the_rows(store, section):
    rows = read(store, "replicates", ["train_s", "evaluate_s"])
    hours = sum(pc.sum(rows[name]).as_py() for name in rows.column_names) / 3600
    assert f"took {hours:.1f} (the sum of `train_s` and `evaluate_s`)" in section
