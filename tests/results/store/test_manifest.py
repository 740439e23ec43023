"""Which rows a report counts: a task's own metric, as the manifest has it."""

import pyarrow as pa
import pytest

from results.errors import StoreError
from results.store.manifest import reductions_of, reported, reported_rows, scoring_of
from results.store.schema import SCHEMAS

ROW = {"key": "k", "stage": 0, "pack": "p", "step": 1, "weights": "raw", "set": "s"}


def condition(name, set_hash, *metrics, direction="lower"):
    scoring = {"metrics": list(metrics), "direction": direction, "error": f"a wrong {metrics[0]}", "tokens": 4, "outputs": 2}
    return {"name": name, "sets": {"s": {"hash": set_hash}}, "scoring": scoring}


def kept(conditions, *rows):
    table = pa.Table.from_pylist([ROW | {"metric": m, "set_hash": h} for m, h in rows], schema=SCHEMAS["evaluations"])
    selected = table.filter(reported({"conditions": conditions}))
    assert reported_rows({"conditions": conditions}, table).equals(selected)
    return [(row["metric"], row["set_hash"]) for row in selected.to_pylist()]


def test_where_all_rows_are_reported_they_are_not_copied():
    plan = {"conditions": [condition("a", "h", "position")]}
    rows = pa.Table.from_pylist([ROW | {"metric": "position", "set_hash": h} for h in ("h", "other")], SCHEMAS["evaluations"])
    assert reported_rows(plan, rows) is rows
    assert reported_rows(plan | {"conditions": [condition("a", "h", "read")]}, rows).num_rows == 0


def test_rows_of_the_first_metric_are_reported_whatever_it_is_called():
    assert kept([condition("a", "h", "position", "string")], ("position", "h"), ("string", "h"), ("read", "h")) == [
        ("position", "h")
    ]


def test_each_condition_of_a_study_reports_its_own_metric():
    mixed = [condition("a", "one", "clause", "read"), condition("b", "two", "read", "clause")]
    rows = [(metric, set_hash) for metric in ("read", "clause") for set_hash in ("one", "two")]
    assert kept(mixed, *rows) == [("read", "two"), ("clause", "one")]


def test_a_manifest_from_before_tasks_declared_their_metrics_reports_reads():
    old = {"name": "a", "config": {"task": {"name": "automaton"}}, "sets": {}}
    assert kept([old], ("read", "h"), ("other", "h")) == [("read", "h")]
    assert scoring_of(old).error is None  # the report asks the family of the task


def test_numbers_of_which_larger_ones_are_better_are_refused():
    with pytest.raises(StoreError, match="upgrade"):
        scoring_of(condition("a", "h", "accuracy", direction="higher"))


@pytest.mark.parametrize(
    ("line", "typed", "told"),
    [
        ("replicates: 20 -> 10", "replicates=20", None),  # as many as in the study as written
        ("replicates: 25 -> 10", "replicates=30", "replicates: 25 -> 30"),
        ("train.steps: 20000 -> 6000", "train.steps=6000", "train.steps: 20000 -> 6000"),
        ("grid.model.layers: [1, 2, 3] -> [1, 2]", "grid.model.layers=[1,2]", "grid.model.layers: [1, 2, 3] -> [1, 2]"),
        ("model.width: 512 -> 32", "model.layers=2", "model.width: 512 -> 32"),
        ("replicates: 500 -> 30 of the baseline", "replicates=60", "replicates: 500 -> 30 of the baseline"),
        ("model.width: 512 -> 32 (a), 128 -> 64 (b)", "model.width=16", "model.width: 512 -> 32 (a), 128 -> 64 (b)"),
    ],
)
def test_what_the_command_line_set_is_not_told_as_the_scale_has_it(line, typed, told):
    manifest = {"reductions": [line, "train.batch: 16 -> 8"], "overrides": ["wandb=off", typed]}
    assert reductions_of(manifest) == [*([] if told is None else [told]), "train.batch: 16 -> 8"]
