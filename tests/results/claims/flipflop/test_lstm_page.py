"""The page about 100 LSTMs at the paper's own size says what their rows say."""

from results.claims import scoreboard
from results.rows.study_rows import read_study
from results.store.manifest import manifest_of
from results.store.tables import open_store
from tests.page_code import ROOT

SETS = {"in_distribution": "in distribution, FFL(0.8)", "sparse": "sparse, FFL(0.98)", "dense": "dense, FFL(0.1)"}
STORE = open_store(str(ROOT / "docs/studies/flipflop"), "fflm-lstm")
PAGE = " ".join((ROOT / "docs/studies/flipflop/README.md").read_text().split())


def _replicates():
    return read_study(STORE, manifest_of(STORE)).replicates


def test_the_table_has_the_wrong_reads_of_the_rows():
    for name, told in SETS.items():
        scores = [replicate.scores[name] for replicate in _replicates()]
        (reads,) = {score.reads for score in scores}
        errors = [score.errors for score in scores]
        worst = {0: "0", 1: "1 error"}.get(max(errors), f"{max(errors)} errors")
        assert f"| {told} | {reads:,} | {errors.count(0)} of {len(errors)} | {worst} |" in PAGE


def test_the_sentences_have_the_numbers_of_the_rows():
    errors = sorted(replicate.scores["sparse"].errors for replicate in _replicates())
    many = [each for each in errors if each > 1]
    assert f"{errors.count(1)} LSTMs misread one and {len(many)} misread {many[0]} to {many[-1]}" in PAGE
    strings = max(replicate.scores["sparse"].sequences_wrong for replicate in _replicates())
    assert f"in at most {strings} of the 100,000 strings" in PAGE
    first = [replicate for replicate in _replicates() if replicate.init_seed < 125]
    assert len(first) == 25
    erring = [replicate for replicate in first if any(score.errors for score in replicate.scores.values())]
    assert f"{len(erring)} of the first 25 err" in PAGE


def test_the_verdict_is_that_of_the_scoreboard():
    (verdict,) = scoreboard(STORE)
    assert verdict.claim.id == "R2"
    assert f"**R2** is *{verdict.verdict}*" in PAGE
    share, interval = verdict.finding.measured.split(" without")[0].split(" [")
    assert f"{share} [{interval.replace('%, ', ', ').replace('%]', ' %]')}" in PAGE
