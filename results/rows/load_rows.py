"""`results.load`: the rows of a study that count, as an Arrow table, for notebooks and scripts."""

import functools
import importlib
import json
import operator
import os
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from results.errors import StudyError, nearest
from results.plain_values import Options
from results.rows.options import flatten
from results.rows.plural import counted
from results.store.filesystem import public
from results.store.json_columns import entries
from results.store.manifest import as_planned, newest_manifest, planned_rows
from results.store.schema import SCHEMAS, TABLES
from results.store.tables import ROW, Store, no_study, open_store, read, studies


@dataclass(frozen=True, repr=False)
class LoadedRows:
    """An Arrow table that pandas, Polars and DuckDB read directly. `arrow` is the `pyarrow.Table`, whose members it has too."""

    arrow: pa.Table

    def to_pandas(self, **options: Any) -> Any:
        """A pandas DataFrame. Counts of diverged replicates are null, which turns their column into floats.

        options: those of `pyarrow.Table.to_pandas`, such as types_mapper=pandas.ArrowDtype, which keeps whole numbers.
        """
        _needed("pandas")
        return self.arrow.to_pandas(**options)

    def to_polars(self) -> Any:
        """A Polars DataFrame."""
        return _needed("polars").from_arrow(self.arrow)

    def to_duckdb(self, connection: Any = None) -> Any:
        """A DuckDB relation, on DuckDB's default connection or on this one: rows.to_duckdb().query("rows", "SELECT … FROM rows")."""
        duckdb = _needed("duckdb")
        return duckdb.from_arrow(self.arrow) if connection is None else connection.from_arrow(self.arrow)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.arrow.__arrow_c_stream__(requested_schema)

    def __getattr__(self, name: str) -> Any:
        if name == "arrow" or name.startswith("__"):  # not there yet while a copy is made
            raise AttributeError(name)
        return getattr(self.arrow, name)

    def __getitem__(self, item: Any) -> Any:
        return self.arrow[item]

    def __len__(self) -> int:
        return self.arrow.num_rows

    def __repr__(self) -> str:
        return f"{self.arrow.num_rows:,} rows\n{self.arrow!r}"


def load(
    store: str | os.PathLike[str],
    study: str | None = None,
    table: str = "evaluations",
    *,
    columns: str | Sequence[str] | None = None,
    filters: pc.Expression | Sequence[Any] | None = None,
    config: bool | str | Sequence[str] = False,
    planned: bool = True,
    **conditions: Any,
) -> LoadedRows:
    """The rows of one table of a study that count: those of committed replicates that its newest plan has, each replicate once.

        rows = results.load("runs", "fflm-quick", "evaluations", set="sparse", condition=["transformer", "lstm"])
        frame = rows.to_pandas()

    store: a path or URI. study: may be left out where the store has one. table: one of `results.store.schema.TABLES`.
    columns: of the table, and of `replicates` too (such as condition, init_seed, status), in the order wanted.
    conditions: COLUMN=value, COLUMN=[values] or COLUMN=None (for null), of the table or of `replicates`. A range or an array stands for
    its values.
    planned: False adds the replicates that the newest plan lacks, such as those of a setting that was changed since. While they are left
    out, a UserWarning says how many of the replicates asked for they are. `failures` has the rows of all packs either way.
    A condition that was renamed has its name in the newest plan; rows that this plan lacks keep their names.
    filters: for other comparisons on columns of the table: a pyarrow expression, or tuples as in `pandas.read_parquet`,
    such as [("step", ">=", 1000)].
    config: True adds every setting of the replicate as a column (`train.lr`, `model.layers`, …), defaults included; a list adds those,
    null where a replicate lacks one.
    Rows and files that conditions and filters leave out are not read where the format allows it.

    A UserWarning names each value of `set`, `condition` or `metric` that no row has, such as a mistyped one.

    Raises StudyError or StoreError with one sentence.
    """
    own, beside, wanted = _columns(table, columns, conditions)
    if table == "failures" and config:
        raise StudyError("a row of failures is of a pack, which has no settings of its own: leave config out")
    opened = open_store(store, chosen_study(os.fspath(store), study, "load", f", {table!r}"))
    filter = _expression(table, filters, {name: value for name, value in conditions.items() if name in own})
    about = {name: value for name, value in conditions.items() if name not in own}
    needed = [name for name in wanted if name in own]
    joined = [name for name in wanted if name not in own]
    if table == "replicates":
        by_name = "condition" in wanted or "condition" in str(filter)  # a condition's name is that of the newest plan
        kept = list(dict.fromkeys([*wanted, "config"])) if config else wanted
        rows = read(opened, table) if by_name else read(opened, table, list(dict.fromkeys([*kept, "key"])), filter)
        if by_name:
            rows = as_planned(opened, rows)
            rows = rows if filter is None else rows.filter(filter)
        rows = _counting(opened, rows, planned)
        configs = rows["config"] if config else None
    elif joined or about or config:
        used = [name for name in beside if name in joined or name in about or (config and name == "config")]
        replicates = read(opened, "replicates", [*ROW, *used])
        if "condition" in used:
            replicates = as_planned(opened, replicates)
        if about:
            replicates = replicates.filter(_expression("replicates", None, about))
        replicates = _counting(opened, replicates, planned)
        packs = set(replicates["pack"].unique().to_pylist()) if about else None  # no other file is opened
        rows = read(opened, table, [*needed, *(name for name in ROW if name not in needed)], filter, replicates, packs)
        rows, configs = _with_columns(rows, replicates, joined, bool(config))
    else:
        winning = None if table == "failures" else _counting(opened, read(opened, "replicates", ROW), planned)
        rows, configs = read(opened, table, needed, filter, winning), None
    _warn_of_unknown_values(opened, table, conditions, found=rows.num_rows > 0)
    rows = rows.select(wanted)
    return LoadedRows(rows if configs is None else _with_settings(opened, rows, configs, config))


