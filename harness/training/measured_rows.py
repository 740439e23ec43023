"""Numbers that a pack has many of at every look, as columns: one record per look, and the rows of a table from all of them at the end.

Kept row by row as dictionaries they would fill the memory: a thousand looks of 64 replicates with 30 numbers each are two million rows.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from torch import Tensor

from harness.planning.pack import Pack
from results.grouping import grouped
from results.store.schema import SCHEMAS

# step, names [M], values [M][R] (None where a replicate has no such number) and what they are of; plain data, as checkpoints hold it
Record = dict[str, Any]


def rounded(values: Mapping[str, Tensor]) -> list[list[float]]:
    """The numbers [R] of each name as they are stored: rounded to float32, which is precise enough and half as large."""
    return [numbers.detach().to("cpu").float().tolist() for numbers in values.values()]


def average_rows(pack: Pack, records: Sequence[Record], diverged_at: Sequence[int]) -> pa.Table:
    """Rows of `evaluations`, a metric a name; null where a replicate had diverged."""
    tables = [SCHEMAS["evaluations"].empty_table()]
    for (weights, number, names), looks in _alike(records, ("weights", "set")).items():
        own = pack.sets[number]
        fixed = {"stage": pack.stage, "pack": pack.id, "weights": weights, "set": own[0].name, "sequences": own[0].sequences}
        varying = {"set_hash": [one.hash for one in own], "length": [one.task.length for one in own]}
        tables.append(_rows("evaluations", "metric", names, looks, pack, fixed, varying, diverged_at))
    return pa.concat_tables(tables)


def watched_rows(pack: Pack, records: Sequence[Record]) -> pa.Table:
    """Rows of `curves`, a metric a name."""
    tables = [SCHEMAS["curves"].empty_table()]
    for (names,), looks in _alike(records, ()).items():
        tables.append(_rows("curves", "metric", names, looks, pack, {"stage": pack.stage, "pack": pack.id}, {}, None))
    return pa.concat_tables(tables)


def _alike(records: Sequence[Record], by: tuple[str, ...]) -> dict[tuple, list[Record]]:
    """The records with the same names and the same values of `by`."""
    return grouped(((*(record[name] for name in by), tuple(record["names"])), record) for record in records)


def _rows(
    table: str,
    column: str,
    names: Sequence[str],
    looks: Sequence[Record],
    pack: Pack,
    fixed: Mapping[str, Any],
    varying: Mapping[str, Sequence[Any]],
    diverged_at: Sequence[int] | None,
) -> pa.Table:
    """The rows of a table from looks with the same names. fixed: columns with one value; varying: columns with one a replicate."""
    replicates = len(pack.replicates)
    shape = (len(looks), len(names), replicates)
    look, name, slot = (part.ravel() for part in np.indices(shape, dtype=np.int32))
    steps = np.array([record["step"] for record in looks], dtype=np.int64)[look]
    measured = [record["values"] for record in looks]
    values = np.array(measured, dtype=np.float64).reshape(-1)
    hidden = np.zeros(values.size, dtype=bool)
    if diverged_at is not None:
        at = np.array(diverged_at, dtype=np.int64)[slot]
        hidden = (at >= 0) & (steps >= at)
    columns: dict[str, Any] = {
        "step": pa.array(steps),
        "value": pa.array(values, mask=hidden),
        column: pa.array(names, pa.string()).take(pa.array(name)),
    }
    per_slot = {"key": [replicate.key for replicate in pack.replicates]} | dict(varying)
    schema = SCHEMAS[table]
    for field in schema:
        if field.name in per_slot:
            columns[field.name] = pa.array(per_slot[field.name], field.type).take(pa.array(slot))
        elif field.name not in columns:
            columns[field.name] = pa.repeat(pa.scalar(fixed.get(field.name), field.type), values.size)
    rows = pa.table({field.name: columns[field.name] for field in schema}, schema=schema)
    if not np.isnan(values).any():
        return rows
    return rows.filter(pa.array([value is not None for value in np.array(measured, dtype=object).reshape(-1)]))
