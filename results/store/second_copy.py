"""The second copy of the rows of a small file: an Arrow record batch in the metadata of the Parquet file.

Parsing the footer and the column chunks of a file takes as long for one row as for a thousand. A file of few rows therefore holds them a
second time, as a record batch that a reader takes in a tenth of the time. The file's digest covers both copies, and `manyseeds verify`
checks that they agree. Where there is no digest, no second copy, or one of another schema, the Parquet columns are read.
"""

import base64
import hashlib
from functools import cache

import pyarrow as pa
import pyarrow.parquet

from results.store.schema import SCHEMAS

FEW_ROWS = 256
_MOST_BATCH = 2**18  # bytes of a record batch: most have a tenth of that


def encode(rows: pa.Table) -> str:
    """What follows the digest in a file of few rows: their schema's mark, the size of the record batch, and the batch."""
    (batch,) = rows.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], rows.schema)]
    message = batch.serialize()
    if message.size > _MOST_BATCH:
        return ""
    packed = base64.b64encode(pa.compress(message, "snappy", asbytes=True)).decode()
    return f"{_schema_mark(rows.schema).decode()}{message.size}:{packed};"


def has_no_copy(data: bytes, table: str) -> bool:
    """Whether a file can't hold a second copy that readers take; known without a pass over all its bytes for their digest."""
    return _table_mark(table) not in data


def from_file(data: bytes, start: int, table: str) -> pa.RecordBatch | None:
    """The rows of a file whose digest was checked and ends at `start`; None where its Parquet columns must be read.

    A caller looks for nulls (`nulls_where_none_may_be`): many batches are looked through at once.
    """
    mark = _table_mark(table)
    if not data.startswith(mark, start):
        return None
    size, _, packed = data[start + len(mark) : data.find(b";", start)].partition(b":")
    try:
        if not 0 < int(size) <= _MOST_BATCH:
            return None
        message = pa.decompress(base64.b64decode(packed, validate=True), int(size), "snappy")
        batch = pa.ipc.read_record_batch(message, SCHEMAS[table])
        batch.validate(full=True)  # whoever sealed the file may have written anything
    except (pa.ArrowException, ValueError, OSError):
        return None
    return batch


def nulls_where_none_may_be(rows: pa.RecordBatch | pa.Table, table: str) -> bool:
    """Whether a column that the schema of the table requires has nulls."""
    return any(rows.column(index).null_count for index in _required(table))


def copies_differ(data: bytes, start: int, table: str) -> bool:
    """Whether a file whose digest ends at `start` holds a second copy that readers take, and its Parquet columns hold other rows."""
    batch = from_file(data, start, table)
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
    """A column as it can be compared: NaN does not equal itself."""
    return column.view(pa.int64()) if pa.types.is_float64(column.type) else column


def _schema_mark(schema: pa.Schema) -> bytes:
    """What the second copy begins with: a record batch is read with the schema that it was written with, or not at all."""
    fields = [(field.name, str(field.type), field.nullable) for field in schema]
    return f",rows-{hashlib.sha256(repr(fields).encode()).hexdigest()[:16]}:".encode()


@cache
def _table_mark(table: str) -> bytes:
    return _schema_mark(SCHEMAS[table])


@cache
def _required(table: str) -> tuple[int, ...]:
    return tuple(index for index, field in enumerate(SCHEMAS[table]) if not field.nullable)