def _columns(
    table: str, columns: str | Sequence[str] | None, conditions: Iterable[str]
) -> tuple[list[str], list[str], list[str]]:
    """The columns of a table, those that `replicates` has beside them, and those that are wanted. StudyError for an unknown one."""
    if table not in SCHEMAS:
        raise StudyError(f"there is no table {table!r}; tables: {', '.join(TABLES)}{nearest(table, TABLES)}")
    own = SCHEMAS[table].names
    beside = [] if table == "failures" else [name for name in SCHEMAS["replicates"].names if name not in own]
    wanted = own if columns is None else [columns] if isinstance(columns, str) else list(dict.fromkeys(columns))
    for name in (*wanted, *conditions):
        if name not in own and name not in beside:
            where, known = f"{table} and replicates" if beside else table, [*own, *beside]
            raise StudyError(f"there is no column {name!r} in {where}; columns: {', '.join(known)}{nearest(name, known)}")
    return own, beside, wanted


def _counting(store: Store, replicates: pa.Table, planned: bool) -> pa.Table:
    """The rows of `replicates` that the newest plan has, or all. Warns the caller of `load` where some are left out."""
    newest = newest_manifest(store) if planned else None
    if newest is None:
        return replicates
    own = planned_rows(newest[1], replicates)
    if more := replicates.num_rows - own.num_rows:
        are, them = ("is", "it") if more == 1 else ("are", "them")
        warnings.warn(
            f"{counted(more, 'replicate')} of {store.study} {are} not in its newest plan, as after a change of a setting, and left out: "
            f"planned=False loads {them} too",
            stacklevel=3,
        )
    return own


def _warn_of_unknown_values(store: Store, table: str, conditions: Options, found: bool) -> None:
    """Warn the caller of `load` of each name that neither the newest plan nor any row of the study has.

    found: whether any row fits; then a name that stands alone has rows, and only lists are looked through.
    """
    newest = newest_manifest(store)
    for column in (name for name in ("set", "condition", "metric") if name in conditions):
        value, source = conditions[column], table if column in SCHEMAS[table].names else "replicates"
        wanted = [value] if isinstance(value, str) else list(value) if isinstance(value, Iterable) else []
        known = dict.fromkeys(_planned_names(newest[1], column) if newest else ())
        if (found and len(wanted) < 2) or known.keys() >= set(wanted):
            continue
        known |= dict.fromkeys(read(store, source, [column])[column].unique().to_pylist())
        for name in wanted:
            if known and name not in known:
                listed = ", ".join(str(other) for other in known if other is not None)
                warnings.warn(
                    f"{store.study} has no rows with {column}={name!r}; values of {column}: {listed}{nearest(name, map(str, known))}",
                    stacklevel=3,
                )


def _planned_names(manifest: Options, column: str) -> list[str]:
    """The names that a plan has in a column: its evaluation sets, its conditions, or none."""
    if column == "condition":
        return [condition["name"] for condition in manifest["conditions"]]
    return list(manifest["sets"]) if column == "set" else []


def _expression(table: str, filters: pc.Expression | Sequence[Any] | None, conditions: Options) -> pc.Expression | None:
    """Join filters and conditions into one expression; None where there are none."""
    parts = []
    if filters is not None:
        try:
            parts.append(filters if isinstance(filters, pc.Expression) else pa.parquet.filters_to_expression(filters))
        except (TypeError, ValueError) as error:
            raise StudyError(
                f"filters={filters!r} can't be read ({error}): write a pyarrow expression, or tuples such as [('step', '>=', 1000)]"
            ) from error
    for name, value in conditions.items():
        kind = SCHEMAS[table].field(name).type
        several = isinstance(value, Iterable) and not isinstance(value, str)  # an array or a range as well as a list
        try:
            if value is None:
                parts.append(pc.field(name).is_null())
                continue
            values = list(value) if several else [value]
            array = pa.array(values, kind)
            if pa.types.is_integer(kind) and array.to_pylist() != values:
                raise ValueError("pyarrow has cut a fraction off")
        except (pa.ArrowException, TypeError, ValueError) as error:
            shown = " ".join(repr(value).split())  # that of a pandas Series has several lines
            raise StudyError(f"{name}={shown} can't be compared with the column {name}, which holds {kind}") from error
        parts.append(pc.field(name).isin(array) if several else pc.field(name) == array[0])
    if not parts:
        return None
    whole = functools.reduce(operator.and_, parts)
    try:
        SCHEMAS[table].empty_table().filter(whole)
    except pa.ArrowException as error:
        raise StudyError(_misfit(table, str(error))) from error
    return whole


