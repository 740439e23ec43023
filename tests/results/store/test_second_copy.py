"""Files of few rows hold them twice: as Parquet columns, and as the Arrow record batch that readers take."""

import random
import zlib

import duckdb
import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest

from results.errors import DamagedFile
from results.store import parquet, second_copy
from results.store.schema import SCHEMAS
from results.store.seal import BLANK, seal
from results.store.tables import open_store, read, write_bytes
from results.store.verify import verify
from tests.results.store.sample_rows import commit_pack, pack_tables

TABLES = ("replicates", "evaluations", "curves", "profiles", "probes")


def _no_columns(*_, **__):
    raise AssertionError("the Parquet columns were parsed")


def _sealed(rows: pa.Table, copy: bytes) -> bytes:
    """A file of these columns with this second copy, and a digest of it all."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, rows.schema, write_page_checksum=True) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata({"manyseeds.digest": BLANK})
    data = sink.getvalue().to_pybytes()
    place = second_copy._before_footer(data)
    return seal(data[:place] + copy + data[place:])


def test_both_copies_hold_the_same_rows_and_few_rows_are_read_without_parsing_a_column(tmp_path, monkeypatch):
    at = open_store(tmp_path, "study")
    commit_pack(at, "fd-1", ["a", "b"])
    from_columns = {table: pq.read_table(at.path(table, "fd-1.parquet")) for table in TABLES}
    with monkeypatch.context() as patch:
        patch.setattr(pq, "ParquetFile", _no_columns)
        from_batches = {table: read(at, table) for table in TABLES}
        assert read(at, "curves", ["value", "step"]).column_names == ["value", "step"]
    for table in TABLES:
        assert from_batches[table].num_rows
        assert from_batches[table].schema.equals(SCHEMAS[table])
        assert from_batches[table].cast(SCHEMAS[table]).equals(from_columns[table].cast(SCHEMAS[table]))


def test_a_file_of_many_rows_has_one_copy():
    row = {"key": "a", "stage": 0, "pack": "fd-1", "step": 1, "metric": "loss", "value": 0.5}
    rows = pa.Table.from_pylist([row] * 257, SCHEMAS["curves"])
    assert second_copy.from_file(parquet.serialise(rows.slice(1)), "curves").num_rows == 256
    assert second_copy.from_file(parquet.serialise(rows), "curves") is None


def _dense(rows: pa.Table) -> int:
    """The size of the denser file, which holds the same rows and only once."""
    data = parquet.densest([rows])
    assert parquet.deserialise(data).cast(SCHEMAS["curves"]).equals(rows)
    assert second_copy.from_file(data, "curves") is None
    return len(data)


def test_rounded_numbers_take_two_thirds_of_the_bytes_in_the_denser_file_and_repeated_ones_no_more():
    noise = np.random.default_rng(0).standard_normal(5000).astype(np.float32).astype(np.float64)
    row = {"key": "a", "stage": 0, "pack": "fd-1", "step": 1, "metric": "loss", "value": 0.5}
    same = pa.Table.from_pylist([row] * 5000, SCHEMAS["curves"])
    rows = same.set_column(same.schema.get_field_index("value"), SCHEMAS["curves"].field("value"), pa.array(noise))
    assert _dense(rows) < 2 / 3 * len(parquet.serialise(rows))
    assert _dense(same) <= len(parquet.serialise(same))


def test_the_denser_file_is_a_tenth_smaller_than_either_encoding_at_the_usual_level_of_compression():
    curve = np.round(np.cumsum(np.random.default_rng(0).standard_normal(50_000)) / 100, 2)
    row = {"key": "a", "stage": 0, "pack": "fd-1", "step": 1, "metric": "loss"}
    rows = pa.Table.from_pylist([{**row, "value": value} for value in curve.tolist()], SCHEMAS["curves"])
    usual = []
    for encoding in ({}, {"use_dictionary": ["key", "pack", "metric"], "column_encoding": {"value": "BYTE_STREAM_SPLIT"}}):
        sink = pa.BufferOutputStream()
        pq.write_table(rows, sink, compression="zstd", **encoding)
        usual.append(sink.getvalue().size)
    assert _dense(rows) < 0.9 * min(usual)
    few = rows.slice(0, second_copy.FEW_ROWS)
    assert _dense(few) < 0.9 * len(parquet.serialise(few))


@pytest.mark.parametrize("table", ["replicates", "evaluations", "curves"])
def test_the_denser_file_leaves_out_what_no_reader_asks_for_and_keeps_the_types(table):
    rows = pack_tables("fd-1", ["a", "d"])[table].cast(SCHEMAS[table])
    data = parquet.densest([rows])
    assert parquet.deserialise(data).schema.remove_metadata() == SCHEMAS[table].remove_metadata()
    columns = pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(0)
    assert not any(columns.column(index).is_stats_set for index in range(columns.num_columns))


def test_counts_take_a_fifth_less_than_as_plain_numbers_in_the_denser_file():
    row = {"key": "a", "stage": 0, "pack": "fd-1", "step": 1, "metric": "loss", "value": 0.5}
    same = pa.Table.from_pylist([row] * 5000, SCHEMAS["curves"])
    counts = pa.array(np.random.default_rng(0).integers(0, 4000, 5000))
    rows = same.set_column(same.schema.get_field_index("step"), SCHEMAS["curves"].field("step"), counts)
    plain = pa.BufferOutputStream()
    words = ["key", "pack", "metric"]
    pq.write_table(rows, plain, use_dictionary=words, compression="brotli", compression_level=11, write_statistics=False)
    assert _dense(rows) < 0.8 * plain.getvalue().size


@pytest.mark.parametrize("dense", [False, True])
def test_files_with_two_copies_and_denser_ones_are_parquet_files_for_other_readers(tmp_path, dense):
    rows = pack_tables("fd-1", ["a", "d"])["evaluations"].cast(SCHEMAS["evaluations"])
    path = tmp_path / "fd-1.parquet"
    path.write_bytes(parquet.densest([rows]) if dense else parquet.serialise(rows))
    assert (second_copy.from_file(path.read_bytes(), "evaluations") is None) == dense
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    wanted = rows["errors"].to_pylist()
    assert polars.read_parquet(path)["errors"].to_list() == wanted
    assert [row[0] for row in duckdb.read_parquet(str(path)).project("errors").fetchall()] == wanted


def test_no_flip_in_the_second_copy_is_read_as_data_and_one_elsewhere_leaves_it_as_it_was():
    rows = pack_tables("fd-1", ["a", "d"])["curves"].cast(SCHEMAS["curves"])
    data, whole = parquet.serialise(rows), rows.combine_chunks().to_batches()[0].serialize()
    end = second_copy._before_footer(data)
    start = end - len(_copy_of(rows))
    assert pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(0).num_rows == rows.num_rows
    rng = random.Random(3)
    for bit in [rng.randrange(8 * start, 8 * end) for _ in range(500)] + [rng.randrange(8 * len(data)) for _ in range(500)]:
        changed = np.frombuffer(data, np.uint8).copy()
        changed[bit // 8] ^= 1 << bit % 8
        batch = second_copy.from_file(changed.tobytes(), "curves")
        assert batch is None or batch.serialize().equals(whole), bit
        assert batch is None or not start <= bit // 8 < end, bit


def _copy_of(rows: pa.Table, schema: pa.Schema | None = None, size: int | None = None) -> bytes:
    message = rows.combine_chunks().to_batches()[0].serialize()
    copy = second_copy._packed(message, second_copy._schema_mark(schema or rows.schema))
    return copy if size is None else _checked(copy[:-8] + size.to_bytes(4, "little"))


def _checked(copy: bytes) -> bytes:
    """With the checksum that whoever writes a false copy would give it."""
    return copy + zlib.crc32(copy).to_bytes(4, "little")


def _not_text(rows: pa.Table) -> pa.Table:
    codes = pa.array([b"\xff"] * rows.num_rows, pa.binary()).buffers()
    return rows.set_column(0, rows.schema.field(0), pa.Array.from_buffers(pa.string(), rows.num_rows, codes))


def _without(rows: pa.Table, column: str) -> pa.Table:
    field = rows.schema.field(column).with_nullable(False)
    return rows.set_column(rows.schema.get_field_index(column), field, pa.nulls(rows.num_rows, field.type))


KINDS = ("other schema", "other rows' schema", "long", "huge", "short", "torn", "nulls", "no text", "checksum")


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_copy_that_is_not_ours_is_passed_over_for_the_columns(tmp_path, kind):
    at = open_store(tmp_path, "study")
    commit_pack(at, "fd-1", ["a"])
    rows = pack_tables("fd-1", ["a"])["curves"].cast(SCHEMAS["curves"])
    false = rows.set_column(rows.schema.get_field_index("value"), rows.schema.field("value"), pa.array([9.0] * rows.num_rows))
    whole = _copy_of(false)
    copy = {
        "other schema": _copy_of(false, SCHEMAS["profiles"]),
        "other rows' schema": _copy_of(false.select(["key", "value"]), SCHEMAS["curves"]),
        "long": _checked(whole[:-12] + (2**31).to_bytes(4, "little") + whole[-8:-4]),
        "huge": _copy_of(false, size=2**32 - 1),
        "short": _copy_of(false, size=100),
        "torn": _checked(bytes(20) + whole[20:-4]),
        "nulls": _copy_of(_without(false, "key"), SCHEMAS["curves"]),
        "no text": _copy_of(_not_text(false)),
        "checksum": whole[:-4] + bytes(4),
    }[kind]
    write_bytes(at, "curves/fd-1.parquet", _sealed(rows, copy))
    assert read(at, "curves")["value"].to_pylist() == rows["value"].to_pylist()
    write_bytes(at, "curves/fd-1.parquet", _sealed(rows, whole))
    assert set(read(at, "curves")["value"].to_pylist()) == {9.0}  # this one would have been taken


@pytest.mark.parametrize("change", ["value", "number of rows", "sign of zero"])
def test_verify_names_a_file_whose_copies_differ_though_its_digest_is_right(tmp_path, change):
    at = open_store(tmp_path, "study")
    commit_pack(at, "fd-1", ["a", "d"])  # d diverged: its loss is NaN, which does not equal itself
    assert verify(at).damage == []
    rows = pack_tables("fd-1", ["a", "d"])["curves"].cast(SCHEMAS["curves"])
    values = {"value": [9.0], "number of rows": [0.0], "sign of zero": [-0.0]}[change] * rows.num_rows
    place, field = rows.schema.get_field_index("value"), rows.schema.field("value")
    zeros = rows.set_column(place, field, pa.array([0.0] * rows.num_rows))
    other = rows.set_column(place, field, pa.array(values)).slice(change == "number of rows")
    path = at.path("curves/fd-1.parquet")
    write_bytes(at, "curves/fd-1.parquet", _sealed(zeros, _copy_of(zeros)))
    assert verify(at).damage == []
    write_bytes(at, "curves/fd-1.parquet", _sealed(zeros, _copy_of(other)))
    [(what, cure)] = verify(at).damage
    assert what == f"{path} holds its rows twice, and its two copies differ"
    assert cure.startswith("delete it and replicates/fd-1.parquet")


def test_a_file_among_many_that_is_named_for_another_pack_has_nulls_or_is_damaged_is_named(tmp_path):
    at = open_store(tmp_path, "study")
    for number in range(5):
        commit_pack(at, f"fd-{number}", [f"k{number}"])
    whole = read(at, "curves")
    path = at.path("curves/fd-2.parquet")
    with open(path, "rb") as stream:
        data = stream.read()
    place = second_copy._before_footer(data) - 1  # in the second copy
    rows = parquet.deserialise(data).cast(SCHEMAS["curves"])
    nulls = _copy_of(_without(rows, "value"), SCHEMAS["curves"])
    write_bytes(at, "curves/fd-2.parquet", _sealed(rows, nulls))
    assert read(at, "curves").equals(whole)  # its columns are read
    other = rows.set_column(rows.schema.get_field_index("pack"), rows.schema.field("pack"), pa.array(["fd-1"] * rows.num_rows))
    write_bytes(at, "curves/fd-2.parquet", parquet.serialise(other))
    with pytest.raises(DamagedFile, match=r"curves/fd-2\.parquet holds rows of pack fd-1"):
        read(at, "curves")
    write_bytes(at, "curves/fd-2.parquet", data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
    with pytest.raises(DamagedFile, match=r"curves/fd-2\.parquet can't be read"):
        read(at, "curves")


def test_a_million_rows_that_are_all_alike_are_read_back(tmp_path):
    """They take the fewest bytes for each row, and a reader refuses files that claim more rows than so few bytes can hold."""
    row = {"key": "a", "stage": 0, "pack": "fd-1", "step": 1, "metric": "loss", "value": 0.5}
    one = pa.Table.from_pylist([row], SCHEMAS["curves"])
    rows = one.take(pa.array(np.zeros(10**6, dtype=np.int64)))
    for data in (parquet.serialise(rows), parquet.densest([rows])):
        assert len(data) < 10**6 / 40
        (tmp_path / "compacted-0.parquet").write_bytes(data)
        whole = parquet.read_file(pyarrow.fs.LocalFileSystem(), f"{tmp_path}/compacted-0.parquet", "curves", ["value"])
        assert whole.num_rows == 10**6


def test_other_readers_read_the_denser_file(tmp_path):
    rows = pack_tables("fd-1", ["a", "d"])["evaluations"].cast(SCHEMAS["evaluations"])
    path = tmp_path / "compacted-0.parquet"
    path.write_bytes(parquet.densest([rows]))
    assert pq.ParquetFile(path).metadata.row_group(0).column(0).compression == "BROTLI"
    steps = rows["step"].to_pylist()
    assert pandas.read_parquet(path)["step"].to_list() == steps
    assert polars.read_parquet(path)["step"].to_list() == steps
    assert [each for (each,) in duckdb.sql(f"select step from '{path}'").fetchall()] == steps
