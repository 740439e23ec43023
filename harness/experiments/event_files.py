"""The scalars in TensorBoard's event files, which a script may leave in place of a file of metrics.

A file is records of a length (8 bytes), its checksum (4), an `Event` as protobuf, and its checksum (4). The last one may be cut off.
"""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from harness.experiments.entries import BadResult

EVENTS = "events.out.tfevents*"
_LENGTH, _CHECKSUM = 8, 4
_MOST = 2**28  # bytes of a file: scalars are small, images are not read


def scalars_of(folder: Path, deep: bool = True) -> Iterator[dict[str, Any]]:
    """{"step": …, tag: value} of every event with scalars in the event files of a folder and, if deep, of those below it. BadResult for
    other bytes."""
    if find_spec("tensorboardX") is None:
        raise BadResult("event files need tensorboardX: pip install 'manyseeds[tensorboard]', or write JSON lines")
    from google.protobuf.message import DecodeError
    from tensorboardX.proto.event_pb2 import Event

    for path in sorted(folder.rglob(EVENTS) if deep else folder.glob(EVENTS)):
        if path.stat().st_size > _MOST:
            raise BadResult(f"{path.name} has {path.stat().st_size:,} bytes, and at most {_MOST:,} are read: log scalars apart")
        try:
            for data in _records(path.read_bytes()):
                event = Event.FromString(data)
                values = {
                    each.tag: each.simple_value for each in event.summary.value if each.WhichOneof("value") == "simple_value"
                }
                if values:
                    yield {"step": event.step} | values
        except DecodeError:
            raise BadResult(f"{path.name} is no event file of TensorBoard") from None


def _records(data: bytes) -> Iterator[bytes]:
    at = 0
    while at + _LENGTH + _CHECKSUM <= len(data):
        start = at + _LENGTH + _CHECKSUM
        end = start + int.from_bytes(data[at : at + _LENGTH], "little")
        if end + _CHECKSUM > len(data):
            return
        yield data[start:end]
        at = end + _CHECKSUM
