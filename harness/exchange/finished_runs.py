"""Runs that somebody has finished elsewhere, as a study: `manyseeds import runs.csv --seed seed --config lr,width --metric accuracy`.

A table has one row per run, or with a column of steps one row per step; folders of W&B and TensorBoard are read as one (`run_folders`).
What readers need to compare runs is checked: each pair of settings and seed is there once, and no other column differs between runs
unless it is said not to matter.
"""

import datetime
import json
import math
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import yaml

import harness.planning.manifest as manifests
from harness.exchange.exported_files import read_table
from harness.exchange.exported_states import STATE, record_failures, split_rows
from harness.exchange.run_folders import read_folder, refuse_direction
from harness.experiments.entries import PLACES, BadResult, Entry, each_value, entry_of
from harness.experiments.measure import ending_row, value_rows
from harness.machine.provenance import code_state, versions
from harness.study.config import nearest
from harness.study.experiment import IMPORTED
from harness.study.identity import canonical, digest, key
from harness.study.tree import short
from results.errors import StudyError
from results.plain_values import Options, Row, Tree, Value
from results.rows.plural import counted, first_of
from results.store.manifest import Manifest, Planned, newest_manifest, write_manifest
from results.store.manifest_schema import problem
from results.store.schema import SCHEMAS
from results.store.tables import Store, commit, committed, read

MOST_TEXT = 1000  # characters of a setting
_EXACT = 2**53  # floats from here on are not every whole number
_MOST_NAMED = 8


@dataclass(frozen=True)
class Columns:
    """What the columns of a table mean. metrics: {name: lower | higher | ""}; step: "" where a run is one row."""

    seed: str
    config: tuple[str, ...]
    metrics: Mapping[str, str]
    step: str = ""
    ignore: tuple[str, ...] = ()


@dataclass
class Run:
    """A run of the table. row_at: by step, None in a table without steps, the row of its values, counted as a person does. state: W&B's
    word for one that has not finished, and has no numbers."""

    settings: Tree
    seed: int
    entries: list[Entry] = field(default_factory=list)
    row_at: dict[Any, int] = field(default_factory=dict)
    state: str = ""

    @property
    def condition(self) -> str:
        return ", ".join(f"{name}={_spelled(value)}" for name, value in self.settings.items()) or "all runs"

    @property
    def config(self) -> Tree:
        return {"experiment": {"name": IMPORTED, "settings": self.settings}}

    @property
    def key(self) -> str:
        return key(self.config, 0, self.seed, self.seed)


def import_runs(store: Store, path: Path, columns: Columns, question: str, say: Callable[[str], None]) -> int:
    """Commit the runs of a file that the study does not have yet; returns how many. StudyError, before anything is written, in one
    sentence on what is wrong with the file."""
    table = read_folder(path, columns.metrics, columns.step, say) if path.is_dir() else read_table(path)
    planned = runs_of(table, columns, path.name, say)
    runs = [run for run in planned if not run.state]
    store.check_writable()
    newest = newest_manifest(store)
    _refuse_other_study(store, newest)
    held, kinds = _committed_numbers(store)
    _refuse_two_kinds(runs, kinds, path.name)
    fresh = []
    for run in runs:
        if run.key not in held:
            fresh.append(run)
        elif held[run.key] != (numbers := _numbers(run)):
            metrics, ours = (", ".join(sorted({name for name, _ in each})) for each in (held[run.key], numbers))
            if metrics != ours:
                raise StudyError(
                    f"seed {run.seed} of {run.condition} is in the study {store.study} with the metrics {metrics}, and {path.name} gives "
                    f"{ours}: name the same, or import the new runs with another --name"
                )
            raise StudyError(
                f"seed {run.seed} of {run.condition} is in the study {store.study} with other numbers than in {path.name}: import the "
                "new runs with another --name"
            )
    plan = _manifest(store, planned, newest, columns, path, question)
    if wrong := problem(plan):
        raise StudyError(f"no study can be made of {path.name}: {wrong[:300]}; rename that in the file")
    if fresh:
        _write(store, fresh, path)
    record_failures(store, {run.key: run.state for run in planned if run.state and run.key not in held}, path.name)
    manifest = manifests.to_bytes(plan)
    write_manifest(store, manifest)
    conditions, before = len({run.condition for run in planned}), [] if newest is None else newest[1]["conditions"]
    of_study = len({canonical(run.config) for run in planned} | {canonical(each["config"]) for each in before})
    more = f", and the study {of_study}" if of_study > conditions else ""
    there = f", {len(runs) - len(fresh):,} were there already" if len(fresh) < len(runs) else ""
    say(f"{store.study}: {counted(len(fresh), 'run')} added{there}; {path.name} has {counted(conditions, 'condition')}{more}")
    return len(fresh)


