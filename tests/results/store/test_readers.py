"""`results.load` and the readers on docs/guides/reading-results.md, run as printed, give the rows that count and no others."""

import json
import math
import os
import re
import subprocess
import sys
import warnings
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import results
from results.errors import StudyError
from results.report.downloads import ReportTables
from results.store import merge
from results.store import tables as store
from results.store.manifest import manifest_of, write_manifest
from results.store.tables import commit, open_store, read
from tests.results.store.sample_rows import commit_pack, failure, manifest, pack_tables

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "guides" / "reading-results.md").read_text()
LOAD, SELECT, QUERY, FILE = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
WINNERS = {"a": "fd-1", "b": "fc-2", "c": "fc-2", "d": "fd-3"}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Overlapping packs, one that never committed, and the same rows in two files, as an interrupted compaction leaves them."""
    at = open_store(tmp_path_factory.mktemp("store") / "runs", "fflm-quick")
    for pack, keys, condition in [("fd-1", ["a", "b"], "lstm"), ("fc-2", ["b", "c"], "lstm"), ("fd-3", ["c", "d"], "deep")]:
        tables = pack_tables(pack, keys, condition)
        config = {
            "model": {"name": condition},
            "task": {"name": "flipflop"},
            "train": {"lr": 0.5} if condition == "deep" else {},
        }
        place = tables["replicates"].schema.get_field_index("config")
        column = pa.array([json.dumps(config, sort_keys=True, separators=(",", ":"))] * len(keys))
        tables["replicates"] = tables["replicates"].set_column(place, "config", column)
        commit(at, pack, tables)
    commit(at, "fb-4", {"evaluations": pack_tables("fb-4", ["a", "e"])["evaluations"]})
    commit(at, "fe-5-1", {"failures": failure("fe-5", 1)})
    plan = manifest({"lstm": ["a", "b", "c"], "deep": ["d"]})
    for each, lr, layers in zip(plan["conditions"], (0.25, 0.5), (1, 2), strict=True):
        each["config"]["train"] = {"lr": lr} if each["name"] == "deep" else {}
        each["settings"] = each["config"] | {"train": {"lr": lr}, "model": each["config"]["model"] | {"layers": layers}}
    write_manifest(at, json.dumps(plan).encode())
    inputs = {table: store.list_names(at, table) for table in ("evaluations", "replicates")}
    kept = {(table, name): store.read_bytes(at, f"{table}/{name}") for table, names in inputs.items() for name in names}
    merge.compact(at)
    for (table, name), data in kept.items():
        store.write_bytes(at, f"{table}/{name}", data)
    return at


def plain(rows: list[dict]) -> list[str]:
    """Rows as sorted text: readers differ in how they write a null, and pandas turns counts with nulls into floats."""

    def text(value):
        if value is None or (isinstance(value, float) and math.isnan(value)) or repr(value) in ("<NA>", "NaT"):
            return "null"
        if isinstance(value, datetime):
            value = value.astimezone(UTC)
        return repr(int(value)) if isinstance(value, float) and value.is_integer() else repr(value)

    return sorted(" ".join(f"{name}={text(row[name])}" for name in sorted(row)) for row in rows)


def run(text: str, at: store.Store, monkeypatch) -> dict:
    monkeypatch.chdir(Path(at.root).parent)
    scope: dict = {}
    exec(text, scope)
    return scope


def test_each_winning_row_is_there_once(study):
    rows = results.load(study.root, "fflm-quick", "evaluations")
    assert {row["key"]: row["pack"] for row in rows.to_pylist()} == WINNERS
    assert len(rows) == 4 * 5
    assert rows.column_names == read(study, "evaluations").column_names


@pytest.mark.parametrize("table", ["replicates", "evaluations", "profiles", "curves", "probes", "failures"])
def test_pandas_polars_duckdb_and_pyarrow_get_the_same_rows(study, table):
    rows = results.load(study.root, table=table)  # the only study
    wanted = plain(read(study, table).to_pylist())
    assert plain(pa.table(rows).to_pylist()) == wanted
    assert plain(rows.to_polars().to_dicts()) == wanted
    assert plain(rows.to_duckdb().to_arrow_table().to_pylist()) == wanted
    if table == "evaluations":
        assert plain(rows.to_pandas().to_dict("records")) == wanted


def test_pandas_can_keep_whole_numbers_beside_nulls(study, tmp_path):
    rows = results.load(study.root)
    kept = rows.to_pandas(types_mapper=pd.ArrowDtype)
    assert str(kept["errors"].dtype) == "int64[pyarrow]"
    assert kept["errors"].isna().any()
    pq.write_table(rows.arrow, tmp_path / "rows.parquet")
    assert pq.read_table(tmp_path / "rows.parquet").num_rows == len(rows)


def test_the_page_loads_the_same_rows(study, monkeypatch):
    frame = run(LOAD, study, monkeypatch)["rows"]
    assert isinstance(frame, pd.DataFrame)
    assert plain(frame.to_dict("records")) == plain(read(study, "evaluations").to_pylist())


def test_the_page_selects_columns_and_rows(study, monkeypatch):
    frame = run(SELECT, study, monkeypatch)["rows"]
    assert frame.columns == ["condition", "init_seed", "set", "errors", "count", "train.lr", "model.layers"]
    wanted = []
    about = {row["key"]: row for row in read(study, "replicates").to_pylist()}
    for row in read(study, "evaluations").to_pylist():
        replicate = about[row["key"]]
        if row["set"] in ("sparse", "dense") and row["step"] >= 100 and replicate["status"] == "finished":
            settings = {"train.lr": 0.25, "model.layers": 1}  # defaults of lstm: the diverged one alone is deep
            columns = {name: replicate[name] for name in ("condition", "init_seed")}
            wanted.append(columns | {name: row[name] for name in ("set", "errors", "count")} | settings)
    assert len(wanted) == 6
    assert plain(frame.to_dicts()) == plain(wanted)


def test_the_page_asks_in_sql(study, monkeypatch):
    page = run(QUERY, study, monkeypatch)
    finite = f"SELECT set, max({page['error']}) AS error FROM rows WHERE errors IS NOT NULL GROUP BY set"
    finite = page["rows"].query("rows", finite).df().set_index("set")["error"]
    worst = page["worst"].set_index("set")["error"]
    assert worst.to_dict() == {"sparse": math.inf, "dense": math.inf}  # one replicate diverged
    rows = [row for row in read(study, "evaluations").to_pylist() if row["metric"] == "read" and row["errors"] is not None]
    for name in worst.index:
        assert finite[name] == max(row["errors"] / row["count"] for row in rows if row["set"] == name)


def test_the_page_reads_the_reports_file(study, monkeypatch):
    """`tests/results/report/test_report.py` holds that the report writes these files."""
    folder = Path(study.path("report", "tables"))
    folder.mkdir(parents=True)
    pq.write_table(read(study, "evaluations"), folder / "evaluations.parquet")
    assert len(run(FILE, study, monkeypatch)["rows"]) == 20


def test_all_settings_become_columns_with_their_defaults(study):
    assert results.load(study.root, columns=["set", "condition", "set"]).column_names == ["set", "condition"]
    rows = results.load(study.root, table="replicates", columns=["condition"], config=True).to_pylist()
    assert {row["condition"]: row["train.lr"] for row in rows} == {"lstm": 0.25, "deep": 0.5}
    assert {row["condition"]: row["model.layers"] for row in rows} == {"lstm": 1, "deep": 2}
    assert all(row["task.name"] == "flipflop" for row in rows)


def test_conditions_on_replicates_open_only_the_files_of_their_packs(tmp_path, monkeypatch):
    at = open_store(tmp_path, "quick")
    commit_pack(at, "fa-1", ["a"], condition="lstm")
    commit_pack(at, "fa-2", ["d"], condition="deep")
    opened = []
    real = store.read_file
    monkeypatch.setattr(
        store, "read_file", lambda filesystem, path, *more: opened.append(path) or real(filesystem, path, *more)
    )
    rows = results.load(tmp_path, "quick", "curves", condition="deep", columns=["key", "status", "value"])
    assert set(rows["key"].to_pylist()) == {"d"}
    assert [path for path in opened if "/curves/" in path] == [at.path("curves", "fa-2.parquet")]


@pytest.fixture
def changed(tmp_path):
    """Two conditions that exchanged their names, a replicate that is still to come, and one that no plan has any more, x."""
    at = open_store(tmp_path, "quick")
    commit_pack(at, "fa-1", ["a", "x"], condition="one")
    commit_pack(at, "fa-2", ["b"], condition="two")
    write_manifest(at, json.dumps(manifest({"two": ["a"], "one": ["b", "c"]})).encode())
    return at


@pytest.mark.parametrize("table", ["replicates", "evaluations", "curves"])
def test_rows_have_the_names_of_the_newest_plan(changed, table):
    rows = results.load(changed.root, table=table, columns=["key", "condition"], planned=False).to_pylist()
    assert {row["key"]: row["condition"] for row in rows} == {"a": "two", "b": "one", "x": "one"}
    chosen = results.load(changed.root, table=table, condition="two", columns="key", planned=False)
    assert set(chosen["key"].to_pylist()) == {"a"}


def test_a_filter_on_conditions_compares_the_names_of_the_newest_plan(changed):
    options = {"table": "replicates", "filters": [("condition", "=", "one")], "columns": ["key"]}
    assert set(results.load(changed.root, **options, planned=False)["key"].to_pylist()) == {"b", "x"}


@pytest.mark.parametrize("table", ["replicates", "evaluations", "curves"])
@pytest.mark.parametrize(
    "options", [{}, {"columns": ["key", "condition"]}, {"columns": "key", "config": True}, {"status": "finished"}]
)
def test_a_replicate_that_the_newest_plan_lacks_is_left_out_with_a_warning(changed, table, options):
    with pytest.warns(
        UserWarning, match=r"^1 replicate of quick is not in its newest plan, .*planned=False loads it too$"
    ) as told:
        rows = results.load(changed.root, table=table, **options)
    assert set(rows["key"].to_pylist()) == {"a", "b"}
    assert [each.filename for each in told] == [__file__]
    assert set(results.load(changed.root, table=table, **options, planned=False)["key"].to_pylist()) == {"a", "b", "x"}


@pytest.mark.parametrize("table", ["replicates", "evaluations"])
@pytest.mark.parametrize(
    ("asked", "left_out"), [({"condition": "one"}, 1), ({"condition": "two"}, 0), ({"status": "diverged"}, 0)]
)
def test_the_warning_counts_the_replicates_that_were_asked_for(changed, table, asked, left_out):
    """The replicate that no plan has any more keeps its name, one; all have finished."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        results.load(changed.root, table=table, **asked)
    assert len(told) == left_out


