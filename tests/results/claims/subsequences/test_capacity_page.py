"""The numbers of the section "How many pairs a transformer holds" of docs/studies/subsequences are those of its rows."""

import re
from pathlib import Path

import pyarrow.compute as pc
import pytest

from results.claims import scoreboard
from results.claims.claim import TOO_FEW
from results.store.manifest import manifest_of
from results.store.tables import open_store, read

PAGE = Path("docs/studies/subsequences/README.md").read_text(encoding="utf-8")
SECTION = " ".join(PAGE.partition("## How many pairs a transformer holds")[2].partition("\n## ")[0].split())
LINE = re.compile(
    r"width (\d+) to (\d+): (\d+) to (\d+)(?: or more)? pairs, more than twice in (\d+ of \d+) \[([\d.]+)%, ([\d.]+)%\]"
    r"(?: \((\d+) beyond the sweep\))?; stopped, and lower, at inner width (\d+) in (\d+ of \d+)"
)


def judged(study):
    """The verdict on S2, and what was measured of each doubling."""
    (verdict,) = scoreboard(open_store("docs/studies/subsequences", study))
    found = LINE.findall(verdict.finding.measured)
    return verdict, found


def test_the_verdicts():
    said = {study: judged(study)[0].verdict for study in ("subsequence-capacity", "subsequence-capacity-6000")}
    assert set(said.values()) == {TOO_FEW}
    assert f"in the two before it is *{TOO_FEW}*." in SECTION
    assert f"**S2** is *{judged('subsequence-capacity-finer')[0].verdict}* by the last of three studies" in SECTION


@pytest.mark.parametrize("study", ["subsequence-capacity-6000", "subsequence-capacity-finer"])
def test_the_table_has_each_doubling(study):
    for width, double, less, more, often, low, high, *_ in judged(study)[1]:
        row = f"| `{study}` | {width} to {double} | {int(less):,} to {int(more):,} | {often} [{low}, {high} %] |"
        assert row in SECTION


def test_what_hangs_on_the_sweep_and_on_the_inner_width():
    _, (first, second) = judged("subsequence-capacity-6000")
    ((*_, beyond, narrower, finer),) = judged("subsequence-capacity-finer")[1]
    assert (first[7], second[7], beyond) == ("", "1", "")
    not_double = 20 - int(second[4].split()[0])
    assert f"One of its {not_double} replicates in which the number does not more than double holds all of the 2,048" in SECTION
    assert first[8] == second[8] == narrower == "128"
    stops = f"in {first[9]} replicates from width 4 to 8, in {second[9]} from 8 to 16, and in {finer} in the finer study."
    assert stops in SECTION


def test_the_study_with_fewer_steps():
    _, (first, second) = judged("subsequence-capacity")
    assert f"The models held {first[2]}, {first[3]} and {second[3]} pairs, more than twice" in SECTION
    assert first[3] == second[2]
    assert f"more than twice in {first[4]} [{first[5]}, {first[6]} %] from 4 to 8" in SECTION
    assert f"in {second[4]} [{second[5]}, {second[6]} %] from 8 to 16." in SECTION


@pytest.mark.parametrize(("study", "largest", "alike"), [("6000", 2048, "3"), ("finer", 3584, "2.4")])
def test_the_numbers_of_pairs_that_were_run(study, largest, alike):
    """Where n and twice n are the largest numbers that two models hold, the second may hold nearly as many as come next."""
    conditions = manifest_of(open_store("docs/studies/subsequences", f"subsequence-capacity-{study}"))["conditions"]
    pairs = sorted({each["settings"]["task"]["pairs"] for each in conditions})
    assert pairs[-1] == largest
    assert f"{largest:,}" in SECTION
    assert f"{max(pairs[pairs.index(2 * n) + 1] / n for n in pairs if 2 * n in pairs[:-1]):.2g}" == alike
    assert f"{alike} times" in SECTION


def test_the_time_that_the_finer_study_took():
    seconds = read(open_store("docs/studies/subsequences", "subsequence-capacity-finer"), "replicates", ["train_s"])["train_s"]
    assert f"1.6 hours and {pc.sum(seconds).as_py() / 3600:.1f} hours;" in SECTION
