"""Files of a store that no study wrote, or not whole: each is named, with what is wrong."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from results.errors import DamagedFile
from results.store.parquet import serialise
from results.store.schema import SCHEMAS
from results.store.tables import committed, open_store, read
from tests.results.store.sample_rows import commit_pack, pack_tables

TABLES = [table for table in SCHEMAS if table != "failures"]


@pytest.mark.parametrize("table", TABLES)
def test_a_truncated_file_is_named_with_the_cure(tmp_path, table):
    at = open_store(tmp_path, "study")
    commit_pack(at, "fe-1", ["a"])
    commit_pack(at, "fe-2", ["b"])
    file = Path(at.path(table, "fe-2.parquet"))
    whole = file.read_bytes()
    for length in (0, 3, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"fe-2\.parquet .* move it out of the store"):
            read(at, table)


FOREIGN = {
    "an unknown column": (lambda r: r.add_column(0, "mine", pa.array([1] * r.num_rows)), "a column 'mine' unknown"),
    "no column 'metric'": (lambda r: r.drop_columns(["metric"]), "no column 'metric'"),
    "another type": (
        lambda r: r.set_column(r.schema.get_field_index("step"), "step", r["step"].cast(pa.float64())),
        "column 'step' is double, not int64",
    ),
    "nulls": (
        lambda r: r.set_column(r.schema.get_field_index("step"), "step", pa.nulls(r.num_rows, pa.int64())),
        "column 'step' has nulls",
    ),
    "another pack": (
        lambda r: r.set_column(r.schema.get_field_index("pack"), "pack", pa.array(["fe-3"] * r.num_rows)),
        "holds rows of pack fe-3",
    ),
    "another table": (lambda r: pa.table({"x": [1]}), "no column 'key' and a column 'x' unknown"),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_foreign_file_is_named_with_what_is_wrong_and_the_cure(tmp_path, kind):
    at = open_store(tmp_path, "study")
    commit_pack(at, "fe-1", ["a"])
    change, says = FOREIGN[kind]
    pyarrow.parquet.write_table(change(pack_tables("fe-1", ["a"])["evaluations"]), at.path("evaluations", "foreign.parquet"))
    with pytest.raises(ValueError, match=says) as caught:
        read(at, "evaluations")
    assert "evaluations/foreign.parquet" in str(caught.value)
    assert "move it out of the store" in str(caught.value)


def test_a_column_of_a_newer_version_asks_for_an_upgrade(tmp_path):
    at = open_store(tmp_path, "study")
    commit_pack(at, "fe-1", ["a"])
    rows = pack_tables("fe-1", ["a"])["evaluations"]
    pyarrow.parquet.write_table(
        rows.append_column("entropy", pa.nulls(rows.num_rows, pa.float64())), at.path("evaluations/fe-1.parquet")
    )
    with pytest.raises(ValueError, match=r"evaluations/fe-1\.parquet has a column 'entropy'.*: upgrade manyseeds to read it$"):
        read(at, "evaluations")


@pytest.mark.parametrize("copied", [True, False])
@pytest.mark.parametrize(
    ("table", "column", "value", "sentence"),
    [
        ("replicates", "ended", 2**62, "a time that is not in the years 1 to 9999"),
        ("replicates", "started", -(2**62), "a time that is not in the years 1 to 9999"),
        ("replicates", "sets", [None], "nulls in its lists"),
        ("evaluations", "errors", -1, "a count below 0"),
        ("evaluations", "errors_sq", 2**62, "a count below 0 or above"),
        ("curves", "value", 1.1e150, "a number beyond 1e+150"),
        ("probes", "value", -1e308, "a number beyond 1e+150"),
        ("profiles", "count", 2**62, "a count below 0 or above"),
    ],
)
def test_rows_that_no_study_writes_are_refused_with_their_column(tmp_path, table, column, value, sentence, copied):
    at = open_store(tmp_path, "study")
    commit_pack(at, "fd-1", ["a", "b"])
    rows, field = read(at, table), SCHEMAS[table].field(column)
    values = pa.array([value] * rows.num_rows, pa.int64() if pa.types.is_timestamp(field.type) else field.type).cast(field.type)
    rows = rows.set_column(rows.schema.get_field_index(column), field, values)
    path = Path(at.path(table, "fd-1.parquet"))
    if copied:
        path.write_bytes(serialise(rows))
    else:
        pa.parquet.write_table(rows, path)
    with pytest.raises(DamagedFile) as refused:
        read(at, table)
    assert f"{path} is no file of table {table!r}: column {column!r} has {sentence}" in str(refused.value)


def test_texts_that_are_not_in_utf_8_are_refused(tmp_path):
    at = open_store(tmp_path, "study")
    commit_pack(at, "fd-1", ["a", "b"])
    rows = read(at, "replicates")
    offsets = pa.array([0, 1, 2], pa.int32()).buffers()[1]
    odd = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"\xff\xfe")])
    place = rows.schema.get_field_index("condition")
    pa.parquet.write_table(rows.set_column(place, rows.schema.field("condition"), odd), at.path("replicates", "fd-1.parquet"))
    with pytest.raises(DamagedFile, match=r"(?i)utf-?8"):
        committed(at)


def test_one_long_text_for_many_rows_is_not_written_out(tmp_path):
    at = open_store(tmp_path, "study")
    commit_pack(at, "fd-1", ["a"])
    row, count = read(at, "curves").slice(0, 1), 20_000
    columns = {field.name: pa.array([row[field.name][0].as_py()] * count, field.type) for field in row.schema}
    text = pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), pa.array(["x" * 2**20]))  # 20 GB
    columns["metric"] = text
    path = at.path("curves", "fd-1.parquet")
    pa.parquet.write_table(pa.table(columns), path, compression="zstd", dictionary_pagesize_limit=2**30, store_schema=False)
    before = pa.total_allocated_bytes()
    with pytest.raises(DamagedFile, match="bytes of text, and at most"):
        read(at, "curves")
    assert pa.total_allocated_bytes() - before < 2**26