def test_the_tables_of_a_report_hold_the_replicates_of_the_newest_plan(changed):
    for shared in (False, True):
        rows = ReportTables(changed, manifest_of(changed), shared)
        for table in ("evaluations", "curves", "profiles"):
            rows.read(table)
        copies = {path: pq.read_table(pa.BufferReader(data)) for path, data in rows.copies().items()}
        assert set(copies) == {f"tables/{name}.parquet" for name in ("replicates", "evaluations", "curves", "profiles")}
        for path, copy in copies.items():
            assert set(copy["key"].to_pylist()) == {"a", "b"}, path


def test_a_store_without_a_plan_is_loaded_whole(changed):
    store.delete(changed, "manifests")
    assert set(results.load(changed.root)["key"].to_pylist()) == {"a", "b", "x"}


def test_a_setting_of_other_rows_is_null_or_leaves_no_rows(study):
    """`model.layers` stands in the newest plan alone, and no row is of the set `none such`."""
    with pytest.warns(UserWarning, match="no rows with set='none such'"):
        rows = results.load(study.root, set="none such", config="model.layers")
    assert (rows.num_rows, rows.column_names[-1]) == (0, "model.layers")


def test_a_null_and_several_values_are_conditions_too(study):
    diverged = results.load(study.root, errors=None, set="sparse")
    assert diverged["key"].to_pylist() == ["d"]
    either = results.load(study.root, key=["a", "c"], set="sparse", filters=(pc.field("errors") >= 0))
    assert set(either["key"].to_pylist()) == {"a", "c"}
    number = results.load(study.root, key="a", set="sparse")["errors"][0].as_py()
    assert {"a", "d"} <= set(results.load(study.root, errors=[None, number])["key"].to_pylist())


