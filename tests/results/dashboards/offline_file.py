"""W&B's offline file, read back record by record."""

import struct
import time
from pathlib import Path


def read_records(folder) -> list:
    """The records of the one run in a folder, once the last is there."""
    (file,) = Path(folder).glob("*.wandb")
    return _complete(file)


def _records(path: Path) -> list:
    """The protobuf records of a .wandb file: 7 bytes of header, then a LevelDB log of blocks of 32 KiB."""
    from wandb.proto import wandb_internal_pb2

    data, at, parts, found = path.read_bytes(), 7, [], []
    assert data[:4] == b":W&B"
    while at < len(data):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        length, kind = struct.unpack("<HB", data[at + 4 : at + 7])
        if kind == 0 or at + 7 + length > len(data):  # the end, for now
            break
        parts.append(data[at + 7 : at + 7 + length])
        at += 7 + length
        if kind in (1, 4):  # a whole record, or the last part of one
            record = wandb_internal_pb2.Record()
            record.ParseFromString(b"".join(parts))
            found.append(record)
            parts = []
    return found


def _complete(path: Path) -> list:
    """The records once the last one is there: W&B's own process writes them out after `finish` has returned."""
    for _ in range(300):
        found = _records(path)
        if any(record.WhichOneof("record_type") == "exit" for record in found):
            return found
        time.sleep(0.1)
    raise AssertionError(f"{path} was not finished within 30 s")