def _misfit(table: str, problem: str) -> str:
    """Why filters do not fit a table, from what pyarrow says of them."""
    columns, unknown = SCHEMAS[table].names, re.match(r"No match for FieldRef\.Name\((.*?)\) in ", problem)
    if unknown is None:
        return (
            f"the filters do not fit the table {table} ({' '.join(problem.split())[:200]}); its columns: {', '.join(columns)}"
        )
    name = unknown[1]
    if name in SCHEMAS["replicates"].names and table != "failures":
        return (
            f"filters compare columns of {table}, and {name} is a column of replicates: write {name}=VALUE or {name}=[VALUES] "
            "beside the filters"
        )
    return f"the filters name a column {name!r} that {table} lacks; its columns: {', '.join(columns)}{nearest(name, columns)}"


def _with_columns(
    rows: pa.Table, replicates: pa.Table, columns: Sequence[str], with_config: bool
) -> tuple[pa.Table, pa.ChunkedArray | None]:
    """Append columns of `replicates`, each row's own; beside these, each row's configuration as JSON where it is asked for."""
    of_rows = replicates.take(_places(rows, replicates))
    for name in columns:
        rows = rows.append_column(SCHEMAS["replicates"].field(name), of_rows[name])
    return rows, of_rows["config"] if with_config else None


def _places(rows: pa.Table, replicates: pa.Table) -> pa.Array:
    """For each row, the row of `replicates` that it belongs to. (pyarrow can't join tables that hold list columns.)"""
    left = rows.select(ROW).append_column("row", pa.array(np.arange(rows.num_rows)))
    right = replicates.select(ROW).append_column("place", pa.array(np.arange(replicates.num_rows)))
    both = left.join(right, keys=ROW, join_type="inner")
    return both["place"].take(pc.sort_indices(both["row"]))


def _with_settings(store: Store, rows: pa.Table, configs: pa.ChunkedArray, config: bool | str | Sequence[str]) -> pa.Table:
    """Append the settings that are asked for as columns, by dotted name. configs: the configuration of each row, as JSON."""
    encoded = configs.combine_chunks().dictionary_encode()
    complete, settings = _settings(store), []
    for text in encoded.dictionary.to_pylist():
        changed = entries(text)
        code = {"code": changed["code"]} if "code" in changed else {}  # of a person's own, which is no setting
        settings.append({**(complete.get(_spelled(changed)) or flatten(_as_in_a_study(changed))), **code})
    names = list(dict.fromkeys(name for options in settings for name in options))
    known = list(dict.fromkeys([*names, *(name for options in complete.values() for name in options)]))  # of other rows too
    for name in names if config is True else [config] if isinstance(config, str) else config or ():
        if name not in known:
            raise StudyError(
                f"no replicate of {store.study} has the setting {name!r}; settings: {', '.join(known)}{nearest(name, known)}"
            )
        values = _array([options.get(name) for options in settings])
        rows = rows.append_column(name, values.take(encoded.indices))
    return rows


def _settings(store: Store) -> dict[str, Options]:
    """The options of the newest manifest's conditions, defaults included, by the condition's configuration as JSON."""
    newest = newest_manifest(store)
    conditions = newest[1]["conditions"] if newest else []
    return {
        _spelled(condition["config"]): flatten(condition["settings"]) for condition in conditions if "settings" in condition
    }


def _as_in_a_study(config: Options) -> Options:
    """A configuration with the settings of its experiment where a study file has them, such as `experiment.lr`."""
    experiment = config.get("experiment")
    if not isinstance(experiment, dict) or not isinstance(experiment.get("settings"), dict):
        return config
    others = {name: value for name, value in experiment.items() if name != "settings"}
    return {**config, "experiment": others | experiment["settings"]}


def _spelled(config: Options) -> str:
    return json.dumps(config, sort_keys=True)


def _array(values: list[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # a number in one condition and a word in another
        return pa.array([value if value is None or isinstance(value, str) else json.dumps(value) for value in values])


def chosen_study(store: str, study: str | None, function: str, more: str = "") -> str:
    """The name of the study to load: `study`, or the only one of the store. Raises StudyError where that is none.

    function: of `results`, for the error that there are several; more: its arguments after the study.
    """
    names = studies(store)
    if not names:
        raise no_study(store)
    if study is None:
        if len(names) > 1:
            raise StudyError(
                f"{public(store)} holds several studies ({', '.join(names)}): name one, such as "
                f"results.{function}({public(store)!r}, {names[0]!r}{more})"
            )
        return names[0]
    if study not in names:
        meant = f"; for its table write table={study!r}" if study in SCHEMAS else nearest(study, names)
        raise StudyError(f"there is no study {study!r} in {public(store)}; studies: {', '.join(names)}{meant}")
    return study


def _needed(package: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise StudyError(f"{package} is not installed: pip install {package}") from error
