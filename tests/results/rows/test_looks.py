"""Numbers over a training, from rows in any order."""

import pyarrow as pa

from results.rows.looks import series
from results.store.schema import SCHEMAS


def test_a_series_is_of_one_metric_and_key_by_step():
    base = {"stage": 0, "pack": "p"}
    rows = [
        base | {"key": key, "step": step, "metric": metric, "value": value}
        for key, step, metric, value in (("a", 2, "loss", 0.5), ("b", 1, "lr", 9.0), ("a", 1, "loss", 1.0), ("a", 1, "lr", 8.0))
    ]
    found = series(pa.Table.from_pylist(rows, SCHEMAS["curves"]), ("loss",))
    assert found.keys() == {"a"}
    assert found["a"].keys() == {"loss"}
    assert found["a"]["loss"].steps.tolist() == [1, 2]
    assert found["a"]["loss"].values.tolist() == [1.0, 0.5]
