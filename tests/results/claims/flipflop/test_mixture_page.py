"""The section on thirty baselines and thirty mixtures with equal steps says what their rows and verdicts say."""

import re
from statistics import median

import pytest

from results.claims import scoreboard
from results.rows.study_rows import read_study
from results.store.manifest import manifest_of
from results.store.tables import open_store
from tests.page_code import ROOT

LAWS = {"ignore_90": "FFL(0.9)", "sparse": "sparse, FFL(0.98)", "dense": "dense, FFL(0.1)"}


@pytest.fixture(scope="module")
def store():
    return open_store(str(ROOT / "docs/studies/flipflop"), "fflm-mixture")


@pytest.fixture(scope="module")
def section():
    page = (ROOT / "docs/studies/flipflop/README.md").read_text()
    (found,) = re.findall(r"\n### Equal steps.*?(?=\n### )", page, re.DOTALL)
    return " ".join(found.split())


def test_the_table_has_the_wrong_reads_of_the_rows(store, section):
    trained = {}
    for replicate in read_study(store, manifest_of(store)).replicates:
        trained.setdefault(replicate.condition, []).append(replicate)
    assert {name: len(members) for name, members in trained.items()} == {"baseline": 30, "mixture": 30}
    total = 0
    for name, told in LAWS.items():
        (reads,) = {replicate.scores[name].reads for members in trained.values() for replicate in members}
        total += reads
        cells = []
        for recipe in ("baseline", "mixture"):
            errors = [replicate.scores[name].errors for replicate in trained[recipe]]
            cells.append(f"{errors.count(0)}; {median(errors):,g}; {max(errors):,}")
        assert f"| {told} | {reads:,} | {' | '.join(cells)} |" in section
    none = [
        sum(not any(each.scores[name].errors for name in LAWS) for each in trained[recipe])
        for recipe in ("baseline", "mixture")
    ]
    assert f"| all three | {total:,} | {none[0]} | {none[1]} |" in section


def test_the_verdicts_and_their_numbers_are_those_of_the_command(store, section):
    found = {verdict.claim.id: verdict for verdict in scoreboard(store)}
    assert f"**R4** is *{found['R4'].verdict}*" in section
    assert f"repeat **R1**, *{found['R1'].verdict}*" in section
    learned = (
        "23 of 30 replicates of mixture have learned their training distribution (errors of at most 1% on in_distribution,"
    )
    assert found["R4"].finding.reason.startswith(learned)
    assert "23 of 30 mixtures err on at most 1 % of the reads of each set, and 80 % must" in section
    wrong = re.match(r"(\d+) of \1 .* err", found["R1"].finding.measured)[1]
    assert f"{wrong} read FFL(0.7) without an error, and all {wrong} err elsewhere" in section
