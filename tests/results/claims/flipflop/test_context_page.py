"""The page about models that see the last tokens alone says what their rows say, and what the floor is."""

import re
from statistics import median

import pytest

from results.claims import scoreboard
from results.claims.claim import REPRODUCED
from results.claims.flipflop.context import VISIBLE, floor
from results.rows.study_rows import read_study
from results.store.manifest import manifest_of
from results.store.tables import open_store
from tests.page_code import ROOT

LAWS = {"in_distribution": 0.8, "sparse": 0.98, "dense": 0.1}


@pytest.fixture(scope="module")
def store():
    return open_store(str(ROOT / "docs/studies/flipflop"), "fflm-context")


def _shown(text: str) -> float:
    """A share as the table writes it: "40.2 %", "5·10⁻⁷ %" or "0"."""
    if text == "0":
        return 0.0
    return float(text.removesuffix(" %").replace("·10⁻⁷", "e-7")) / 100


def test_the_table_has_the_medians_and_the_floors(store):
    page = (ROOT / "docs/studies/flipflop/README.md").read_text()
    rows = re.findall(r"^\| (\d+) \| (.+?); (.+?) \| (.+?); (.+?) \| (.+?); (.+?) \|$", page, re.MULTILINE)
    scores: dict[str, list] = {}
    for replicate in read_study(store, manifest_of(store)).replicates:
        scores.setdefault(replicate.condition, []).append(replicate.scores)
    assert len(rows) == len(scores) == 4
    for context, *cells in rows:
        found = scores[f"model.context={context}"]
        assert len(found) == 10
        for (name, law), seen, least in zip(LAWS.items(), cells[::2], cells[1::2], strict=True):
            middle = median(score[name].rate for score in found)
            assert _shown(seen) == pytest.approx(middle, rel=0.08 if middle < 1e-3 else 0.01)
            exact = floor(law, int(context), 512)
            assert _shown(least) == pytest.approx(exact, rel=0.08 if exact < 1e-3 else 0.01)
            if exact * found[0][name].reads >= VISIBLE:
                assert middle == pytest.approx(exact, rel=0.05), "a trained model is at the floor, up to the sample of strings"


def test_the_page_says_which_dense_floors_are_too_few_errors(store):
    (reads,) = {replicate.scores["dense"].reads for replicate in read_study(store, manifest_of(store)).replicates}
    least = [floor(LAWS["dense"], context, 512) * reads for context in (2, 4, 8, 16)]
    assert [round(each) for each in least[2:]] == [6, 0]
    assert min(least[:2]) > VISIBLE


def test_the_verdict_is_the_one_that_the_page_has(store):
    (found,) = scoreboard(store)
    assert (found.claim.id, found.verdict) == ("T0", REPRODUCED)
