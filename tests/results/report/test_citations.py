import re

import pytest

from results.report.citations import harness, references
from results.report.family_sections import FAMILIES

PAPERS = {name: entries for family in FAMILIES for name, entries in family.references.items()}


def fields(bibtex: str) -> dict[str, str]:
    return dict(re.findall(r"^  (\w+) += \{(.*)\},$", bibtex, flags=re.MULTILINE))


def test_the_flip_flop_paper_and_its_thesis_are_cited_with_what_they_state() -> None:
    paper, thesis = references({"paper": "fflm", "card": "F2"}, PAPERS)
    assert fields(paper.bibtex)["eprint"] == "2306.00946"
    assert fields(paper.bibtex)["title"] == "Exposing Attention Glitches with Flip-Flop Language Modeling"
    assert fields(thesis.bibtex)["number"] == "CMU-ML-24-110"
    assert {"pages", "doi", "url", "volume"}.isdisjoint(fields(paper.bibtex) | fields(thesis.bibtex))
    for reference in (paper, thesis):
        assert all(name in reference.line for name in ("Liu", fields(reference.bibtex)["year"]))


@pytest.mark.parametrize("source", [None, {}, {"card": "F2"}, {"paper": "unheard of"}, {"paper": ["fflm"]}, "fflm"])
def test_an_unknown_paper_has_no_entry(source: object) -> None:
    assert references(source, PAPERS) == ()


def test_every_entry_is_balanced_and_closed() -> None:
    every = [reference.bibtex for found in PAPERS.values() for reference in found] + [harness(["0123_4"]).bibtex]
    for bibtex in every:
        assert re.match(r"@[a-z]+\{[a-z0-9]+,\n", bibtex)
        assert bibtex.endswith("}\n")
        assert bibtex.count("{") == bibtex.count("}")


def test_the_harness_names_its_version_and_commits_and_no_author() -> None:
    found = fields(harness(["0123_4"]).bibtex)
    assert found["note"] == r"git 0123\_4"
    assert found["version"] in harness().line
    assert "author" not in found
    assert "note" not in fields(harness().bibtex)