def runs_of(table: pa.Table, columns: Columns, where: str, say: Callable[[str], None]) -> list[Run]:
    """The runs of a table in its order, those that have not finished last.

    StudyError for a seed that is repeated, and for settings that are not named.
    """
    named = [columns.seed, *columns.config, *columns.metrics, *([columns.step] if columns.step else []), *columns.ignore]
    for name in named:
        if name not in table.column_names:
            if name in columns.metrics:
                refuse_direction(name, table.column_names)
            hint = nearest(name, table.column_names) or f"; columns: {', '.join(table.column_names)[:300]}"
            raise StudyError(f"{where} has no column {name!r}{hint}")
    if twice := [name for name in named if named.count(name) > 1]:
        raise StudyError(
            f"the column {twice[0]!r} is named twice: use it once, as the seed, a setting, a metric, the step or ignored"
        )
    if taken := next((name for name in columns.metrics if name in PLACES), None):
        raise StudyError(f"a metric can't be called {taken!r}, which is the {taken} of a number: rename the column in {where}")
    first = 2 if where.endswith(("csv", "tsv")) else 1  # after the line of names
    numbers: Sequence[int] = range(first, first + table.num_rows)  # of the rows, as a person counts them
    unfinished: list[tuple[int, Row]] = []
    if STATE in table.column_names and STATE not in named:
        numbers, table, unfinished = split_rows(table, numbers, [columns.seed, *columns.config], where, say)
    _refuse_unnamed(table, [name for name in table.column_names if name not in named], where)
    for name in named[: len(named) - len(columns.ignore)]:
        table = table.set_column(table.column_names.index(name), name, _simple(table[name], name, where))
    for name in (columns.seed, *columns.metrics, *([columns.step] if columns.step else [])):
        _refuse_words(table[name], name, numbers, where)
    runs: dict[str, Run] = {}
    read_columns = [name for name in named if name not in columns.ignore]
    for number, row in zip(numbers, table.select(read_columns).to_pylist(), strict=True):
        run = Run(
            {name: _setting(row[name], name, number, where) for name in columns.config}, _seed(row, columns, number, where)
        )
        run = runs.setdefault(canonical([run.settings, run.seed]), run)
        values = {name: row[name] for name in columns.metrics if row[name] is not None}
        at = _whole(row[columns.step]) if columns.step else None
        step = {"step": at} if columns.step else {}
        if columns.step and values and at is None:
            raise StudyError(f"row {number} of {where} has no {columns.step}: give it one, or leave the row out")
        if at in run.row_at:
            again = f" at step {at}" if columns.step else ""
            more = "" if columns.step else ", or name their column with --step"
            raise StudyError(
                f"seed {run.seed} of {run.condition} is in rows {run.row_at[at]} and {number} of {where}{again}: "
                f"leave one of them out{more}"
            )
        if values or not columns.step:
            run.row_at[at] = number
        if values:
            try:
                run.entries.append(entry_of(step | values, {}))
            except BadResult as error:
                raise StudyError(f"row {number} of {where}: {error}") from error
    if empty := next((run for run in runs.values() if not run.entries), None):
        row = "".join(f"row {number} of " for number in empty.row_at.values())
        raise StudyError(
            f"{row}{where}: seed {empty.seed} of {empty.condition} has no value of {', '.join(columns.metrics)}: leave this run out"
        )
    for number, row in unfinished:
        settings = {name: _setting(row[name], name, number, where) for name in columns.config}
        run = Run(settings, _seed(row, columns, number, where), state=row[STATE])
        runs.setdefault(canonical([run.settings, run.seed]), run)
    return list(runs.values())


def _refuse_unnamed(table: pa.Table, names: Sequence[str], where: str) -> None:
    """StudyError for columns that differ between rows and are not named: they may be settings, whose runs would then be mixed."""
    if nested := next((name for name in names if pa.types.is_nested(table[name].type)), None):
        raise StudyError(f"{where}: {nested[:100]} holds {_kind(table[nested])}: add it to --ignore")
    varied = [name for name in names if len(table[name].unique()) > 1]
    if "" in varied:
        raise StudyError(f"{where} has a column without a name, whose values differ between runs: give it a name in the file")
    if varied:
        shown = first_of([name[:100] for name in varied], _MOST_NAMED)
        first = table[varied[0]].unique()
        values = f"{short(first[0].as_py())[:100]}, {short(first[1].as_py())[:100]}, …" if _is_simple(first) else _kind(first)
        raise StudyError(
            f"{where}: {shown} {'differs' if len(varied) == 1 else 'differ'} between runs ({varied[0][:100]}: {values}) and "
            f"{'is' if len(varied) == 1 else 'are'} not named: add settings to --config, numbers to --metric, what does not matter to "
            "--ignore, and name a column of steps with --step"
        )


