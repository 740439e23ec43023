"""The page about transformers that have learned says what their rows say."""

import re
from statistics import median

import pytest

from results.claims import scoreboard
from results.report.page_template import format_share
from results.rows.plural import distinct
from results.rows.study_rows import read_study
from results.statistics.unpaired import superiority
from results.store.manifest import manifest_of
from results.store.tables import open_store
from tests.page_code import ROOT

RECIPES = ("baseline", "mixture", "longer")
ENCODINGS = ("baseline", "sinusoidal", "rotary")
SETS = {"in_distribution": "in distribution", "sparse": "sparse", "dense": "dense"}


@pytest.fixture(scope="module")
def store():
    return open_store(str(ROOT / "docs/studies/flipflop"), "fflm-converged")


@pytest.fixture(scope="module")
def section():
    page = (ROOT / "docs/studies/flipflop/README.md").read_text()
    (found,) = re.findall(r"\n## The tail again.*?(?=\*\*Fixed before it ran)", page, re.DOTALL)
    return " ".join(found.split())


@pytest.fixture(scope="module")
def trained(store):
    """The replicates by condition."""
    found = {}
    for replicate in read_study(store, manifest_of(store)).replicates:
        found.setdefault(replicate.condition, []).append(replicate)
    counts = {"baseline": 25, "mixture": 25, "longer": 25, "sinusoidal": 16, "rotary": 16}
    assert {name: len(members) for name, members in found.items()} == counts
    return found


def test_the_table_has_the_wrong_reads_of_the_rows(trained, section):
    replicates = trained["baseline"]
    for name, told in SETS.items():
        errors = [replicate.scores[name].errors for replicate in replicates]
        (reads,) = {replicate.scores[name].reads for replicate in replicates}
        law = re.escape(f"| {told}, FFL(") + r"[\d.]+\) "
        row = f"| {reads:,} | {errors.count(0)} | {median(errors):g} | {max(errors):,} |"
        assert re.search(law + re.escape(row), section), row


def _cells(trained, recipes, name):
    """Of each recipe on a set: the number of replicates without an error; the median of the errors; and the worst."""
    errors = [[replicate.scores[name].errors for replicate in trained[recipe]] for recipe in recipes]
    return " | ".join(f"{wrong.count(0)}; {median(wrong):,g}; {max(wrong):,}" for wrong in errors)


def test_the_table_of_three_recipes_has_the_wrong_reads_of_the_rows(trained, section):
    total = 0
    for name, told in {"ignore_90": "FFL(0.9)", "sparse": "sparse, FFL(0.98)", "dense": "dense, FFL(0.1)"}.items():
        reads = trained["baseline"][0].scores[name].reads
        total += reads
        assert f"| {told} | {reads:,} | {_cells(trained, RECIPES, name)} |" in section
    none = [
        sum(
            not any(replicate.scores[name].errors for name in ("ignore_90", "sparse", "dense")) for replicate in trained[recipe]
        )
        for recipe in RECIPES
    ]
    assert f"| all three | {total:,} | {' | '.join(map(str, none))} |" in section


def test_the_table_of_encodings_has_the_wrong_reads_of_the_rows(trained, section):
    told = {"in_distribution": "in distribution, FFL(0.7)", "ignore_90": "FFL(0.9)"}
    told |= {"sparse": "sparse, FFL(0.98)", "dense": "dense, FFL(0.1)"}
    for name, words in told.items():
        reads = trained["rotary"][0].scores[name].reads
        assert f"| {words} | {reads:,} | {_cells(trained, ENCODINGS, name)} |" in section
    rates = [replicate.error("sparse") for replicate in trained["rotary"]]
    assert f"The best of 16 rotary models misreads {100 * min(rates):.1f} % of the sparse reads" in section
    assert f"and the worst {100 * max(rates):.1f} %, though none errs in distribution" in section
    assert not any(replicate.error("in_distribution") for replicate in trained["rotary"])


def test_encodings_have_the_numbers_of_their_verdict_and_of_the_comparison(store, trained, section):
    verdict = {verdict.claim.id: verdict for verdict in scoreboard(store)}["R6-positions"]
    assert f"**R6-positions** is *{verdict.verdict}*" in section
    found = re.findall(r"positions (\w+), it falls to \S+ \(P = [\d.]+ \[([\d.]+), ([\d.]+)\]\)", verdict.finding.measured)
    errors = {name: [replicate.scores["dense"].errors for replicate in trained[name]] for name in ENCODINGS}
    for (name, low, high), words in zip(
        found, ("pairs of a baseline and a sinusoidal model", "with a rotary one"), strict=True
    ):
        more = sum(ours > theirs for ours in errors["baseline"] for theirs in errors[name])
        interval = f"[{format_share(float(low))}, {format_share(float(high))}]"
        assert f"in {more} of {25 * 16} {words} {interval}" in section
    sparse = {name: [replicate.error("sparse") for replicate in trained[name]] for name in ("rotary", "baseline")}
    p, interval = superiority(sparse["baseline"], sparse["rotary"], 0.95)
    worse = (
        f"In {100 * p:.0f} % of the pairs [{100 * interval.low:.0f} %, {100 * interval.high:.0f} %] the rotary model errs more"
    )
    assert worse in section


