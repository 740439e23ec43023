"""The scoreboard shows each claim with its verdict and its value, says what is open, and stands in reports."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from results.claims import REGISTRY, scoreboard
from results.claims.claim import (
    NOT_REPRODUCED,
    NOT_RUN,
    PRECONDITION,
    REPRODUCED,
    TOO_FEW,
    Claim,
    Finding,
    Terms,
    by_id,
)
from results.claims.evidence import Evidence
from results.claims.show import html, show_claims
from results.report.report import write_report
from results.store.schema import LABELS_RIGHT, SCHEMAS
from results.store.tables import Store, commit, committed, open_store, write_bytes
from tests.page_code import ROOT, blocks
from tests.results.claims.claim_rows import condition, write
from tests.results.claims.flipflop.flip_flop_rows import (
    FLIP_FLOP,
    LSTM,
    SHARPEN,
    VALUES,
    base,
    one_verdict,
    poor,
)


def say_all(stores: list[Store]) -> tuple[int, str]:
    lines: list[str] = []
    return show_claims(stores, lines.append), "\n".join(lines)


def test_the_scoreboard_is_printed_and_its_status_tells_whether_one_failed(tmp_path: Path) -> None:
    good, bad, silent = (open_store(str(tmp_path), name) for name in ("good", "bad", "silent"))
    write(good, {"R2": VALUES["R2"], "R4": VALUES["R4"]}, [condition(100, **LSTM)], reductions=["model.layers: 6 -> 2"])
    write(bad, {"R2": VALUES["R2"]}, [condition(20, 0.1, **LSTM)], scale="laptop")
    write(silent, {}, [base()])
    status, text = say_all([good, silent])
    assert status == 0
    assert "R2  reproduced (scaled)" in text
    assert "R4  not run" in text
    assert "model.layers: 6 -> 2" in text
    assert "Open at the paper's own size: R2 (flipflop/verdicts), R4 (flipflop/verdicts)." in text
    assert text.count("Open at") == 1, "the others are not reduced"
    assert "No study" not in text
    assert "silent" not in text
    status, text = say_all([good, bad])
    assert (status, "R2  not reproduced (scaled)" in text) == (1, True)
    with pytest.raises(ValueError, match=r"^silent states no claim: add a section"):
        show_claims([silent], print)
    with pytest.raises(ValueError, match=rf"^no study of {tmp_path} states a claim: add a section"):
        show_claims([silent, silent], print)


def test_the_value_of_a_claim_says_whether_it_is_the_papers_number(tmp_path: Path) -> None:
    stores = {value: open_store(str(tmp_path), f"store-{value}") for value in (1.0, 0.5)}
    for value, store in stores.items():
        write(store, {"R1": VALUES["R1"], "R2": {"value": value}}, [base(), condition(20, **LSTM)])
        (tail_of, lstm) = scoreboard(store)
        text, page = say_all([store])[1], html([tail_of, lstm])
        whose = {1.0: "the paper's number", 0.5: "our threshold"}[value]
        assert f"    value: {value:g}, {whose} (share of replicates without an error)\n" in text
        assert "    value: 0.5, our threshold (share of replicates that must err outside the training distribution)\n" in text
        assert whose.replace("'", "&#39;") in page


@pytest.mark.parametrize("claim", REGISTRY.values(), ids=REGISTRY)
def test_a_claim_without_a_number_in_its_paper_has_a_threshold_of_ours(claim: Claim) -> None:
    if re.search("no numbers?|no statistic|no experiment|not tested there|prediction of ours", claim.source):
        assert claim.paper_value is None


def test_studies_state_the_number_of_the_paper() -> None:
    stated = [
        (study.name, name, REGISTRY[name].paper_value, terms["value"])
        for study in sorted(Path(ROOT, "launch/studies").glob("*/*.yaml"))
        for name, terms in (yaml.safe_load(study.read_text(encoding="utf-8")).get("claims") or {}).items()
        if REGISTRY[name].paper_value is not None
    ]
    assert {name for _, name, *_ in stated} == {name for name, claim in REGISTRY.items() if claim.paper_value is not None}
    for study, name, paper, value in stated:
        assert value == paper, f"{study} states {value} for {name}"


def test_what_is_decided_at_the_papers_own_size_is_not_open(tmp_path: Path) -> None:
    claims = {name: {"value": 0.9} for name in ("R2", "R4", "S5", "BT1", "T2")}
    reduced, whole, small, few = (open_store(str(tmp_path), name) for name in ("reduced", "whole", "small", "few"))
    write(reduced, claims, [condition(20, **LSTM)], reductions=["model.layers: 6 -> 2"])
    write(whole, {"R2": VALUES["R2"]}, [condition(100, **LSTM)])
    write(small, {"R2": VALUES["R2"]}, [condition(100, **LSTM)], scale="laptop")
    write(few, {"R2": VALUES["R2"]}, [condition(5, **LSTM)])
    own = "Open at the paper's own size: R4 (flipflop/verdicts). No study decides S5, BT1, T2 at the paper's own size."
    assert say_all([reduced, whole])[1].endswith(f"\n{own}")
    assert say_all([whole, reduced])[1].endswith(f"\n{own}")
    for undecided in (small, few):
        assert "Open at the paper's own size: R2 (flipflop/verdicts), R4 (" in say_all([reduced, undecided])[1]
    assert "own size" not in say_all([small, whole])[1], "nothing is open"


def test_the_page_escapes_names_and_is_nothing_without_claims(tmp_path: Path) -> None:
    store = open_store(str(tmp_path), "claims")
    rows = [base(), base(rare=1e-4, **SHARPEN)]
    plan = write(store, {"R6-sharpening": VALUES["R6-sharpening"]}, rows)
    (found,) = scoreboard(store)
    text = html([found])
    assert "reproduced</span></summary>" in text
    assert "with c1, it falls to 0.01×" in text
    assert html([]) == ""
    assert "Open at" not in text
    assert "Open at" in html([found], reduced=True)
    renamed = json.loads(json.dumps(plan).replace('"c1"', '"<script>"'))
    assert renamed["conditions"][1]["name"] == "<script>"
    evil = open_store(str(tmp_path), "evil")
    write(evil, {"R6-sharpening": VALUES["R6-sharpening"]}, rows)
    write_bytes(evil, "manifests/zz.yaml", json.dumps(renamed).encode())
    assert "<script>" not in html(scoreboard(evil))


def test_a_report_opens_with_the_claims_of_its_study_judged_by_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def judge(evidence: Evidence, terms: Terms, needs: int) -> Finding:
        assert evidence.curves is not None
        seen.append(sorted(evidence.curves["metric"].to_pylist()))
        return REGISTRY["R2"].judge(evidence, terms, needs)

    monkeypatch.setitem(REGISTRY, "R1", replace(REGISTRY["R1"], judge=judge))
    store = open_store(str(tmp_path), "claims")
    plan = write(store, {"R1": VALUES["R1"]}, [base()])
    row = {"key": plan["replicates"][0][0], "stage": 0, "pack": committed(store)["pack"][0].as_py(), "step": 5, "value": 0.5}
    curves = [row | {"metric": metric} for metric in ("loss", LABELS_RIGHT)]
    commit(store, row["pack"], {"curves": pa.Table.from_pylist(curves, schema=SCHEMAS["curves"])})
    scoreboard(store)
    text = write_report(store).read_text()
    assert seen == [[LABELS_RIGHT, "loss"]] * 2
    assert text.index('id="claims-board"') < text.index("<figure") < text.index('id="summary-table"')
    assert 'href="#claims"' in text


def test_a_manifest_without_claims_and_one_of_an_unknown_claim(tmp_path: Path) -> None:
    store = open_store(str(tmp_path), "claims")
    write(store, {}, [base()])
    assert scoreboard(store) == []
    unknown = open_store(str(tmp_path), "unknown")
    write(unknown, {"R99": {"value": 1}}, [base()])
    with pytest.raises(ValueError, match="states the claim R99; there is R1"):
        scoreboard(unknown)
    with pytest.raises(ValueError, match="no study 'nothing'"):
        scoreboard(open_store(str(tmp_path), "nothing"))


def test_the_claim_of_the_page_gives_each_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, Any] = {}
    exec(blocks("docs/guides/adding-a-claim.md", "python")[0], names)
    monkeypatch.setitem(REGISTRY, "X1", names["X1"])
    monkeypatch.setitem(VALUES, "X1", {"value": 2})
    cases = [
        (REPRODUCED, [base(), base(train__clip=1.0, rare=1e-3)]),
        (NOT_REPRODUCED, [base(), base(train__clip=1.0, rare=2e-1)]),
        (PRECONDITION, [poor(), base(train__clip=1.0)]),
        (TOO_FEW, [base(), base(14, train__clip=1.0)]),
        (NOT_RUN, [base()]),
    ]
    for i, (verdict, conditions) in enumerate(cases):
        assert one_verdict(tmp_path / str(i), "X1", conditions).verdict == verdict
    page = (ROOT / "docs/reference/claims.md").read_text()
    table = dict(re.findall(r"^\| ([RT]\d[-a-z]*) .*? \| (\d+) \|", page, re.MULTILINE))
    assert table == {name: str(REGISTRY[name].needs) for name in FLIP_FLOP}


def test_two_claims_of_one_id_are_refused():
    assert by_id([REGISTRY["R1"], REGISTRY["R2"]]) == {"R1": REGISTRY["R1"], "R2": REGISTRY["R2"]}
    with pytest.raises(ValueError, match="R1"):
        by_id([REGISTRY["R1"], REGISTRY["R2"], REGISTRY["R1"]])
