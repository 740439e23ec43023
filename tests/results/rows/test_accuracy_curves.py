"""The accuracies that were measured on the way, from rows written down by hand."""

import pyarrow as pa

from results.rows.accuracy_curves import looks, watch, watched
from results.statistics.transition import first_step
from results.store.schema import SCHEMAS

ROW = {
    "key": "a",
    "stage": 0,
    "pack": "p",
    "weights": "raw",
    "set": "on",
    "set_hash": "0",
    "metric": "read",
    "sequences": 1,
    "step": 20,
    "count": 4,
    "errors": 4,
}


def table(*rows: dict) -> pa.Table:
    return pa.Table.from_pylist([ROW | row for row in rows], SCHEMAS["evaluations"])


def test_looks_are_of_one_set_and_kind_of_weights_by_key_in_order_of_the_steps():
    found = table(
        {"step": 20, "errors": 1},
        {"step": 10, "errors": 2},
        {"step": 30, "errors": None, "count": None},  # diverged
        {"step": 10, "errors": 3, "key": "b"},
        {"weights": "ema"},
        {"set": "end", "errors": 0},
    )
    assert looks(found, "on") == {"a": [(10, 0.5), (20, 0.75)], "b": [(10, 0.25)]}


def test_accuracies_are_quotients_of_counts_so_that_they_reach_the_threshold_they_equal():
    assert 1 - 4 / 5 < 0.2
    found = looks(table({"errors": 4, "count": 5}), "on")
    assert first_step(found["a"], 0.2) == 20


def test_the_watched_set_has_most_looks_and_one_look_is_none():
    found = table(
        {"set": "on", "step": 10}, {"set": "on", "step": 20}, {"set": "end", "step": 20}, {"set": "end", "step": 20, "key": "b"}
    )
    assert watched(found) == "on"
    ended = found.filter(pa.compute.field("set") == "end")
    assert watched(ended) is None
    assert watch(found) == {"a": [(10, 0.0), (20, 0.0)]}
    assert watch(ended) == watch(None) == {}
