"""The page about chains of group actions says what the rows of self-training say."""

import re
from statistics import median

import pytest

from results.claims import scoreboard
from results.store.tables import committed, open_store, read
from tests.page_code import ROOT

STAGES = {
    ("warm", 0): "5",
    ("warm", 1): "10, labelled by the model",
    ("warm", 2): "20, labelled by the model",
    ("warm", 3): "40, labelled by the model",
    ("longer", 3): "5 again, for as many steps",
    ("cyclic", 0): "5, of C6",
}
LENGTHS = (40, 80, 160)


@pytest.fixture(scope="module")
def store():
    return open_store(str(ROOT / "docs/studies/lego"), "lego-self-training")


@pytest.fixture(scope="module")
def section():
    page = (ROOT / "docs/studies/lego/README.md").read_text()
    return " ".join(page.partition("\n## Chains that models label for themselves")[2].split())


@pytest.fixture(scope="module")
def right(store):
    """{(condition, stage), length: shares of sentences that are right throughout}."""
    condition = {(row["key"], row["stage"]): row["condition"] for row in committed(store).to_pylist()}
    shares = {}
    for row in read(store, "evaluations").to_pylist():
        stage = condition[row["key"], row["stage"]], row["stage"]
        if row["metric"] == "read" and re.fullmatch(r"length_\d+", row["set"]) and stage in STAGES:
            shares.setdefault((stage, row["length"]), []).append(1 - row["sequences_wrong"] / row["sequences"])
    assert {len(of_stage) for of_stage in shares.values()} == {10}
    return shares


def test_the_table_has_the_sentences_of_the_rows(right, section):
    for stage, told in STAGES.items():
        cells = (right[stage, length] for length in LENGTHS)
        row = " | ".join(f"{median(shares):.3f}, {min(shares):.3f} to {max(shares):.3f}" for shares in cells)
        assert f"| {told} | {row} |" in section


def test_the_sentences_have_the_numbers_of_the_rows_and_the_verdicts(store, right, section):
    first, last, control = (median(right[stage, 160]) for stage in (("warm", 0), ("warm", 3), ("longer", 3)))
    assert (
        f"the median rises from {first:.3f} to {last:.3f} with self-training, and to {control:.3f} with the steps alone"
        in section
    )
    assert sum(share < 0.05 for share in right[("warm", 3), 160]) == 2
    verdict = {verdict.claim.id: verdict for verdict in scoreboard(store)}
    for name in ("L6", "L7", "L8"):
        assert re.search(rf"\*\*{name}\*\*[^*]*\*{re.escape(verdict[name].verdict)}\*", section)
    holds, beyond = re.match(r"(\d+ of \d+) replicates hold.* the control in (\d+)$", verdict["L6"].finding.measured).groups()
    assert f"It holds in {holds} seeds; the last stage goes beyond the control in {beyond}" in section
    holds, worst = re.match(r"(\d+ of \d+) replicates hold.*stage 2: ([\d.]+) / ", verdict["L8"].finding.measured).groups()
    assert f"In {holds} seeds every stage labels 99 % right. The worst seed labels {worst} of the chains of 40 right" in section
