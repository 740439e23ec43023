"""How far the rows of one replicate are from those of another training of it."""

import math
from typing import Any

import pyarrow as pa

from results.plain_values import Row, Value
from results.store.schema import IDENTITY_COLUMNS

# what names a row of a table within one replicate; the other columns are values
_NAMES = {
    "replicates": ("key", "stage"),
    "curves": ("step", "metric"),
    "evaluations": ("step", "weights", "set", "set_hash", "metric"),
    "profiles": ("step", "set", "set_hash", "axis", "lo", "hi"),
}
_ERRORS = ("errors", "sequences_wrong", "errors_sq", "errors_x_count")  # counts that a prediction decides
_NO_VALUE = ("key", "stage", "pack")


def disagreement(theirs: dict[str, pa.Table], ours: dict[str, pa.Table], tolerance: float) -> str:
    """What differs between two trainings of one replicate, table by table; "" where nothing does.

    tolerance: 0 asks for equal bits (NaN equals NaN). Otherwise a measured value b agrees with the committed a where
    |a - b| ≤ tolerance · max(|a|, 0.1), and an error count among n reads where |a - b| ≤ tolerance · a, or both tolerance · n / 10 and
    the square root of a (1 where a is 0), its sampling error: a tenth of a percent of many reads may be many times a rare error. What a
    row is (steps, status, strings, reads) must be equal always.
    """
    return "; ".join(differences for table in _NAMES if (differences := _table(table, theirs[table], ours[table], tolerance)))


def _table(table: str, theirs: pa.Table, ours: pa.Table, tolerance: float) -> str:
    names = _NAMES[table]
    committed, again = _rows(theirs, names), _rows(ours, names)
    columns = IDENTITY_COLUMNS if table == "replicates" else theirs.schema.names
    columns = [column for column in columns if column not in (*names, *_NO_VALUE, "condition")]  # a condition may be renamed
    missing, added = committed.keys() - again.keys(), again.keys() - committed.keys()
    differences = [f"{len(missing)} rows of {table} are not there again"] if missing else []
    differences += [f"{len(added)} rows of {table} are new"] if added else []
    worst: dict[str, tuple[float, int, Any, Any]] = {}
    for name in committed.keys() & again.keys():
        for column in columns:
            a, b = committed[name][column], again[name][column]
            far = _distance(column, a, b, committed[name], tolerance)
            if far > 0:
                before = worst.get(column, (0.0, 0, a, b))
                worst[column] = (far, before[1] + 1, a, b) if far > before[0] else (before[0], before[1] + 1, *before[2:])
    for column, (_, rows, a, b) in worst.items():
        differences.append(
            f"{table}.{column} differs in {rows} of {len(committed)} rows, most where {a!r} was committed and {b!r} came out"
        )
    return "; ".join(differences)


def _rows(table: pa.Table, names: tuple[str, ...]) -> dict[tuple, dict[str, Any]]:
    return {tuple(row[name] for name in names): row for row in table.to_pylist()}


def _distance(column: str, a: Value, b: Value, row: Row, tolerance: float) -> float:
    """0 where the two agree; else how far apart they are, infinity where that is no number."""
    if a == b or (isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b)):
        # 0.0 == -0.0 but their bits differ
        return math.ulp(0.0) if isinstance(a, float) and a == b == 0 and str(a) != str(b) and not tolerance else 0.0
    if not (isinstance(a, int | float) and isinstance(b, int | float)):
        return math.inf
    far = abs(a - b)
    if math.isnan(far):
        return math.inf
    if not tolerance:
        return float(far)
    if isinstance(a, float):
        return 0.0 if far <= tolerance * max(abs(a), 0.1) else far
    if column not in _ERRORS:
        return float(far)
    if column in ("errors_sq", "errors_x_count"):
        return 0.0  # they follow from the errors
    reads = row.get("count") or row.get("sequences") or 1
    allowed = max(tolerance * a, min(tolerance * reads / 10, math.sqrt(max(a, 1))))
    return 0.0 if far <= allowed else float(far)
