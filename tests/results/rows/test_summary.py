import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from results.rows.summary import (
    Replicate,
    raw_rows,
    replicates_of,
    reported_sets,
    summarise,
    to_csv,
    to_parquet,
)
from results.statistics.intervals import clopper_pearson
from results.store.schema import SCHEMAS
from tests.results.synthetic import SETS, digest, failure, manifest, tables


def merged(plan: dict[str, Any], ended: int | None = None) -> dict[str, pa.Table]:
    packs = tables(plan, ended).values()
    return {name: pa.concat_tables(pack[name] for pack in packs) for name in ("replicates", "evaluations")}


def known(
    plan: dict[str, Any], ended: int | None = None, failures: pa.Table | None = None, **changed: pa.Table
) -> list[Replicate]:
    rows = merged(plan, ended) | changed
    return replicates_of(plan, rows["replicates"], rows["evaluations"], failures or SCHEMAS["failures"].empty_table())


def line(summary: pa.Table, condition: str, name: str) -> dict[str, Any]:
    return next(row for row in summary.to_pylist() if (row["condition"], row["set"]) == (condition, name))


def test_quantiles_are_those_of_the_rows_with_the_diverged_replicate_worst() -> None:
    plan = manifest(8)
    rows = merged(plan)["evaluations"].to_pylist()
    row = line(summarise(plan, known(plan)), "transformer", "sparse")
    mine = {key for key, condition, *_ in plan["replicates"] if condition == 0}
    rates = sorted(
        r["errors"] / r["count"]
        for r in rows
        if r["key"] in mine and r["set"] == "sparse" and r["metric"] == "read" and r["errors"] is not None
    )
    assert len(rates) == 7
    assert row["error_min"] == 0
    assert row["error_median"] == pytest.approx((rates[3] + rates[4]) / 2)
    assert row["error_max"] == np.inf
    assert row["reads"] == SETS["sparse"]["reads"]


def test_a_diverged_replicate_is_never_without_error_and_counts_among_those_with_a_number() -> None:
    plan = manifest(8)
    row = line(summarise(plan, known(plan)), "transformer", "sparse")
    counts = {name: row[name] for name in ("planned", "finished", "diverged", "failed", "missing")}
    assert counts == {"planned": 8, "finished": 7, "diverged": 1, "failed": 0, "missing": 0}
    assert (row["zero_error"], row["zero_error_of"]) == (2, 8)
    assert (row["zero_error_low"], row["zero_error_high"]) == pytest.approx((0.0319, 0.6509), abs=1e-4)


def test_a_condition_without_any_error_has_zero_everywhere() -> None:
    plan = manifest(8)
    row = line(summarise(plan, known(plan)), "lstm", "dense")
    assert [row[f"error_{name}"] for name in ("min", "q25", "median", "q75", "max")] == [0] * 5
    assert (row["zero_error"], row["jointly_zero"], row["jointly_zero_of"]) == (8, 8, 8)
    assert row["zero_rate_bound"] == pytest.approx(3 / SETS["dense"]["reads"], rel=0.01)


def test_missing_and_failed_replicates_are_counted_and_bound_the_numbers() -> None:
    plan = manifest(10)
    lost = plan["replicates"][9][0]
    failures = pa.Table.from_pylist([failure(lost), failure(plan["replicates"][0][0])], schema=SCHEMAS["failures"])
    row = line(summarise(plan, known(plan, 4, failures)), "transformer", "sparse")
    assert (row["finished"], row["failed"], row["missing"]) == (4, 1, 5)  # the first one failed once, and was trained later
    assert (row["zero_error"], row["zero_error_of"]) == (1, 4)
    assert (row["zero_error_least"], row["zero_error_most"]) == (1, 7)
    assert row["median_if_missing_zero"] == 0
    assert row["median_if_missing_diverge"] == np.inf


def test_only_the_last_step_of_an_online_set_counts() -> None:
    plan = manifest(4)
    row = line(summarise(plan, known(plan)), "lstm", "sparse_online")
    assert row["error_max"] == 0  # it made errors at step 100


