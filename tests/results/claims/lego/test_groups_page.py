"""The page about chains of group actions says what the rows of the two groups that were trained alike say."""

import re
from statistics import median

import pytest

from results.claims import scoreboard
from results.rows.study_rows import read_study
from results.store.manifest import manifest_of
from results.store.tables import open_store, read
from tests.page_code import ROOT

LENGTHS = {"times_2": 10, "times_4": 20, "times_8": 40, "times_16": 80, "times_32": 160}


@pytest.fixture(scope="module")
def store():
    return open_store(str(ROOT / "docs/studies/lego"), "lego-groups")


@pytest.fixture(scope="module")
def section():
    page = (ROOT / "docs/studies/lego/README.md").read_text()
    (found,) = re.findall(r"\n## C6 beside S5.*?(?=\n## )", page, re.DOTALL)
    return " ".join(found.split())


def test_the_table_has_the_sentences_of_the_rows(store, section):
    condition = {one.key: one.condition for one in read_study(store, manifest_of(store)).replicates}
    right = {}
    for row in read(store, "evaluations").to_pylist():
        if row["set"] in LENGTHS and row["metric"] == "read":
            place = condition[row["key"]], LENGTHS[row["set"]]
            right.setdefault(place, []).append(1 - row["sequences_wrong"] / row["sequences"])
    assert {place: len(shares) for place, shares in right.items() if place[1] == 160} == {("C6", 160): 20, ("S5", 160): 10}
    below = sum(share < 0.9 for share in right["C6", 160])
    assert f"{below} of 20 are below 0.9 there, and the worst has {min(right['C6', 160]):.3f}" in section
    for group in ("C6", "S5"):
        cells = [f"{max(right[group, length]):.3f}, {median(right[group, length]):.3f}" for length in LENGTHS.values()]
        assert f"| {group} | {' | '.join(cells)} |" in section


def test_the_verdicts_and_their_numbers_are_those_of_the_claims(store, section):
    verdict = {verdict.claim.id: verdict for verdict in scoreboard(store)}
    for name in ("L1", "L2"):
        assert re.search(rf"\*\*{name}\*\*[^*]*\*{re.escape(verdict[name].verdict)}\*", section)
    measured = verdict["L2"].finding.measured
    share = re.search(r"P = [\d.]+ \[[\d.]+, [\d.]+\]", measured)[0]
    permutations, transitive = re.findall(r"keeps 0\.9 up to ((?:at least )?[\d.]+) times", measured)
    assert f"share of {share} of the pairs" in section
    assert f"up to {transitive} times its training length on C6, and {permutations} times on S5" in section
