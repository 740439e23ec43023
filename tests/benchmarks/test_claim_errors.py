"""The edges of claims, with few draws: every claim is judged there, and errors are far from a coin's."""

import math

import numpy as np
import pytest

from benchmarks import claim_errors
from benchmarks.claim_edges import edges, even, fill
from results.claims.claim import NOT_REPRODUCED, NOT_RUN, PRECONDITION, REPRODUCED, TOO_FEW


@pytest.fixture(scope="module")
def points():
    return list(edges())


def test_an_edge_is_judged_and_not_gated(points):
    assert {edge.claim for edge in points} == {"R1", "R2", "R4", "R5", "R6", "R6-positions", "R7", "R8", "T0"}
    for edge in points:
        verdict = claim_errors.judge(edge, np.random.default_rng(1))
        without_probes = edge.setting.startswith("no probes")
        assert verdict in (REPRODUCED, NOT_REPRODUCED, TOO_FEW, *([NOT_RUN] * without_probes)), edge
        assert verdict != PRECONDITION


def test_replicates_are_those_of_the_campaign(points):
    filled = fill(points[0].stage, points[0].draw(np.random.default_rng(0)), np.random.default_rng(0))
    counts = {each.name: len(each.replicates) for each in filled.conditions}
    assert (counts["baseline"], counts["mixture"], counts["sinusoidal"]) == (30, 25, 15)


@pytest.mark.parametrize("spreads", [(2.0, 2.0), (1.0, 3.0)])
def test_an_even_median_is_even(spreads):
    random, n = np.random.default_rng(2), 200_000
    other = even(0.24, spreads) * np.exp(spreads[1] * random.normal(size=n)) * (random.random(n) >= 0.24)
    assert np.mean(np.exp(spreads[0] * random.normal(size=n)) > other) == pytest.approx(0.5, abs=0.01)


def test_a_wrong_level_is_seen():
    def row(reproduced, refuted, levels):
        return claim_errors.Row("R1", "", reproduced, refuted, levels, 1000).verdict

    assert row(0.02, 0.03, (0.025, 0.025)) == "holds"
    assert row(0.10, 0.03, (0.025, 0.025)) == "reproduced above its level"
    assert row(0.10, 0.10, (None, 0.025)) == "not reproduced above its level"
    assert row(0.10, 0.10, (math.nan, math.nan)) == "no level stated"


def test_the_command_prints_and_writes_the_same_table(tmp_path, capsys):
    claim_errors.main(["--samples", "3", "--claims", "R2", "T0", "--out", str(tmp_path / "table.md")])
    text = (tmp_path / "table.md").read_text()
    assert text == capsys.readouterr().out
    assert text.count("\n| R2") == text.count("\n| T0") == 2
    assert "R1" not in text