def test_a_set_of_another_definition_is_no_score_of_this_one() -> None:
    plan = manifest(4)
    for condition in plan["conditions"]:
        condition["sets"]["dense"]["hash"] = digest("another")
    summary = summarise(plan, known(plan))
    row = line(summary, "lstm", "dense")
    assert (row["finished"], row["missing"], row["zero_error_of"], row["error_median"]) == (0, 4, 0, None)
    assert line(summary, "lstm", "sparse")["finished"] == 4
    assert line(summary, "lstm", "sparse")["jointly_zero_of"] == 0


def test_rows_of_replicates_that_are_not_planned_are_left_out() -> None:
    more, fewer = manifest(8), manifest(3)
    row = line(summarise(fewer, known(fewer, **merged(more))), "lstm", "sparse")
    assert (row["planned"], row["finished"]) == (3, 3)


def test_jointly_zero_needs_every_reported_set() -> None:
    plan = manifest(6)
    rows = merged(plan)["evaluations"].to_pylist()
    first = plan["replicates"][6][0]
    for row in rows:
        if row["key"] == first and row["set"] == "dense":
            row |= {"errors": 1, "errors_sq": 1, "errors_x_count": 9}
    changed = pa.Table.from_pylist(rows, schema=SCHEMAS["evaluations"])
    row = line(summarise(plan, known(plan, evaluations=changed)), "lstm", "sparse")
    assert (row["zero_error"], row["jointly_zero"], row["jointly_zero_of"]) == (6, 5, 6)


def test_sets_scored_on_the_way_are_reported_only_where_there_are_no_others() -> None:
    plan = manifest(2)
    assert reported_sets(plan) == ["sparse", "dense"]
    plan["sets"] = {"sparse_online": plan["sets"]["sparse_online"]}
    assert reported_sets(plan) == ["sparse_online"]


def test_a_replicates_interval_holds_its_rate() -> None:
    plan = manifest(8)
    scores = [score for replicate in known(plan) for score in replicate.scores.values()]
    assert scores
    assert all(score.low <= score.rate <= score.high for score in scores)
    assert any(score.low > 0 for score in scores)


def test_raw_rows_keep_the_counts_of_every_replicate() -> None:
    plan = manifest(8)
    rows = raw_rows(plan, known(plan, 8)).to_pylist()
    assert [(row["init_seed"], row["data_seed"]) for row in rows] == [(seed, seed) for _ in range(2) for seed in range(8)]
    diverged = rows[7]
    assert (diverged["status"], diverged["diverged_at"], diverged["sparse.errors"]) == ("diverged", 321, None)
    assert diverged["sparse.error"] == np.inf
    assert rows[0]["sparse.error"] == rows[0]["sparse.errors"] / rows[0]["sparse.reads"] > 0
    wrong = clopper_pearson(rows[0]["sparse.sequences_wrong"], rows[0]["sparse.sequences"])
    assert 0 < rows[0]["sparse.sequences_wrong"] <= rows[0]["sparse.errors"]
    assert (rows[0]["sparse.wrong_low"], rows[0]["sparse.wrong_high"]) == pytest.approx((wrong.low, wrong.high))
    assert diverged["sparse.wrong_low"] is None


def test_wrong_sequences_that_some_rows_do_not_count_have_no_interval() -> None:
    plan = manifest(8)
    rows = merged(plan)["evaluations"]
    at = rows.schema.get_field_index("sequences_wrong")
    unknown = rows.set_column(at, "sequences_wrong", pa.nulls(rows.num_rows, pa.int64()))
    scores = known(plan, evaluations=unknown)[0].scores["sparse"]
    assert (scores.sequences_wrong, scores.wrong) == (None, None)


def test_csv_and_parquet_hold_the_same_table() -> None:
    plan = manifest(8)
    summary = summarise(plan, known(plan))
    assert pyarrow.parquet.read_table(io.BytesIO(to_parquet(summary))).equals(summary)
    read = pyarrow.csv.read_csv(io.BytesIO(to_csv(summary)))
    assert read.column_names == summary.column_names
    assert read["error_median"].to_pylist() == summary["error_median"].to_pylist()
    assert read["error_max"].to_pylist() == summary["error_max"].to_pylist()