def test_rare_strings_and_more_steps_have_the_numbers_of_their_verdicts(store, section):
    verdict = {verdict.claim.id: verdict for verdict in scoreboard(store)}
    assert f"**R4** is *{verdict['R4'].verdict}*" in section
    assert f"**R5** is *{verdict['R5'].verdict}*" in section
    zero, of, low, high = re.match(r"(\d+) of (\d+) \[([\d.]+)%, ([\d.]+)%\]", verdict["R4"].finding.measured).groups()
    assert f"{zero} of {of} mixtures [{low} %, {high} %] make no error on any of the three; the thesis has 6 of 25" in section
    often = r".*?\(8,000 steps\) is above it by \S+ (\(P = [\d.]+ \[[\d.]+, [\d.]+\]\)) on ignore_90"
    assert f"make no error there either {re.match(often, verdict['R4'].finding.measured)[1]}" in section
    dense = r".* on sparse and falls to 0\.50× \(P = ([\d.]+) \[([\d.]+), ([\d.]+)\]\) on dense"
    p, low, high = (100 * float(number) for number in re.match(dense, verdict["R5"].finding.measured).groups())
    assert f"errs more on dense strings in {p:.0f} % of the pairs [{low:.1f} %, {distinct(high, 1, 'f', 50)} %]" in section


def test_the_sentences_have_the_numbers_of_the_verdicts(store, trained, section):
    verdict = {verdict.claim.id: verdict for verdict in scoreboard(store)}
    for name in ("R1", "R1-iterates"):
        assert f"**{name}** is *{verdict[name].verdict}*" in section
    tail = r"(\d+) of \d+ .* err: (\d+) on sparse, (\d+) on dense; the worst errs at least (\d+)×"
    wrong, sparse, dense, factor = re.match(tail, verdict["R1"].finding.measured).groups()
    assert (
        f"{wrong} of 25 transformers read their training distribution without an error, and all {wrong} err elsewhere"
        in section
    )
    worst = max(replicate.error("sparse") for replicate in trained["baseline"] if replicate.error("in_distribution") == 0)
    assert f"{sparse} on sparse strings, where the worst misreads {100 * worst:.1f} %, and {dense} on dense ones" in section
    assert f"a factor of {factor} apart on sparse strings" in section
    back = r"in (\d+) of (\d+) \[([\d.]+)%, ([\d.]+)%\].* from 0 of 500 .* step ([\d,]+) to (\d+) at step ([\d,]+)"
    again, learned, low, high, step, strings, later = re.match(back, verdict["R1-iterates"].finding.measured).groups()
    assert f"In {again} of the {learned} [{low} %, {high} %] errors rise at least 10 times" in section
    assert f"no error at step {step}, and errs in {strings} of the 500 strings at step {later}" in section


def test_sharpened_models_have_the_numbers_of_their_rows_and_verdicts(section):
    store = open_store(str(ROOT / "docs/studies/flipflop"), "fflm-sharpened")
    trained = {}
    for replicate in read_study(store, manifest_of(store)).replicates:
        trained.setdefault(replicate.condition, []).append(replicate)
    told = {"in_distribution": "in distribution, FFL(0.7)", "ignore_90": "FFL(0.9)"}
    told |= {"sparse": "sparse, FFL(0.98)", "dense": "dense, FFL(0.1)"}
    for name, words in told.items():
        reads = trained["sharpened"][0].scores[name].reads
        assert f"| {words} | {reads:,} | {_cells(trained, ('baseline', 'sharpened'), name)} |" in section
    learned = [replicate.error("in_distribution") for replicate in trained["sharpened"]]
    assert f"{sum(rate <= 0.01 for rate in learned)} of them have learned" in section
    assert f"the other one misreads {100 * max(learned):.1f} % of its own training distribution" in section
    verdict = {verdict.claim.id: verdict for verdict in scoreboard(store)}
    for name in ("R1", "R6-sharpening", "R8"):
        assert f"**{name}** is *{verdict[name].verdict}*" in section or f"**{name}**, *{verdict[name].verdict}*" in section
    hard = r"0 of 16 \[0\.0%, ([\d.]+)%\].* median is ([\d.]+): sharpened ([\d.]+) \[([\d.]+), ([\d.]+)\], P = 1\.00 "
    most, plain, middle, low, high = re.match(hard, verdict["R8"].finding.measured).groups()
    assert f"None of the 16 sharpened models [0 %, {most} %] is without an error on both sets" in section
    assert f"a median of {middle} [{float(low):.2f}, {float(high):.2f}] with the penalty and of {plain} without" in section
    often = r".* falls to 0\.20× \(P = ([\d.]+) \[([\d.]+), ([\d.]+)\]\)"
    p, low, high = (100 * float(number) for number in re.match(often, verdict["R6-sharpening"].finding.measured).groups())
    assert f"more than ten times as often in only {p:.0f} % of the pairs [{low:g} %, {high:g} %]" in section
    back = r"in (\d+) of (\d+) \[([\d.]+)%, ([\d.]+)%\]"
    again, of, low, high = re.match(back, verdict["R1-iterates"].finding.measured).groups()
    assert f"In {again} of {of} [{low} %, {high} %] sparse errors rise tenfold" in section
    assert verdict["R1-iterates"].verdict == "too few replicates"
