"""The committed page of all claims is what the committed tables give."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from launch.cli.read import claims
from results.claims import FAMILIES, REGISTRY
from results.claims.claim import (
    NOT_REPRODUCED,
    NOT_REPRODUCED_SCALED,
    NOT_RUN,
    PRECONDITION,
    REPRODUCED,
    SCALED,
    TOO_FEW,
    VERDICTS,
    Finding,
    Terms,
    Verdict,
)
from results.claims.scoreboard_page import _SEEN, _short, claim_outcome, markdown, weighed
from results.store.tables import open_store, write_bytes
from tests.results.claims.claim_rows import condition, write

ROOT = Path(__file__).parents[3]


def test_the_scoreboard_is_current(monkeypatch):
    monkeypatch.chdir(ROOT)
    made = CliRunner().invoke(claims, ["docs/studies", "--markdown"], catch_exceptions=False)
    page = (ROOT / "docs/studies/README.md").read_text(encoding="utf-8")
    assert made.output == page, "run manyseeds claims docs/studies --markdown > docs/studies/README.md"
    for claim in REGISTRY.values():
        assert f"| **{claim.id}** " in page
    rows = [line.split(" | ") for line in page.split("\n") if line.startswith("| **")]
    for claim in REGISTRY.values():
        own = [row for row in rows if row[0].startswith(f"| **{claim.id}**")]
        places = [(row[4] != "paper", VERDICTS.index(row[1])) for row in own]
        assert places == sorted(places), f"{claim.id}: the paper's own size comes first, then what is decided"
        assert len(own) == 1 or NOT_RUN not in {row[1] for row in own}, f"{claim.id}: another study has rows for it"
    prose = [line for line in page.split("\n") if not line.startswith(("|", "#"))]
    assert max(map(len, prose)) <= 110
    for family in FAMILIES:
        folder = ROOT / "docs/studies" / family.__name__.rpartition(".")[2]
        assert folder.exists() == (folder / "README.md").exists()


def test_a_claim_that_has_not_run_names_what_makes_its_rows(tmp_path):
    lstm = condition(20, model__name="lstm", model__layers=1, model__width=128, train__steps=500)
    store = open_store(str(tmp_path), "claims")
    write(store, {"R2": {"value": 1.0}, "R4": {"value": 0.24}}, [condition(20), lstm], reductions=["a: 2 -> 1"])
    write_bytes(store, "seeds.svg", b"<svg/>")
    write_bytes(store, "figures/curves.png", b"PNG")
    page = markdown({"flipflop/quick": store})
    rows = {name: page.split(f"| **{name}** ")[1].split("\n")[0].split(" | ")[1:] for name in ("R2", "R3", "R4")}
    assert rows["R2"][2:] == ["20", "reduced", "[quick](flipflop/quick), [figure](flipflop/quick/seeds.svg) |"]
    assert rows["R3"] == ["not run", "", "", "", "`manyseeds language-model` |"]
    assert rows["R4"][0] == "not run"
    assert rows["R4"][1].startswith("no condition ")
    store.filesystem.delete_file(store.path("seeds.svg"))
    assert "[figure](flipflop/quick/figures/curves.png) |" in markdown({"flipflop/quick": store})
    assert rows["R4"][2:] == ["", "", "`flipflop/verdicts` |"]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a" * 100 + "; " + "b" * 100, "a" * 100 + "; " + "b" * 100),
        ("a" * 100 + "; b, " + "c" * 200, "a" * 100),  # at the end of a part
        ("a" * 100 + " (P = 1; b), " + "c" * 200, "a" * 100 + " (P = 1; b)"),  # and not inside a bracket
        ("a" * 100 + " [0.1, 0.2] " + "c" * 200, "a" * 100 + " [0.1, 0.2]"),
        ("a" * 300, "a" * _SEEN),
    ],
)
def test_what_was_seen_is_cut_between_its_parts(text, kept):
    assert _short(text).removesuffix(" …") == kept


def test_the_tally_counts_each_claim_once():
    page = (ROOT / "docs/studies/README.md").read_text(encoding="utf-8")
    lines = [line.split(" | ") for line in page.split("\n## ")[0].split("\n") if line.startswith("| ")][1:]
    assert [int(line[1]) for line in lines] == [len(family.CLAIMS) for family in FAMILIES]
    for line in lines:
        assert sum(int(count.strip(" |") or 0) for count in line[2:]) == int(line[1])


@pytest.mark.parametrize(
    ("verdicts", "outcome"),
    [
        ([SCALED, TOO_FEW], "reproduced"),
        ([PRECONDITION, NOT_REPRODUCED_SCALED], "not reproduced"),
        ([REPRODUCED, NOT_REPRODUCED], "differs by study"),
        ([NOT_RUN, PRECONDITION], "open"),
        ([NOT_RUN], "not run"),
        ([], "not run"),
    ],
)
def test_the_outcome_of_several_studies(verdicts, outcome):
    assert claim_outcome([_verdict(verdict) for verdict in verdicts]) == outcome


@pytest.mark.parametrize(
    ("whole", "small", "counted"),
    [
        ([NOT_REPRODUCED], [SCALED], [NOT_REPRODUCED]),
        ([TOO_FEW], [NOT_REPRODUCED_SCALED], [TOO_FEW]),  # what the paper's own size leaves open is open
        ([NOT_RUN], [SCALED, TOO_FEW], [NOT_RUN, SCALED, TOO_FEW]),
        ([], [SCALED], [SCALED]),
    ],
)
def test_a_study_at_the_papers_own_size_counts_alone(whole, small, counted):
    rows = [(_verdict(verdict), scale) for scale, verdicts in (("laptop", small), ("paper", whole)) for verdict in verdicts]
    told = weighed([("folder", verdict, {"scale": scale, "reductions": [], "overrides": []}) for verdict, scale in rows])
    assert sorted(verdict.verdict for verdict in told) == sorted(counted)


def _verdict(verdict):
    return Verdict(next(iter(REGISTRY.values())), Terms(1.0), Finding(verdict, "", ""))
