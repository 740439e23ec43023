"""The benchmarks of tracing in small: every method has its recall, means and verdict follow from the rows, and each part is timed."""

import pytest

from benchmarks import trace_speed
from benchmarks.planted.__main__ import measure, summary, table, verdict
from harness.tracing.flipflop.trace import Settings
from harness.tracing.search import Search


def test_the_protocol_in_small_finds_strong_causes():
    rows = measure(["offsets", "either", "literal"], [0.5], [0], [0])
    assert all(row["recall"] == 1 for row in rows if row["method"] == "trace")
    flipflop = {row["method"] for row in rows if row["family"] == "offsets"}
    assert flipflop == {"trace", "random", "last write", "leave one out", "lime"}
    (chance,) = [row["recall"] for row in rows if (row["family"], row["method"]) == ("offsets", "random")]
    assert chance == pytest.approx(2 / 63)
    summed = summary(rows, resamples=99)
    assert verdict(summed).endswith("held in 3 of 3 cells.")
    assert all(family in table(summed) for family in ("offsets", "either", "literal"))


def test_means_intervals_and_the_verdict_are_of_the_rows():
    rows = [
        {"family": "x", "effect": 0.8, "number": number, "seed": seed, "method": "trace", "recall": float(number)}
        for number in (0, 1)
        for seed in (0, 1)
    ]
    (one,) = summary(rows, resamples=999)
    assert (one["recall"], one["low"], one["high"]) == (0.5, 0.0, 1.0)
    assert verdict([one]) == "Recall of at least 95% from an effect of 0.5: held in 0 of 1 cells; missed: x at 0.8 (0.500)."
    assert verdict([one | {"effect": 0.2}]).endswith("held in 0 of 0 cells.")


def test_every_part_of_a_trace_is_timed():
    rows = trace_speed.measure(1, 8, 2, 32, Settings(strings=64, search=Search(size=2)), baselines=True, replays=8)
    parts = [row["part"] for row in rows]
    assert parts[:4] == ["corpus", "answers", "search", "S_rep"]
    assert {"random", "lime", "attention"} <= set(parts)
    assert all(row["wall"] > 0 for row in rows)
