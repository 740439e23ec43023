"""The numbers measured at every look during training: averages over evaluation sets, and what `evaluate.watch` measures of the weights."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from results.statistics.intervals import Floats
from results.store.tables import Store, read

_TRAINING = ("loss", "lr", "penalty", "monitor_loss")  # metrics of `curves` that every training may have


@dataclass(frozen=True)
class Series:
    """A number over the training: steps, ascending, and the value after each, both [looks]."""

    steps: Floats
    values: Floats


def averages(store: Store, winning: pa.Table) -> pa.Table:
    """The rows of `evaluations` that are means over a set, with the raw weights: key, step, set, metric, value."""
    chosen = pc.field("value").is_valid() & (pc.field("weights") == "raw") & (pc.field("stage") == 0)
    return read(store, "evaluations", ["key", "step", "set", "metric", "value"], chosen, winning=winning)


def watched(store: Store, winning: pa.Table) -> pa.Table:
    """The rows of `curves` that `evaluate.watch` has added: key, step, metric, value."""
    chosen = ~pc.field("metric").isin(list(_TRAINING)) & (pc.field("stage") == 0)
    return read(store, "curves", ["key", "step", "metric", "value"], chosen, winning=winning)


def series(
    rows: pa.Table | None,
    metrics: Collection[str] | None = None,
    of_set: str | None = None,
    keys: Collection[str] | None = None,
) -> dict[str, dict[str, Series]]:
    """Numbers over the training by key and metric. metrics, keys: the wanted ones (None: all); of_set: the set, for rows of `averages`."""
    if rows is None:
        return {}
    if keys is not None:
        rows = rows.filter(pc.field("key").isin(pa.array(sorted(keys), pa.string())))
    if metrics is not None:
        rows = rows.filter(pc.field("metric").isin(pa.array(sorted(metrics), pa.string())))
    if of_set is not None:
        rows = rows.filter(pc.field("set") == of_set)
    rows = rows.select(["key", "metric", "step", "value"]).combine_chunks()
    if not rows.num_rows:
        return {}
    # names as numbers, so that two million rows are sorted as integers
    names = {column: rows[column].combine_chunks().dictionary_encode() for column in ("key", "metric")}
    key, metric = (names[column].indices.to_numpy() for column in ("key", "metric"))
    step, value = rows["step"].to_numpy(), rows["value"].to_numpy()
    order = np.lexsort((step, metric, key))
    key, metric, step, value = key[order], metric[order], step[order], value[order]
    starts = np.flatnonzero(np.append(True, (key[1:] != key[:-1]) | (metric[1:] != metric[:-1])))
    by_key: dict[str, dict[str, Series]] = {}
    for first, last in zip(starts, np.append(starts[1:], len(key)), strict=True):
        one = Series(step[first:last].astype(np.float64), value[first:last].astype(np.float64))
        by_key.setdefault(names["key"].dictionary[key[first]].as_py(), {})[
            names["metric"].dictionary[metric[first]].as_py()
        ] = one
    return by_key


def watched_set(rows: pa.Table | None) -> str | None:
    """The set whose averages were taken at most looks; None where there is none."""
    if rows is None or not rows.num_rows:
        return None
    counted = rows.filter(pc.field("metric") == "loss").group_by("set").aggregate([("step", "count_distinct")]).to_pylist()
    return max(counted, key=lambda row: (row["step_count_distinct"], row["set"]))["set"] if counted else None
