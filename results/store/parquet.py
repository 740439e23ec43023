"""One Parquet file of a table: rows to bytes, and back with every check that its schema allows.

Files carry a digest of all their bytes (`results.store.seal`) and a checksum of every page; `manyseeds verify` checks the digest of each.
A file of few rows, unless it is dense, also holds them as one Arrow record batch with a checksum of its own
(`results.store.second_copy`): a reader takes and checks that alone. Of another file of at most 1 MiB a reader checks the digest, and of
a larger one the pages that it reads, though not their headers. Files of older versions may have no digest.
"""

import itertools
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.fs
import pyarrow.parquet

from results.errors import DamagedFile, MissingFile, StoreError
from results.store.filesystem import content, reason, refuse_special
from results.store.schema import SCHEMAS
from results.store.seal import BLANK, seal, state
from results.store.second_copy import FEW_ROWS, from_file, impossible, nulls_where_none_may_be, with_copy

COMPACTED = "compacted-"
SUFFIX = ".parquet"
MOST_FOOTER = 2**24  # most bytes of a file's metadata: those of 10^6 replicates are a few thousand
# bytes of a file that is fetched at once: its digest is checked then, and an object store gets two requests instead of three to six
_WHOLE = 2**20
_CHANGED = "its bytes are not those that were written"
_DIGEST = "manyseeds.digest"  # the key of the metadata that holds the digest
_QUICK, _DENSEST = 5, 11  # levels of brotli; columns of whole numbers gain most by the last one
MOST_TEXT = 2**33  # most bytes of text in a file
# most rows for each byte of a file: where every column is constant, ours reach 48, and compacted ones 80; a crafted file claims any number
MOST_ROWS = 100


def check_table(table: str) -> None:
    """Raise ValueError unless there is such a table."""
    if table not in SCHEMAS:
        raise ValueError(f"there is no table {table!r}: use one of {', '.join(SCHEMAS)}")


def serialise(rows: pa.Table) -> bytes:
    """Encode rows as a Parquet file in memory, so that an exception can't leave a valid but truncated file anywhere."""
    if rows.num_rows > FEW_ROWS:
        return seal(_encoded(rows))
    # zstd and dictionaries take a reader five times as long for the few rows of a small pack, and save it nothing
    return seal(with_copy(_encoded(rows, compression="snappy", use_dictionary=False), rows))


def densest(orders: Iterable[pa.Table]) -> bytes:
    """Encode rows, given in all orders that will do, as a file without a second copy and as small as we can make it, which takes long.

    Order and encoding are those of the smallest file at a lower level of compression, which is far faster.
    """
    ways = [partial(_encoded, rows, compression="brotli", **options) for rows in orders for options in _dense(rows)]
    best = min(ways, key=lambda way: len(way(compression_level=_QUICK)))
    return seal(best(compression_level=_DENSEST))


def _dense(rows: pa.Table) -> list[dict[str, Any]]:
    """Three ways to encode rows."""
    # this encoding puts the last bytes of all numbers side by side: zeros where floats were rounded to float32 or integers are small
    floats = {field.name: "BYTE_STREAM_SPLIT" for field in rows.schema if pa.types.is_floating(field.type)}
    numbers = {field.name: "BYTE_STREAM_SPLIT" for field in rows.schema if _is_number(field.type)}
    # dictionary indices would hide from the compression what numbers have in common
    words = [field.name for field in rows.schema if not _is_number(field.type)]
    # the types are those of the table's schema, and no reader asks for smallest and largest values: 40 % of a small file
    return [
        {"use_dictionary": words, "write_statistics": False, "store_schema": False, "column_encoding": encoding}
        for encoding in (None, floats, numbers)
    ]


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)


