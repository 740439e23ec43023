"""docs/guides/reading-results.md is true: its one-line readers, run as printed, give the rows that `results.store.tables.read` gives."""

import math
import re
from pathlib import Path

import pytest

from results.store import merge
from results.store import tables as store
from results.store.tables import commit, open_store, read
from tests.results.store.sample_rows import commit_pack, pack_tables

PAGE = Path(__file__).parents[3] / "docs" / "guides" / "reading-results.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def block(library: str) -> str:
    (found,) = (text for text in BLOCKS if text.startswith((f"import {library}", f"from {library}")))
    return found


@pytest.fixture
def study(tmp_path):
    """Overlapping packs, one that never committed, and the same rows in two files, as an interrupted compaction leaves them."""
    at = open_store(tmp_path / "runs", "quick")
    for pack, keys in {"fd-1": ["a", "b"], "fc-2": ["b", "c"], "fd-3": ["c", "d"]}.items():
        commit_pack(at, pack, keys)
    commit(at, "fb-4", {"evaluations": pack_tables("fb-4", ["a", "e"])["evaluations"]})
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
        return repr(int(value)) if isinstance(value, float) and value.is_integer() else repr(value)

    return sorted(" ".join(f"{name}={text(row[name])}" for name in sorted(row)) for row in rows)


def wanted(at):
    rows = read(at, "evaluations")
    assert sorted(set(zip(rows["key"].to_pylist(), rows["pack"].to_pylist(), strict=True))) == [
        ("a", "fd-1"),
        ("b", "fc-2"),
        ("c", "fc-2"),
        ("d", "fd-3"),
    ]
    return plain(rows.to_pylist())


def run(text: str, at: store.Store):
    scope = {"study": at.path()}
    exec(text, scope)
    return scope["rows"]


@pytest.mark.parametrize("library", ["pandas", "duckdb"])
def test_the_line_for_a_data_frame_gives_the_same_rows(study, library):
    pytest.importorskip(library, reason=f"the reader for {library} needs {library}")
    pytest.importorskip("pandas", reason="the readers for data frames need pandas")
    assert plain(run(block(library), study).to_dict("records")) == wanted(study)


def test_the_line_for_polars_gives_the_same_rows(study):
    pytest.importorskip("polars", reason="the reader for polars needs polars")
    assert plain(run(block("polars"), study).to_dicts()) == wanted(study)


def test_the_projects_own_reader_is_the_one_on_the_page(study, monkeypatch):
    pytest.importorskip("pandas", reason="the page turns the rows into a data frame")
    monkeypatch.chdir(Path(study.root).parent)
    assert plain(run(block("results.store.tables"), study).to_dict("records")) == wanted(study)


def test_each_reader_is_one_line():
    assert len(BLOCKS) == 4
    for text in BLOCKS:
        assert len([line for line in text.splitlines() if line and not line.startswith(("import", "from"))]) == 1
