"""W&B runs in a local folder, as W&B writes them offline: settings, history and summary of each.

A file `run-ID.wandb` is a log in LevelDB's format. Blocks of 32 KiB hold records, each with a checksum (4 bytes), a length (2) and a kind
(1); a record that does not fit continues in the next block. A whole record is a protobuf `Record`, whose classes W&B installs.
"""

import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from results.errors import StudyError
from results.plain_values import Options, Row, Tree

PATTERN = "*.wandb"
_BLOCK, _HEADER, _START = 2**15, 7, b":W&B"
_LAST = (1, 4)  # kinds of a record, or of its last part
_MOST = 2**30  # bytes of a file


@dataclass
class OfflineRun:
    """One run.

    config: settings by dotted name, such as net.width. history: logged values by name, one mapping for each call. summary: the last
    values, or those that the script set. status: exit status, None where the run has not ended.
    """

    path: Path
    config: Tree = field(default_factory=dict)
    history: list[Row] = field(default_factory=list)
    summary: dict[str, Any] = field(default_factory=dict)
    status: int | None = None


def offline_run(path: Path) -> OfflineRun:
    """Read the run of one file. Raises StudyError for a file of another kind."""
    from google.protobuf.message import DecodeError
    from wandb.proto import wandb_internal_pb2

    proto: Any = wandb_internal_pb2  # chooses its classes when it is imported
    if not path.is_file():
        raise StudyError(f"{path} is no file: a W&B run is one, so move what is there away")
    if path.stat().st_size > _MOST:
        raise StudyError(f"{path} has {path.stat().st_size:,} bytes, and at most {_MOST:,} are read: export the runs as CSV")
    data = path.read_bytes()
    if data[: len(_START)] != _START[: len(data)]:  # W&B may not have written all of it
        raise StudyError(f"{path} is no file of a W&B run")
    run = OfflineRun(path)
    try:
        for part in _records(data):
            record = proto.Record.FromString(part)
            kind = record.WhichOneof("record_type")
            if kind == "run":
                run.config |= _flat(_values(record.run.config.update))
            elif kind == "config":
                run.config |= _flat(_values(record.config.update))
            elif kind == "history":
                run.history.append(_values(record.history.item))
            elif kind == "summary":
                run.summary |= _values(record.summary.update)
            elif kind == "exit":
                run.status = record.exit.exit_code
    except (DecodeError, ValueError, RecursionError) as error:
        raise StudyError(f"{path} can't be read as a W&B run: {error}") from error
    return run


def _records(data: bytes) -> Iterator[bytes]:
    """The records of a log, without one whose end is missing, as after a killed process. Raises ValueError for damaged records.

    W&B itself now and then leaves zeros at the end of a block.
    """
    at, whole = _HEADER, b""
    while at + _HEADER <= len(data):
        left = _BLOCK - at % _BLOCK
        if left < _HEADER:
            at += left
            continue
        size, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]
        checksum = int.from_bytes(data[at : at + 4], "little")
        at += _HEADER + size
        if at > len(data):
            return
        if zlib.crc32(data[at - size - 1 : at]) != checksum:
            raise ValueError(f"bytes {at - size:,} to {at - 1:,} are damaged, move the run away")
        if kind in (1, 2):  # the first part of one
            whole = b""
        whole += data[at - size : at]
        if kind in _LAST:
            yield whole


def _values(items: Any) -> Tree:
    """W&B's items as {name: value}, without its internal ones; the parts of a nested name are joined by dots."""
    values = {".".join(item.nested_key) or item.key: json.loads(item.value_json) for item in items}
    return {name: value for name, value in values.items() if not name.startswith("_wandb")}


def _flat(config: Options) -> Tree:
    flat: Tree = {}
    for name, value in config.items():
        if isinstance(value, dict) and value:
            flat |= {f"{name}.{inner}": deeper for inner, deeper in _flat(value).items()}
        else:
            flat[name] = json.dumps(value) if isinstance(value, list | dict) else value
    return flat
