"""The page about 100 LSTMs at the paper's own size says what their rows say."""

import pytest

from results.claims import scoreboard
from results.rows.study_rows import read_study
from results.store.manifest import manifest_of
from results.store.tables import open_store
from tests.page_code import ROOT

SETS = {"in_distribution": "in distribution, FFL(0.8)", "sparse": "sparse, FFL(0.98)", "dense": "dense, FFL(0.1)"}


@pytest.fixture(scope="module")
def store():
    return open_store(str(ROOT / "docs/studies/flipflop"), "fflm-lstm")


@pytest.fixture(scope="module")
def page():
    return " ".join((ROOT / "docs/studies/flipflop/README.md").read_text().split())


def test_the_table_has_the_wrong_reads_of_the_rows(store, page):
    for name, told in SETS.items():
        scores = [replicate.scores[name] for replicate in read_study(store, manifest_of(store)).replicates]
        (reads,) = {score.reads for score in scores}
        errors = [score.errors for score in scores]
        worst = {0: "0", 1: "1 error"}.get(max(errors), f"{max(errors)} errors")
        assert f"| {told} | {reads:,} | {errors.count(0)} of {len(errors)} | {worst} |" in page


def test_the_sentences_have_the_numbers_of_the_rows_and_of_the_verdict(store, page):
    (verdict,) = scoreboard(store)
    assert verdict.claim.id == "R2"
    assert f"**R2** is *{verdict.verdict}*" in page
    share, interval = verdict.finding.measured.split(" without")[0].split(" [")
    assert f"{share} [{interval.replace('%, ', ', ').replace('%]', ' %]')}" in page
    errors = sorted(replicate.scores["sparse"].errors for replicate in read_study(store, manifest_of(store)).replicates)
    many = [each for each in errors if each > 1]
    assert f"{errors.count(1)} LSTMs misread one and {len(many)} misread {many[0]} to {many[-1]}" in page