@pytest.mark.parametrize(
    ("conditions", "warned"),
    [
        ({"set": "dens"}, [r"no rows with set='dens'; values of set: .*sparse.*; did you mean dense\?$"]),
        ({"set": ["dense", "x"], "condition": "LSTM"}, ["set='x'", "condition='LSTM'; values of condition: "]),
        ({"metric": "reed"}, [r"did you mean read\?$"]),
    ],
)
def test_a_name_that_no_row_has_is_warned_of(study, conditions, warned):
    with pytest.warns(UserWarning, match="has no rows with") as caught:
        assert results.load(study.root, **conditions).num_rows == 0
    for warning, sentence in zip(caught, warned, strict=True):
        assert re.search(sentence, str(warning.message))
        assert warning.filename == __file__


def test_an_unknown_name_beside_known_ones_is_warned_of(study):
    with pytest.warns(UserWarning, match=r"^fflm-quick has no rows with set='dens'; .*did you mean dense\?$") as caught:
        assert set(results.load(study.root, set=["sparse", "dens"])["set"].to_pylist()) == {"sparse"}
    assert len(caught) == 1


def test_a_known_name_without_rows_is_not_warned_of(study):
    assert results.load(study.root, set="dense", step=10**6).num_rows == 0


def test_a_range_or_an_array_stands_for_its_values(study):
    seeds = sorted(set(results.load(study.root, columns="init_seed")["init_seed"].to_pylist()))[:2]
    wanted = results.load(study.root, init_seed=seeds)
    assert 0 < len(wanted) < 20
    for several in (np.array(seeds), pd.Series(seeds), range(seeds[0], seeds[1] + 1), dict.fromkeys(seeds)):
        assert results.load(study.root, init_seed=several).arrow == wanted.arrow


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"study": "fflm-quik"}, "there is no study 'fflm-quik' in ROOT; studies: fflm-quick; did you mean fflm-quick?"),
        ({"study": "curves"}, "studies: fflm-quick; for its table write table='curves'"),
        ({"table": "evaluation"}, "did you mean evaluations?"),
        ({"columns": ["key", "error"]}, "there is no column 'error' in evaluations and replicates; columns: key, "),
        ({"sett": "sparse"}, "did you mean set?"),
        ({"step": "last"}, "step='last' can't be compared with the column step, which holds int64"),
        (
            {"filters": [("condition", "=", "lstm")]},
            "filters compare columns of evaluations, and condition is a column of replicates: write condition=VALUE or condition=[",
        ),
        ({"filters": pc.field("stepp") > 3}, "the filters name a column 'stepp' that evaluations lacks; its columns: key, "),
        ({"step": 99.5}, "step=99.5 can't be compared with the column step, which holds int64"),
        ({"step": [100, 99.5]}, "step=[100, 99.5] can't be compared with the column step, which holds int64"),
        ({"step": pd.Series(["a", "b"])}, "can't be compared with the column step, which holds int64"),
        ({"filters": "step > 3"}, "write a pyarrow expression, or tuples such as [('step', '>=', 1000)]"),
        ({"filters": [("step", ">", "x")]}, "the filters do not fit the table evaluations"),
        ({"config": "train.ler"}, "no replicate of fflm-quick has the setting 'train.ler'; settings: "),
        ({"table": "failures", "config": True}, "leave config out"),
        ({"table": "failures", "columns": ["condition"]}, "there is no column 'condition' in failures"),
    ],
)
def test_what_cannot_be_read_is_refused_in_a_sentence(study, arguments, sentence):
    with pytest.raises(StudyError) as caught:
        results.load(study.root, **arguments)
    assert sentence.replace("ROOT", study.root) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_one_of_several_studies_must_be_named(tmp_path):
    with pytest.raises(StudyError, match=f"^there is no study in {tmp_path}$"):
        results.load(tmp_path)
    commit_pack(open_store(tmp_path / "above", "quick"), "fa-1", ["a"])
    with pytest.raises(StudyError, match=f"folder of the study quick, so give the folder above it, {tmp_path}/above, and then"):
        results.load(tmp_path / "above" / "quick")
    for name in ("one", "two"):
        commit_pack(open_store(tmp_path, name), "fa-1", ["a"])
    with pytest.raises(
        StudyError, match=r"holds several studies \(one, two\): name one, such as results.load\(.*, 'one', 'curves'\)"
    ):
        results.load(tmp_path, table="curves")


def test_a_library_that_is_missing_is_named(study, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(StudyError, match=r"^polars is not installed: pip install polars$"):
        results.load(study.root).to_polars()


def test_a_command_that_reads_nothing_does_not_wait_for_arrow():
    code = "import sys, results.errors; print('pyarrow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout == "False\n"
