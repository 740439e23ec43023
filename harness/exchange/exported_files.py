"""Files of runs that somebody has exported, CSV, TSV, Parquet or JSON lines, as a table."""

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from results.errors import StudyError
from results.store.filesystem import reason
from results.store.manifest import without_twins

MOST_ROWS = 5_000_000
MOST_VALUES = 200_000_000  # of a Parquet file: a few bytes of it can stand for as many equal ones
# Arrow takes both for a missing value by default. It reads the first as a float, and can't read the second.
_NAN = ("nan", "NaN", "-nan", "-NaN")
_NAN_OF_WINDOWS = ("1.#QNAN", "-1.#QNAN", "1.#IND", "-1.#IND")
_READERS = {".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".jsonl": "json", ".ndjson": "json"}


def read_table(path: Path) -> pa.Table:
    """The rows of a CSV, TSV, Parquet or JSON-lines file."""
    if not path.exists():
        raise StudyError(f"there is no file or folder {path}: name the file that holds the runs, or the folder")
    kind = _READERS.get(path.suffix)
    if kind is None:
        raise StudyError(
            f"{path} ends in {path.suffix or 'nothing'}, and {', '.join(_READERS)} can be imported: export it as CSV"
        )
    if not path.is_file():
        raise StudyError(f"{path} is not a file: name the file that holds the runs")
    try:
        if kind == "parquet":
            table = _parquet(path)
        elif kind == "json":
            table = _json_lines(path)
        else:
            table = _csv(path)
        names = table.column_names
        table.validate(full=True)
    except UnicodeError as error:
        raise StudyError(f"{path} is not UTF-8 text ({error}): save it as UTF-8") from error
    except (OSError, pa.ArrowException) as error:
        raise StudyError(f"{path} can't be read: {reason(error)[:300]}") from error
    if len(set(names)) < len(names):
        raise StudyError(f"{path} has two columns of the same name: rename one")
    if not 0 < table.num_rows <= MOST_ROWS:
        raise StudyError(f"{path} has {table.num_rows:,} rows, and 1 to {MOST_ROWS:,} can be imported")
    return table


def _csv(path: Path) -> pa.Table:
    """The table of a CSV or TSV file, in which nan is a number that is not finite: Arrow's defaults make it a missing value.

    Spaces around names and words are left out, and so is a first column of whole numbers without a name: pandas' index.
    """
    parse = pa.csv.ParseOptions(delimiter="\t" if path.suffix == ".tsv" else ",", newlines_in_values=True)
    missing = [word for word in pa.csv.ConvertOptions().null_values if word not in (*_NAN, *_NAN_OF_WINDOWS)]
    table = pa.csv.read_csv(path, parse_options=parse, convert_options=pa.csv.ConvertOptions(null_values=missing))
    table = table.rename_columns([name.strip() for name in table.column_names])
    if not table.column_names[0] and pa.types.is_integer(table.column(0).type):
        table = table.remove_column(0)
    for index, name in enumerate(table.column_names):
        if pa.types.is_string(table.column(index).type):
            words = pc.utf8_trim_whitespace(table.column(index))
            table = table.set_column(index, name, _with_windows_nan(words, missing))
    return table


def _with_windows_nan(texts: pa.ChunkedArray, missing: Sequence[str]) -> pa.ChunkedArray:
    """A column of texts as floats where its only words are Windows' spellings of nan, else as it is. missing: those of null."""
    is_nan = pc.is_in(texts, pa.array(_NAN_OF_WINDOWS))
    if not pc.any(is_nan).as_py():
        return texts
    is_missing = pc.is_in(texts, pa.array(missing))
    try:
        return pc.if_else(is_missing, None, pc.if_else(is_nan, "nan", texts)).cast(pa.float64())
    except pa.ArrowInvalid:
        return texts


def _parquet(path: Path) -> pa.Table:
    """The flat columns of a Parquet file, texts as indices of the different ones; nested columns are not read and stand as nulls."""
    with pa.parquet.ParquetFile(path) as file:
        schema, rows, leaves = file.schema_arrow, file.metadata.num_rows, file.metadata.num_columns
    if rows > MOST_ROWS or rows * leaves > MOST_VALUES:
        raise StudyError(
            f"{path} has {rows:,} rows of {leaves:,} columns, and at most {MOST_ROWS:,} rows and {MOST_VALUES:,} values can be imported: "
            "leave out what does not matter"
        )
    flat = [column.name for column in schema if not pa.types.is_nested(column.type)]
    table = pa.parquet.read_table(path, columns=flat, read_dictionary=flat)
    columns = [table[column.name] if column.name in flat else pa.nulls(rows, column.type) for column in schema]
    return pa.table(columns, schema.names)


def _json_lines(path: Path) -> pa.Table:
    rows = []
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                row = json.loads(line, object_pairs_hook=without_twins) if line.strip() else {}
            except (ValueError, RecursionError) as error:
                raise StudyError(
                    f"line {number} of {path} is not JSON ({reason(error)[:200]}): write one object per line"
                ) from error
            if not isinstance(row, dict):
                raise StudyError(f'line {number} of {path} is not an object: write one per line, such as {{"seed": 1}}')
            rows += [row] * bool(row)
    columns = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        try:
            columns[name] = pa.array([row.get(name) for row in rows])
        except (pa.ArrowException, OverflowError) as error:
            raise StudyError(f"{path}: {name!r} mixes kinds of values ({reason(error)[:200]}): use one kind") from error
    return pa.table(columns)