def _encoded(rows: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    options = {"compression": "zstd", "write_page_checksum": True} | options
    with pa.parquet.ParquetWriter(sink, rows.schema, **options) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata({_DIGEST: BLANK})
    return sink.getvalue().to_pybytes()


def deserialise(data: bytes) -> pa.Table:
    """The rows of a file that `serialise` wrote, whatever their schema. Raises ArrowInvalid where it is no such file or is damaged."""
    if state(data) == "damaged":
        raise pa.ArrowInvalid(_CHANGED)
    return pa.parquet.read_table(pa.BufferReader(data), page_checksum_verification=True)


def conform(table: str, rows: pa.Table) -> pa.Table:
    """Give `rows` the columns, order and types of `table`, absent nullable columns as nulls. Raises ValueError where they do not fit."""
    check_table(table)
    schema = SCHEMAS[table]
    _check_columns(f"rows for table {table!r}", schema, rows.schema.names, "correct the columns")
    try:
        return _with_nulls(table, schema.names, rows).cast(schema)
    except (pa.ArrowException, ValueError) as error:
        raise ValueError(f"rows for table {table!r} do not fit its schema: {error}") from error


@dataclass(frozen=True)
class _Wanted:
    """What is read of the file at `path`: these columns of those rows of a table that pass the filter."""

    path: str
    table: str
    columns: list[str]
    filter: pa.compute.Expression | None = None

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def cure(self) -> str:
        return (
            f"move it out of the store, with replicates/{self.name} if there is one, and run the study again for what it held"
        )

    def unreadable(self, error: Exception) -> DamagedFile:
        return DamagedFile(
            f"{self.path} can't be read as a Parquet file of table {self.table!r} ({reason(error)}); {self.cure}"
        )


def read_file(
    filesystem: pyarrow.fs.FileSystem, path: str, table: str, columns: list[str], filter: pa.compute.Expression | None = None
) -> pa.Table:
    """Read columns of one file of a table; columns that were appended to the table later are null.

    Raises DamagedFile, naming the file, where it is truncated, has another schema or is not named for its pack, and StoreError where the
    store does not hand it out, which is no fault of the file.
    """
    wanted = _Wanted(path, table, columns, filter)
    try:
        rows = _of_file(filesystem, wanted)
    except DamagedFile:
        raise
    except FileNotFoundError as error:
        raise MissingFile(f"{path} is not there") from error
    except PermissionError as error:
        raise StoreError(f"{path} can't be read ({reason(error)})") from error
    except (pa.ArrowException, IsADirectoryError) as error:
        raise wanted.unreadable(error) from error
    except OSError:  # bytes that are no Parquet file, or a store that did not answer: read alone, the bytes tell
        data = pa.py_buffer(content(filesystem, path))
        try:
            rows = _checked(wanted, pa.BufferReader(data), data)
        except DamagedFile:
            raise
        except (pa.ArrowException, OSError) as error:
            raise wanted.unreadable(error) from error
    if table != "failures" and "pack" in columns:
        _refuse_other_packs(wanted, rows["pack"].unique().to_pylist())
    return rows


def _of_file(filesystem: pyarrow.fs.FileSystem, wanted: _Wanted) -> pa.Table:
    """The rows, with what pyarrow and the file system raise. A small file is read whole, and its digest checked."""
    small = _small_local(wanted.path) if isinstance(filesystem, pyarrow.fs.LocalFileSystem) else None
    if small is not None:
        return _of_bytes(wanted, small)
    refuse_special(filesystem, wanted.path)
    with filesystem.open_input_file(wanted.path) as source:
        if source.size() <= _WHOLE:
            return _of_bytes(wanted, source.read())
        return _checked(wanted, source, wanted.path, filesystem)


def _of_bytes(wanted: _Wanted, data: bytes) -> pa.Table:
    """The rows of a file with these bytes: its second copy, if it has one that will do."""
    batch = from_file(data, wanted.table) if wanted.filter is None else None
    if batch is not None and not nulls_where_none_may_be(batch, wanted.table) and not impossible(batch):
        return pa.Table.from_batches([batch]).select(wanted.columns)
    if state(data) == "damaged":
        raise wanted.unreadable(ValueError(_CHANGED))
    return _checked(wanted, pa.BufferReader(data), pa.py_buffer(data))


def _checked(wanted: _Wanted, source: pa.NativeFile, *same: object) -> pa.Table:
    """The rows of a file that is open in `source`; same: what a fragment of it is made of."""
    rows = _rows(wanted, source, partial(_fragment, *same))
    _refuse_impossible(rows, wanted.path, wanted.table, wanted.cure)
    return rows


def _fragment(*of: object) -> "pa.dataset.ParquetFileFragment":
    from pyarrow import dataset  # here: with it comes pandas, which takes a report 0.3 s to load

    options = dataset.ParquetFragmentScanOptions(page_checksum_verification=True)
    return dataset.ParquetFileFormat(default_fragment_scan_options=options).make_fragment(*of)


def _refuse_other_packs(wanted: _Wanted, packs: list[str]) -> None:
    """Raise DamagedFile for a file that is not named for the pack of its rows. Compacted files hold many packs."""
    stem = wanted.name.removesuffix(SUFFIX)
    if not packs or packs == [stem] or wanted.name.startswith(COMPACTED):
        return
    if wanted.table == "probes" and len(packs) == 1 and stem.startswith(f"{packs[0]}."):
        return  # <pack>.<probe>, by `results.rows.probe_values`
    raise DamagedFile(
        f"{wanted.path} holds rows of pack {packs[0]}, and a file is named for its pack; rename it back or {wanted.cure}"
    )


def read_local_files(paths: Sequence[str], table: str, columns: list[str]) -> list[pa.Table]:
    """The rows of several local files in their order, as `read_file` returns them; neighbours of few rows come as one table.

    Most of what reading a small file takes is spent on calls of pyarrow, so whatever can be checked of many at once is.
    """
    parts = []
    filesystem = pyarrow.fs.LocalFileSystem()
    with_batches = ((path, _small_batch(path, table)) for path in paths)
    for small, run in itertools.groupby(with_batches, lambda pair: pair[1] is not None):
        names, batches = zip(*run, strict=True)
        rows = _together(names, batches, table) if small else None
        parts += [read_file(filesystem, path, table, columns) for path in names] if rows is None else [rows.select(columns)]
    return parts


def _small_batch(path: str, table: str) -> pa.RecordBatch | None:
    """The second copy of a file's rows; None where `read_file` must read the file, or say what is wrong with it."""
    try:
        data = _small_local(path)
    except OSError:
        return None
    return None if data is None else from_file(data, table)


def _together(paths: Sequence[str], batches: Sequence[pa.RecordBatch], table: str) -> pa.Table | None:
    """The rows of several files; None where those of one file may not fit its name or its schema."""
    rows = pa.Table.from_batches(batches, SCHEMAS[table]).combine_chunks()
    if nulls_where_none_may_be(rows, table) or impossible(rows):
        return None
    if table != "failures":
        stems = pa.array([path.rpartition("/")[2].removesuffix(SUFFIX) for path in paths])
        named = stems.take(pa.array(np.repeat(np.arange(len(batches)), [batch.num_rows for batch in batches])))
        if not pa.compute.all(pa.compute.equal(rows["pack"], named), min_count=0).as_py():
            return None
    return rows


def _small_local(path: str) -> bytes | None:
    """A local file of at most _WHOLE bytes, in a fifth of the time that pyarrow takes to open one; None for any other."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_size > _WHOLE:
            return None
        data = os.read(descriptor, about.st_size)
    finally:
        os.close(descriptor)
    return data if len(data) == about.st_size else None


def _refuse_impossible(rows: pa.Table, path: str, table: str, cure: str) -> None:
    """Raise DamagedFile for rows that no study writes; ArrowInvalid for nested texts that are no UTF-8: `_indexed` has seen the others."""
    for column in rows.columns:
        if pa.types.is_nested(column.type):
            column.validate(full=True)
    if wrong := impossible(rows):
        raise DamagedFile(f"{path} is no file of table {table!r}: {wrong}; {cure}")


def _read_columns(
    source: pa.NativeFile, file: pyarrow.parquet.ParquetFile, columns: list[str], path: str, cure: str
) -> pa.Table:
    """Columns of a file as `_indexed` reads and checks them, with the texts written out."""
    schema = file.schema_arrow
    return _indexed(source, file, columns, path, cure).cast(pa.schema([schema.field(name) for name in columns]))


def _indexed(source: pa.NativeFile, file: pyarrow.parquet.ParquetFile, columns: list[str], path: str, cure: str) -> pa.Table:
    """Columns of a file, with texts as indices into the distinct ones.

    Raises DamagedFile where the texts written out have more than MOST_TEXT bytes: a few kilobytes can repeat one long text many times.
    """
    schema = file.schema_arrow
    texts = [name for name in columns if pa.types.is_string(schema.field(name).type)]
    indexed = pa.parquet.ParquetFile(
        source, metadata=file.metadata, read_dictionary=texts, page_checksum_verification=True
    ).read(columns, use_threads=False)
    chunks = [chunk for name in texts for chunk in indexed[name].chunks]
    lengths = [pa.compute.binary_length(chunk.dictionary) for chunk in chunks]
    for chunk in chunks:
        chunk.dictionary.validate(full=True)  # texts that are no UTF-8 are read as they stand
    # first a bound that is found at once: as if each row had the longest text
    if sum((pa.compute.max(sizes).as_py() or 0) * len(chunk) for sizes, chunk in zip(lengths, chunks, strict=True)) > MOST_TEXT:
        written = (sizes.take(chunk.indices).cast(pa.int64()) for sizes, chunk in zip(lengths, chunks, strict=True))
        size = sum(pa.compute.sum(sizes, min_count=0).as_py() for sizes in written)
        if size > MOST_TEXT:
            raise DamagedFile(f"{path} holds {size:,} bytes of text, and at most {MOST_TEXT:,} are read; {cure}")
    return indexed


def _rows(wanted: _Wanted, source: pa.NativeFile, fragment: "Callable[[], pa.dataset.ParquetFileFragment]") -> pa.Table:
    """`read_file` without the checks of packs and values. `source` and `fragment()` are the same file."""
    path, table, columns, filter, cure = wanted.path, wanted.table, wanted.columns, wanted.filter, wanted.cure
    schema = SCHEMAS[table]
    size = _check_footer(source, path, cure)
    file = pa.parquet.ParquetFile(source, page_checksum_verification=True)
    if file.metadata.num_rows > MOST_ROWS * size:
        raise DamagedFile(f"{path} claims {file.metadata.num_rows} rows in {size} bytes, which no study wrote; {cure}")
    count = file.metadata.num_columns  # fewer in a file from before a column was appended
    if filter is None and count <= len(schema) and file.metadata.schema.equals(_written_schema(table, count)):
        # nearly always, and the checks below take a third of the time
        present = set(schema.names[:count])
        kept = [column for column in columns if column in present]
        rows = _read_columns(source, file, kept, path, cure)
        if rows.schema.equals(_columns_of(table, tuple(kept))):
            return rows if kept == columns else _with_nulls(table, columns, rows)
    file_schema = file.schema_arrow
    names = file_schema.names
    if names[: len(schema)] == schema.names and len(names) > len(schema):  # columns are only ever appended
        column = names[len(schema)][:100]
        raise DamagedFile(
            f"{path} has a column {column!r}, which a newer version of manyseeds wrote: upgrade manyseeds to read it"
        )
    if not file_schema.equals(schema):
        _check_columns(path, schema, names, cure)
        for field in schema:
            if field.name in names and file_schema.field(field.name).type != field.type:
                kinds = f"{file_schema.field(field.name).type}, not {field.type}"
                raise DamagedFile(f"{path} is no file of table {table!r}: column {field.name!r} is {kinds}; {cure}")
    if filter is not None:
        _indexed(source, file, [name for name in names if pa.types.is_string(schema.field(name).type)], path, cure)
        # with nullable fields: the scanner does not look for nulls, so they are looked for by the caller
        nullable = pa.schema([field.with_nullable(True) for field in schema])
        rows = fragment().to_table(schema=nullable, columns=columns, filter=filter)
    else:
        # four times as fast as the scanner, for many small files
        read = _read_columns(source, file, [column for column in columns if column in names], path, cure)
        rows = _with_nulls(table, columns, read)
    for column in columns:
        if not schema.field(column).nullable and rows[column].null_count:
            raise DamagedFile(f"{path} is no file of table {table!r}: column {column!r} has nulls; {cure}")
    return rows


@cache
def _columns_of(table: str, columns: tuple[str, ...]) -> pa.Schema:
    return pa.schema([SCHEMAS[table].field(column) for column in columns])


@cache
def _written_schema(table: str, count: int) -> pyarrow.parquet.ParquetSchema:
    """The schema of the files that `serialise` writes, with the first columns of the table."""
    rows = pa.schema(list(SCHEMAS[table])[:count]).empty_table()
    return pyarrow.parquet.ParquetFile(pa.BufferReader(serialise(rows))).metadata.schema


def _with_nulls(table: str, columns: list[str], rows: pa.Table) -> pa.Table:
    """Take these columns of `rows`, with nulls for those that it lacks."""
    present = rows.column_names
    return pa.table(
        {
            column: rows[column] if column in present else pa.nulls(rows.num_rows, SCHEMAS[table].field(column).type)
            for column in columns
        }
    )


def _check_footer(source: pa.NativeFile, path: str, cure: str) -> int:
    """The size of a file in bytes. Raises DamagedFile, before its metadata is parsed, where that is larger than MOST_FOOTER."""
    size: int = source.size()
    if size > MOST_FOOTER:  # a smaller file can't hold more, and is spared the request
        source.seek(size - 8)
        footer = int.from_bytes(source.read(4), "little")
        source.seek(0)
        if footer > MOST_FOOTER:
            raise DamagedFile(f"{path} has {footer} bytes of metadata, and at most {MOST_FOOTER} are read; {cure}")
    return size


def _check_columns(where: str, schema: pa.Schema, columns: Iterable[str], cure: str) -> None:
    """Raise DamagedFile where `columns` lack a required one, have one unknown to the table, or one twice."""
    columns = list(columns)
    extra = [name for name in columns if name not in schema.names]
    missing = [f.name for f in schema if not f.nullable and f.name not in columns]
    faults = [f"no column {name!r}" for name in missing[:1]] + [
        f"a column {name[:100]!r} unknown to the table" for name in extra[:1]
    ]
    if len(set(columns)) < len(columns):
        faults.append("two columns of one name")
    if faults:
        raise DamagedFile(f"{where}: has {' and '.join(faults)}; {cure}")