def _simple(column: pa.ChunkedArray, name: str, where: str) -> pa.ChunkedArray:
    """A column of numbers, words or true and false. StudyError for other kinds, such as dates, and for long texts."""
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    if not _is_simple(column):
        raise StudyError(
            f"{where}: {name[:100]} holds {_kind(column)}, and only numbers, words, true and false can be imported"
        )
    if _is_text(column.type) or pa.types.is_dictionary(column.type):
        longest = max((pc.max(pc.utf8_length(each)).as_py() or 0 for each in _texts(column)), default=0)
        if longest > MOST_TEXT:
            raise StudyError(f"{where}: {name[:100]} has a text of {longest:,} characters, and a value may have {MOST_TEXT:,}")
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _refuse_words(column: pa.ChunkedArray, name: str, numbers: Sequence[int], where: str) -> None:
    """StudyError that names the first value that is no number, by its row. One such value makes all of a column words."""
    if not _is_text(column.type):
        return
    values = [(number, value) for number, value in zip(numbers, column.to_pylist(), strict=True) if value is not None]
    flag, other = (
        next(((number, value) for number, value in values if (value.lower() in ("true", "false")) == wanted), None)
        for wanted in (True, False)
    )
    if flag and other:
        raise StudyError(
            f"{where}: {name} is {flag[1]!r} in row {flag[0]} and {other[1][:60]!r} in row {other[0]}: "
            "write true and false alone, or numbers alone"
        )
    for number, value in values:
        if not _is_number(value):
            raise StudyError(
                f"row {number} of {where}: {name} is {value[:60]!r}, which is no number: correct it, or leave the row out"
            )


def _is_number(text: str) -> bool:
    """Whether a reader of CSV takes a text as a number; Python alone would also take 1_000."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def _texts(column: pa.ChunkedArray) -> list[pa.Array]:
    """The different texts of a column, each at least once."""
    return [chunk.dictionary if pa.types.is_dictionary(chunk.type) else chunk for chunk in column.chunks]


def _is_simple(column: pa.Array | pa.ChunkedArray) -> bool:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    plain = (pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_null, _is_text)
    return any(fits(kind) for fits in plain)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _kind(column: pa.Array | pa.ChunkedArray) -> str:
    """What a column holds, as a noun phrase."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return "bytes that are no text in UTF-8"
    return "lists or mappings" if pa.types.is_nested(kind) else f"values of the kind {str(kind)[:60]}"


def _spelled(value: Any) -> str:
    """A setting in the name of a condition; a text that could be read as something else is in quotes."""
    if not isinstance(value, str):
        return short(value)
    try:
        plain = yaml.safe_load(value) == value and not any(letter in value for letter in ",=") and value.isprintable()
    except (yaml.YAMLError, ValueError):
        plain = False
    return value if plain else json.dumps(value, ensure_ascii=False)


def _refuse_two_kinds(runs: Sequence[Run], held: Mapping[str, set[str]], where: str) -> None:
    """StudyError for a metric that is a number in one run and true or false in another."""
    kinds = {name: set(each) for name, each in held.items()}
    for run in runs:
        for _, name, _, kind in each_value(run.entries):
            kinds.setdefault(name, set()).add(kind)
            if len(kinds[name]) > 1:
                raise StudyError(
                    f"{name} is a number in some runs and true or false in others, as of seed {run.seed} in {where}: give it one kind"
                )


def _whole(value: Any) -> Any:
    """An integral float as a whole number: a reader makes all of a column floats where one is a fraction, or missing."""
    return int(value) if type(value) is float and value.is_integer() and abs(value) < _EXACT else value


def _setting(value: Value, name: str, number: int, where: str) -> Any:
    value = _whole(value)
    if type(value) in (str, bool, int, type(None)) or (type(value) is float and math.isfinite(value)):
        return value
    raise StudyError(
        f"row {number} of {where}: {name} = {value!r} is not a setting: write a finite number, a word, true, false or nothing"
    )


def _seed(row: Mapping[str, Value], columns: Columns, number: int, where: str) -> int:
    value = _whole(row[columns.seed])
    if type(value) is not int or not 0 <= value < 2**63:
        raise StudyError(
            f"row {number} of {where}: {columns.seed} = {value!r} is not a seed: write a whole number from 0 to 2⁶³ − 1"
        )
    return value


