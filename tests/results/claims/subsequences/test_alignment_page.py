"""The numbers of the section "Does a traced pair bring its answer back?" of docs/studies/subsequences are those of its rows."""

import re
from pathlib import Path

import numpy as np
import pytest

from results.claims import scoreboard
from results.claims.claim import SCALED
from results.rows.probe_values import by_step
from results.store.tables import committed, open_store, read

FOLDER = "docs/studies/subsequences"
PAGE = Path(FOLDER, "README.md").read_text(encoding="utf-8")
SECTION = " ".join(PAGE.partition("## Does a traced pair bring its answer back?")[2].partition("\n## ")[0].split())
MEASURED = re.compile(
    r"transformer: median r = ([\d.]+ \[[\d.]+, [\d.]+\]) over (\d+) replicates of (\d+) pairs, ([\d.]+) to ([\d.]+); "
    r"100.0% of the traced tokens are the pair's"
)


@pytest.mark.parametrize(("study", "fresh"), [("alignment", ""), ("alignment-own-size", " fresh")])
def test_the_table_has_each_study(study, fresh):
    (verdict,) = scoreboard(open_store(FOLDER, study))
    assert verdict.verdict == SCALED
    median, replicates, pairs, least, most = MEASURED.fullmatch(verdict.finding.measured).groups()
    assert f"| `{study}` | {replicates}{fresh}, {pairs} | {median} | {least} … {most} |" in SECTION


def test_how_often_an_answer_comes_back_beside_the_corpus():
    rows = by_step(read(open_store(FOLDER, "alignment-own-size"), "probes"), "alignment")
    values = [items for steps in rows.values() for items in steps.values()]
    said, exact = (
        np.median([[items[f"pair={pair} {name}"] for pair in range(64)] for items in values], axis=0)
        for name in ("srep", "exact")
    )
    assert f"brings its answer back {min(said / exact):.2f} to {max(said / exact):.2f} times as often" in SECTION


def test_what_it_took():
    rows = committed(open_store(FOLDER, "alignment-own-size"))
    assert f"it took {sum(rows['train_s'].to_pylist()) / 3600:.2f} by `train_s`" in SECTION
