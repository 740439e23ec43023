"""The page about chains of group actions says what the rows of self-training say."""

import re
from statistics import median

import pytest

from results.claims import scoreboard
from results.rows.study_rows import read_study
from results.store.manifest import manifest_of
from results.store.tables import open_store
from tests.page_code import ROOT

STAGES = {
    ("warm", 0): "5",
    ("warm", 1): "10, labelled by the model",
    ("warm", 2): "20, labelled by the model",
    ("warm", 3): "40, labelled by the model",
    ("longer", 3): "5 again, for as many steps",
    ("cyclic", 0): "5, of C6",
}
LENGTHS = {"times_8": 40, "times_16": 80, "times_32": 160}


@pytest.fixture(scope="module")
def store():
    return open_store(str(ROOT / "docs/studies/lego"), "lego-self-training")


@pytest.fixture(scope="module")
def section():
    page = (ROOT / "docs/studies/lego/README.md").read_text()
    return " ".join(page.partition("\n## Chains that models label for themselves")[2].split())


@pytest.fixture(scope="module")
def right(store):
    """{(condition, stage), length: shares of sentences that are right throughout}."""
    shares = {}
    for one in read_study(store, manifest_of(store)).replicates:
        for name, length in LENGTHS.items() if (one.condition, one.stage) in STAGES else ():
            score = one.scores[name]
            shares.setdefault(((one.condition, one.stage), length), []).append(1 - score.sequences_wrong / score.sequences)
    assert {len(of_stage) for of_stage in shares.values()} == {9}
    return shares


def test_the_table_has_the_sentences_of_the_rows(right, section):
    for stage, told in STAGES.items():
        cells = (right[stage, length] for length in LENGTHS.values())
        row = " | ".join(f"{median(shares):.3f}, {min(shares):.3f} to {max(shares):.3f}" for shares in cells)
        assert f"| {told} | {row} |" in section


def test_the_steps_alone_reach_as_far_as_the_page_says(store, section):
    (verdict,) = (each for each in scoreboard(store) if each.claim.id == "L6")
    first, *stages, control = re.findall(r": ([\d.]+) \([\d.]+ to [\d.]+\)", verdict.finding.measured)
    reach = f"up to {first} after chains of 5, and up to {', '.join(stages[:-1])} and {stages[-1]} after the stages."
    assert f"An accuracy of 0.9 is kept {reach} With the steps alone it is kept up to {control} (medians)" in section
    gain = (float(control) - float(first)) / (float(stages[-1]) - float(first))
    assert 0.45 < gain < 0.55  # "half of the gain"


def test_the_sentences_have_the_numbers_of_the_rows_and_the_verdicts(store, right, section):
    last, control, cyclic = (f"{median(right[stage, 160]):.3f}" for stage in (("warm", 3), ("longer", 3), ("cyclic", 0)))
    assert f"the median model answers {last} of the chains of 160" in section
    assert f"for as many steps, it answers {control}. C6, without any of this, answers {cyclic}" in section
    verdict = {verdict.claim.id: verdict for verdict in scoreboard(store)}
    for name in ("L6", "L7", "L8"):
        assert re.search(rf"\*\*{name}\*\*[^*]*\*{re.escape(verdict[name].verdict)}\*", section)
    holds, beyond = re.match(r"(\d+ of \d+) replicates hold.* the control in (\d+)$", verdict["L6"].finding.measured).groups()
    assert f"It holds in {holds} seeds; the last stage goes beyond the control in {beyond}" in section
    behind, low, high = re.search(r"interval: ([\d.]+) \(([\d.]+) to ([\d.]+)\)", verdict["L7"].finding.measured).groups()
    assert f"by {behind}, with an interval from {low} to {high}" in section
    holds, worst = re.match(r"(\d+ of \d+) replicates hold.*stage 2: ([\d.]+) / ", verdict["L8"].finding.measured).groups()
    assert f"In {holds} seeds every stage labels 99 % right. The worst seed labels {worst} of the chains of 40 right" in section