def _refuse_other_study(store: Store, newest: tuple[str, Manifest] | None) -> None:
    conditions = [] if newest is None else newest[1]["conditions"]
    if any(each["config"].get("experiment", {}).get("name") != IMPORTED for each in conditions):
        raise StudyError(f"the study {store.study} in {store.root} was run by manyseeds: import into another one, with --name")


def _numbers(run: Run) -> dict[tuple[str, int], float | None]:
    return {(name, e.step): value if math.isfinite(value) else None for e, name, value, _ in each_value(run.entries)}


def _committed_numbers(store: Store) -> tuple[dict[str, dict[tuple[str, int], float | None]], dict[str, set[str]]]:
    """The numbers of committed replicates, by key, and the kinds of each metric."""
    numbers: dict[str, dict[tuple[str, int], float | None]] = {
        replicate_key: {} for replicate_key in committed(store)["key"].to_pylist()
    }
    kinds: dict[str, set[str]] = {}
    for row in read(store, "evaluations", ["key", "metric", "step", "value", "kind"]).to_pylist():
        numbers[row["key"]][row["metric"], row["step"]] = row["value"]
        kinds.setdefault(row["metric"], set()).add(row["kind"])
    return numbers, kinds


def _write(store: Store, runs: Sequence[Run], path: Path) -> None:
    now = datetime.datetime.now(datetime.UTC)
    pack = f"ff-{digest(sorted(run.key for run in runs), 16)}"
    shared = {
        **{"stage": 0, "samples": 0, "tokens": 0, "parameters": 0, "loss": float("nan"), "pack": pack, "pack_size": len(runs)},
        **{"attempt": 1, "started": now, "ended": now, "train_s": 0.0, "evaluate_s": 0.0, "host": socket.gethostname()},
        **{"device": f"imported from {path.name}", "numerics": "{}", "versions": "{}", "sets": []},
    }
    replicates, evaluations = [], []
    for slot, run in enumerate(runs):
        replicates.append(
            shared
            | ending_row(run.entries)
            | {"key": run.key, "condition": run.condition, "config": canonical(run.config), "slot": slot}
            | {"init_seed": run.seed, "data_seed": run.seed}
        )
        evaluations += value_rows({"key": run.key, "stage": 0, "pack": pack, "weights": "raw"}, run.entries)
    rows = {"replicates": replicates, "evaluations": evaluations}
    commit(store, pack, {table: pa.Table.from_pylist(rows_of_table, SCHEMAS[table]) for table, rows_of_table in rows.items()})


def _manifest(
    store: Store,
    runs: Sequence[Run],
    newest: tuple[str, Manifest] | None,
    columns: Columns,
    path: Path,
    question: str,
) -> dict[str, object]:
    """The plan that these runs and those imported before would have followed."""
    names: dict[str, str] = {}
    members: dict[str, dict[int, str]] = {}
    before: Planned = {"conditions": [], "replicates": [], "sets": {}} if newest is None else newest[1]
    for row_key, index, seed, _ in (row[:4] for row in before["replicates"]):
        condition = before["conditions"][index]
        names.setdefault(canonical(condition["config"]), condition["name"])
        members.setdefault(canonical(condition["config"]), {})[seed] = row_key
    for run in runs:
        names.setdefault(canonical(run.config), run.condition)
        members.setdefault(canonical(run.config), {})[run.seed] = run.key
    stated: list[Options] = [run.config for run in runs] + [condition["config"] for condition in before["conditions"]]
    configs = {canonical(config): config for config in stated}
    metrics: dict[str, Any] = {**before.get("metrics", {})}
    for name, better in columns.metrics.items():
        metrics[name] = {"better": better or metrics.get(name, {}).get("better", ""), "kind": ""}
    commit_id, dirty = code_state()
    return {
        "study": store.study,
        "question": question or (newest[1]["question"] if newest else "") or f"Runs of {path.name}",
        "source": {"file": path.name},
        **{"scale": "paper", "reductions": [], "overrides": [], "wandb": "off", "keep": "none", "device": "auto"},
        **{"executor": "local", "store": "", "pack_size": None, "curve_every": 10, "sets": {}, "claims": {}},
        "metrics": metrics,
        "conditions": [
            {"name": names[each], "config": configs[each], "sets": {}, "replicates": len(members[each])} for each in names
        ],
        "replicates": [
            [members[each][seed], index, seed, seed] for index, each in enumerate(names) for seed in sorted(members[each])
        ],
        **{"packs": [], "numerics": {}, "versions": versions(), "git": commit_id, "dirty": dirty},
    }
