"""Check what a probe returned before it is written: a list of rows, each of one number, and no two of one place."""

from typing import Any

import numpy as np
from torch import Tensor

from harness.probes.probe import Rows
from results.errors import StudyError
from results.plain_values import Row

_PLACE = ("layer", "head", "item")
_COLUMNS = (*_PLACE, "value")
_INT32 = range(-(2**31), 2**31)


def checked_rows(probe: str, returned: Any) -> Rows:
    """The rows of a probe, with values rounded to float32: precise enough, half as large, and as training rounds what it measures.

    Raises StudyError unless they are a list of mappings with exactly the columns layer, head, item and value, each value is one number, and
    each place (layer, head, item) occurs once.
    """
    if not isinstance(returned, list):
        raise StudyError(
            f"the probe {probe} returned {_described(returned)}: it must return a list of rows, each with {_listed(_COLUMNS)}"
        )
    rows = [_checked(f"row {number} of the probe {probe}", row) for number, row in enumerate(returned, 1)]
    first: dict[tuple[Any, ...], int] = {}
    for number, row in enumerate(rows, 1):
        place = tuple(row[column] for column in _PLACE)
        if first.setdefault(place, number) != number:
            shown = ", ".join(f"{column} {_shown(part)}" for column, part in zip(_PLACE, place, strict=True))
            raise StudyError(
                f"rows {first[place]} and {number} of the probe {probe} have the same place ({shown}): give each row an item of its own"
            )
    return rows


def _checked(where: str, row: Any) -> Row:
    if not isinstance(row, dict):
        raise StudyError(f"{where} is {_described(row)}: it must be a dict with {_listed(_COLUMNS)}")
    if set(row) != set(_COLUMNS):
        given = _listed(row) or "no columns"
        raise StudyError(f"{where} has {given}: it must have {_listed(_COLUMNS)}, and no other column")
    for column in ("layer", "head"):
        if not _is_index(row[column]):
            raise StudyError(
                f"{where} has {column} = {_shown(row[column])}: it must be a whole number, or None where there is no {column}"
            )
    if not isinstance(row["item"], str | None):
        raise StudyError(f"{where} has item = {_shown(row['item'])}: it must be text, or None")
    return row | {"value": _rounded(where, row["value"])}


def _is_index(value: Any) -> bool:
    return value is None or (isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) in _INT32)


def _rounded(where: str, value: Any) -> float:
    number = value.item() if isinstance(value, Tensor | np.ndarray | np.generic) and value.ndim == 0 else value
    if not isinstance(number, bool | int | float):
        raise StudyError(f"{where} has as value {_described(value)}: it must be one number")
    return float(np.float32(number))


def _described(value: Any) -> str:
    """A value in words, by its type: a tensor of shape [3]."""
    if isinstance(value, Tensor | np.ndarray) and value.ndim:
        return f"{'a tensor' if isinstance(value, Tensor) else 'an array'} of shape {list(value.shape)}"
    return "None" if value is None else f"a {type(value).__name__} ({_shown(value)})"


def _listed(columns: Any) -> str:
    return ", ".join(str(column)[:60] for column in columns)


def _shown(value: Any) -> str:
    return repr(value)[:60]
