"""The grid of the coverage simulation, with few samples: exact intervals hold, and nothing is far from what it should be."""

import pytest

from benchmarks import coverage


@pytest.fixture(scope="module")
def rows():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coverage, "QUICK", 8)
        return coverage.measure(20)


@pytest.mark.slow
def test_exact_intervals_hold_and_the_others_are_near_their_level(rows):
    assert {row.target for row in rows} == set(coverage.TARGETS)
    assert len(rows) > 60
    for row in rows:
        assert row.samples > 0, row
        if row.target == "exact":
            assert row.verdict == "holds", row
        if row.target == "approximate":
            assert row.measured + 4 * row.error > 0.9, row
        if row.target == "nominal":
            assert row.measured + 4 * row.error > 0.95, row
        if row.target == "level":
            assert row.measured - 4 * row.error < 0.05, row
    assert (
        min(row.measured for row in rows if row.target == "not covered") < 0.5
    )  # what docs/explanation/statistics.md warns of


@pytest.mark.slow
def test_the_command_prints_and_writes_the_same_table(rows, tmp_path, monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(coverage, "measure", lambda times: asked.append(times) or rows)
    coverage.main(["--quick", "--out", str(tmp_path / "coverage.md")])
    text = (tmp_path / "coverage.md").read_text()
    assert text == capsys.readouterr().out
    assert asked == [coverage.QUICK]
    assert text.count("\n| ") == len(rows) + 1


def test_a_row_that_misses_says_so():
    def verdict(target, measured, computed=None):
        return coverage.Row("", "", target, measured, 10_000, computed).verdict

    assert verdict("exact", 0.96) == "holds"
    assert verdict("exact", 0.93) == "below 95 %"
    assert verdict("exact", 0.97, 0.99) == "differs from the computed one"
    assert [verdict("approximate", share) for share in (0.92, 0.95, 0.98)] == ["below 93 %", "holds", "above 97 %"]
    assert [verdict("level", share) for share in (0.05, 0.07)] == ["holds", "above 5 %"]


def test_the_families_have_the_quantiles_that_they_say():
    family = coverage.DIVERGING
    assert family.ppf(0.3) == 0
    assert family.ppf(0.95) == float("inf")
    x = family.ppf(0.7)
    assert abs(family.above(x) - 0.3) < 1e-12
    assert family.above(family.ppf(0.3)) == 0.6
