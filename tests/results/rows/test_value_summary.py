"""The summary of experiments, from replicates and measures written out here."""

import math
from dataclasses import replace

import numpy as np
import pytest

from results.rows.measures import Measure
from results.rows.summary import Replicate, Score
from results.rows.value_summary import summarise_values, value_rows

HIGHER = Measure("result", "accuracy", "higher", True, "number")
LOWER = Measure("test", "loss", "lower", True, "number")
FLAG = Measure("result", "solved", "higher", True, "flag")


def replicate(seed, status="finished", **values):
    """values: by label; a higher-is-better one is a cost with its sign turned, as readers get it."""
    scores = {name.replace("_", " "): Score(0, 0, 0, cost, math.nan, math.nan) for name, cost in values.items()}
    return Replicate("c", 0, f"k{seed}", seed, seed, status, None, None, scores)


def line(known, measure):
    (row,) = summarise_values(known, [measure]).to_pylist()
    return row


def test_quartiles_are_those_of_the_values_whichever_way_is_better():
    values = np.random.default_rng(0).normal(size=11)
    for measure, sign in ((HIGHER, -1), (Measure("result", "accuracy", "lower", True, "number"), 1)):
        row = line([replicate(i, accuracy=sign * value) for i, value in enumerate(values)], measure)
        assert [row[name] for name in ("min", "q25", "median", "q75", "max")] == pytest.approx(
            np.quantile(values, [0, 0.25, 0.5, 0.75, 1])
        )
        ordered = np.sort(values)
        assert (row["median_low"], row["median_high"]) == (ordered[1], ordered[9])  # n = 11: ranks 2 and 10
        assert row["iqm_low"] <= row["iqm"] <= row["iqm_high"]


def test_a_diverged_replicate_is_the_worst_value_and_a_missing_one_is_counted():
    known = [replicate(0, accuracy=-0.5), replicate(1, accuracy=-0.7), replicate(2, "diverged"), replicate(3, "missing")]
    row = line(known, HIGHER)
    assert (row["planned"], row["finished"], row["diverged"], row["missing"], row["values"]) == (4, 2, 1, 1, 3)
    assert (row["min"], row["median"], row["max"]) == (-math.inf, 0.5, 0.7)
    assert (row["median_if_missing_best"], row["median_if_missing_worst"]) == (pytest.approx(0.6), -math.inf)


def test_a_flag_has_its_share_with_an_exact_interval():
    row = line([replicate(i, solved=-1.0 if i < 6 else 0.0) for i in range(25)], FLAG)
    assert (row["true"], row["true_share"]) == (6, 0.24)
    assert (row["true_low"], row["true_high"]) == pytest.approx((0.0935643, 0.4512875), abs=1e-6)


def test_the_table_of_replicates_has_values_and_not_costs():
    known = [replicate(0, **{"accuracy": -0.5, "loss_(test)": 2.0}), replicate(1, "diverged")]
    rows = value_rows(known, [HIGHER, LOWER]).to_pylist()
    assert [(row["seed"], row["status"], row["accuracy"], row["loss (test)"]) for row in rows] == [
        (0, "finished", 0.5, 2.0),
        (1, "diverged", None, None),
    ]


def test_a_metric_called_as_another_column_has_a_column_of_its_own():
    known = [replicate(0, key=-0.5)]
    (row,) = value_rows(known, [replace(HIGHER, metric="key")]).to_pylist()
    assert (row["metric.key"], row["key"]) == (0.5, known[0].key)
