"""The second copy of the rows of a small file: an Arrow record batch between the columns and the footer of the Parquet file.

Parsing the footer and the column chunks of a file takes as long for one row as for a thousand. A file of few rows therefore holds them a
second time, as a record batch that a reader takes in a tenth of the time. The copy ends where the footer begins:

    record batch, compressed · mark of the schema (8 bytes) · its size here and its size unpacked · CRC-32 of all of these

A reader checks this checksum alone. The file's digest covers both copies; `manyseeds verify` checks it, and that the copies agree. Where
there is no second copy, or it is damaged or of another schema, the digest is checked and the Parquet columns are read. Files of older
versions hold their second copy in the footer, which is no longer read.
"""

import hashlib
import struct
import zlib
from functools import cache

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet

from results.store.schema import MOST_VALUE, SCHEMAS

FEW_ROWS = 256
_MOST_BATCH = 2**18  # bytes of a record batch: most have a tenth of that
_YEAR_1, _YEAR_10000 = -62_135_596_800_000_000, 253_402_300_800_000_000  # microseconds
_COUNTS = {"errors", "count", "sequences", "sequences_wrong", "errors_sq", "errors_x_count", "count_sq", "length"}
_MOST_COUNT = 2**53
_CODEC = pa.Codec("lz4_raw")
_ABOUT = struct.Struct("<8sII")  # mark, packed size, unpacked size
_CHECK = struct.Struct("<I")
_FOOTER = struct.Struct("<I4s")  # the end of a Parquet file: the size of its footer, and b"PAR1"


def with_copy(data: bytes, rows: pa.Table) -> bytes:
    """Add the second copy of its rows to a Parquet file; the file is returned as it is where the copy would be large."""
    (batch,) = rows.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], rows.schema)]
    message = batch.serialize()
    if message.size > _MOST_BATCH:
        return data
    place = _before_footer(data)
    return data[:place] + _packed(message, _schema_mark(rows.schema)) + data[place:]


def from_file(data: bytes, table: str) -> pa.RecordBatch | None:
    """Read the rows of a file from its second copy; None where the digest must be checked and the Parquet columns read.

    The caller checks for nulls (`nulls_where_none_may_be`), which is faster for many batches at once.
    """
    end = _before_footer(data) - _CHECK.size
    start = end - _ABOUT.size
    if start < 0 or data[start : start + 8] != _table_mark(table):
        return None
    _, packed, size = _ABOUT.unpack_from(data, start)
    begin = start - packed
    if begin < 0 or not 0 < size <= _MOST_BATCH:
        return None
    view = memoryview(data)[begin:end]
    if not _holds(view, *_CHECK.unpack_from(data, end)):
        return None
    try:
        batch = pa.ipc.read_record_batch(_CODEC.decompress(view[:packed], size), SCHEMAS[table])
        batch.validate(full=True)  # whoever wrote the file may have written anything
    except (pa.ArrowException, ValueError, OSError):
        return None
    return batch


def nulls_where_none_may_be(rows: pa.RecordBatch | pa.Table, table: str) -> bool:
    """Whether a column that the schema of the table requires has nulls."""
    return any(rows.column(index).null_count for index in _required(table))


def impossible(rows: pa.RecordBatch | pa.Table) -> str:
    """The first thing in these rows that no study writes, as a part of a sentence; "" where there is none.

    That is a count below 0 or that no float holds, a null in a list, a number beyond MOST_VALUE, or a time beyond the years 1 to 9999.
    """
    for field in rows.schema:
        if field.name in _COUNTS:
            least, most = pa.compute.min_max(rows.column(field.name)).values()
            if least.is_valid and not 0 <= least.as_py() <= most.as_py() <= _MOST_COUNT:
                return f"column {field.name!r} has a count below 0 or above {_MOST_COUNT}"
        if pa.types.is_list(field.type):
            if pa.compute.list_flatten(rows.column(field.name)).null_count:
                return f"column {field.name!r} has nulls in its lists"
        elif field.name == "value":
            least, most = pa.compute.min_max(rows.column(field.name)).values()
            # the fast check comes first, but an infinite number hides the finite ones from it
            if least.is_valid and not -MOST_VALUE <= least.as_py() <= most.as_py() <= MOST_VALUE:
                sizes = pa.compute.abs(rows.column(field.name))
                if pa.compute.any(pa.compute.and_(pa.compute.is_finite(sizes), pa.compute.greater(sizes, MOST_VALUE))).as_py():
                    return f"column 'value' has a number beyond {MOST_VALUE:g}"
        elif pa.types.is_timestamp(field.type):
            first, last = pa.compute.min_max(rows.column(field.name).cast(pa.int64())).values()
            if first.is_valid and not _YEAR_1 <= first.as_py() <= last.as_py() < _YEAR_10000:
                return f"column {field.name!r} has a time that is not in the years 1 to 9999"
    return ""


def copies_differ(data: bytes, table: str) -> bool:
    """Whether a whole file holds a second copy that readers take, and its Parquet columns hold other rows."""
    batch = from_file(data, table)
    if batch is None or nulls_where_none_may_be(batch, table):
        return False
    try:
        columns = pyarrow.parquet.read_table(pa.BufferReader(data), page_checksum_verification=True)
    except (pa.ArrowException, OSError):
        return True
    if not columns.schema.equals(batch.schema) or columns.num_rows != batch.num_rows:
        return True
    return any(not _bits(columns[name].combine_chunks()).equals(_bits(batch[name])) for name in columns.column_names)


def _bits(column: pa.Array) -> pa.Array:
    """A column whose values can be compared for equality: floats as their bits, since NaN does not equal itself."""
    return column.view(pa.int64()) if pa.types.is_float64(column.type) else column


def _packed(message: pa.Buffer, mark: bytes) -> bytes:
    """A record batch as the second copy holds it."""
    packed = _CODEC.compress(message, asbytes=True)
    copy = packed + _ABOUT.pack(mark, len(packed), message.size)
    return copy + _CHECK.pack(zlib.crc32(copy))


def _holds(copy: memoryview, checksum: int) -> bool:
    return zlib.crc32(copy) == checksum


def _before_footer(data: bytes) -> int:
    """The place where the footer of a Parquet file begins; 0 where the bytes are no whole Parquet file."""
    if len(data) < _FOOTER.size:
        return 0
    size, magic = _FOOTER.unpack_from(data, len(data) - _FOOTER.size)
    return max(0, len(data) - _FOOTER.size - size) if magic == b"PAR1" else 0


def _schema_mark(schema: pa.Schema) -> bytes:
    """The mark of a schema: a record batch is read with the schema that it was written with, or not at all."""
    fields = [(field.name, str(field.type), field.nullable) for field in schema]
    return hashlib.sha256(repr(fields).encode()).digest()[:8]


@cache
def _table_mark(table: str) -> bytes:
    return _schema_mark(SCHEMAS[table])


@cache
def _required(table: str) -> tuple[int, ...]:
    return tuple(index for index, field in enumerate(SCHEMAS[table]) if not field.nullable)
