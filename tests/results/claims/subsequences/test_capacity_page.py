"""The numbers of the section "How many pairs a transformer holds" of docs/studies/subsequences are those of its rows."""

import re
from pathlib import Path

import pytest

from results.claims import scoreboard
from results.store.manifest import manifest_of
from results.store.tables import open_store

PAGE = Path("docs/studies/subsequences/README.md").read_text(encoding="utf-8")
SECTION = " ".join(PAGE.partition("## How many pairs a transformer holds")[2].partition("\n## ")[0].split())
LINE = re.compile(
    r"width (\d+) to (\d+): (\d+) to (\d+) pairs, more than twice in (\d+ of 20) \[([\d.]+)%, ([\d.]+)%\]"
    r"(?: \((\d+) beyond the sweep\))?; stopped, and lower, at inner width (\d+) in (\d+ of 20)"
)


def judged(study):
    """The verdict on S2, and what was measured of each doubling."""
    (verdict,) = scoreboard(open_store("docs/studies/subsequences", study))
    found = LINE.findall(verdict.finding.measured)
    assert len(found) == 2
    return verdict, found


@pytest.mark.parametrize("study", ["subsequence-capacity", "subsequence-capacity-6000"])
def test_how_many_pairs_each_width_holds(study):
    verdict, (first, second) = judged(study)
    assert f"**S2** is *{verdict.verdict}*." in SECTION
    held = f"{int(first[2]):,}, {int(first[3]):,} and {int(second[3]):,}"
    assert first[3] == second[2]
    assert f"hold {held} pairs (medians of 20;" in SECTION or f"The models held {held} pairs," in SECTION


def test_how_often_the_number_more_than_doubles():
    _, (first, second) = judged("subsequence-capacity-6000")
    assert f"From width 4 to 8 the number more than doubles in {first[4]} replicates [{first[5]}, {first[6]} %]" in SECTION
    assert f"from 8 to 16 in {second[4]} [{second[5]}, {second[6]} %]." in SECTION
    assert (first[7], second[7]) == ("", "1")
    assert (
        f"Of the other {20 - int(second[4].split()[0])} replicates, one holds all of the 2,048 pairs that were run" in SECTION
    )
    assert f"in {first[9]} replicates from width 4 to 8, and in {second[9]} from 8 to 16." in SECTION
    _, (first, second) = judged("subsequence-capacity")
    assert f"more than twice in {first[4]} [{first[5]}, {first[6]} %] from 4 to 8" in SECTION
    assert f"in {second[4]} [{second[5]}, {second[6]} %] from 8 to 16." in SECTION


def test_the_largest_number_of_pairs():
    conditions = manifest_of(open_store("docs/studies/subsequences", "subsequence-capacity-6000"))["conditions"]
    assert max(each["settings"]["task"]["pairs"] for each in conditions) == 2048
