"""The scalars in TensorBoard's event files, which a script may leave in place of a file of metrics.

A file is records of a length (8 bytes), its checksum (4), an `Event` as protobuf, and its checksum (4). The last one may be cut off.
"""

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from harness.experiments.entries import PLACES, BadResult
from results.plain_values import Row

EVENTS = "events.out.tfevents*"
_LENGTH, _CHECKSUM = 8, 4
_MOST = 2**28  # bytes of a file: scalars are small, images are not read
_PACKAGES = {"tensorboardX": "tensorboardX.proto.event_pb2", "tensorboard": "tensorboard.compat.proto.event_pb2"}
_KINDS = {1: "<f4", 2: "<f8"}  # of TensorFlow's tensors


def scalars_of(folder: Path) -> Iterator[Row]:
    """{"step": …, tag: value} of every event with scalars in the event files of a folder and of those below it. BadResult for other bytes.

    Writers with several folders may use one tag in all of them, as for training and validation: it is called FOLDER/tag then. So is a tag
    with the name of a place, as ./step, which the event's own step would be taken for.
    """
    paths = sorted(folder.rglob(EVENTS))
    events = [(path.parent, step, values) for path in paths for step, values in _scalars(path)]
    places: dict[str, set[Path]] = {}
    for place, _, values in events:
        for tag in values:
            places.setdefault(tag, set()).add(place)
    for place, step, values in events:
        within = place.relative_to(folder).as_posix()
        clash = {tag for tag in values if tag in PLACES or len(places[tag]) > 1}
        yield {"step": step} | {f"{within}/{tag}" if tag in clash else tag: value for tag, value in values.items()}


def _scalars(path: Path) -> Iterator[tuple[int, dict[str, float]]]:
    event_class = _event_class()
    from google.protobuf.message import DecodeError

    if not path.is_file():
        raise BadResult(f"{path.name} is no file: TensorBoard writes one, and nothing else may have its name")
    if path.stat().st_size > _MOST:
        raise BadResult(f"{path.name} has {path.stat().st_size:,} bytes, and at most {_MOST:,} are read: log scalars apart")
    try:
        for data in _records(path.read_bytes()):
            event = event_class.FromString(data)
            values = {each.tag: value for each in event.summary.value if (value := _value(each)) is not None}
            if values:
                yield event.step, values
    except DecodeError:
        raise BadResult(f"{path.name} is no event file of TensorBoard") from None


def _value(summary: Any) -> float | None:
    """The number of a value, as torch writes it or, in a tensor of one element, TensorFlow and JAX; None for everything else."""
    if summary.WhichOneof("value") == "simple_value":
        return float(summary.simple_value)
    if summary.WhichOneof("value") != "tensor" or summary.tensor.dtype not in _KINDS or summary.tensor.tensor_shape.dim:
        return None
    tensor = summary.tensor
    numbers = [*tensor.float_val, *tensor.double_val] or np.frombuffer(tensor.tensor_content, _KINDS[tensor.dtype])
    return float(numbers[0]) if len(numbers) == 1 else None


def _event_class() -> Any:
    """`Event` of the package that is installed: a script that writes such files has one."""
    for package, module in _PACKAGES.items():
        if find_spec(package) is not None:
            return import_module(module).Event
    raise BadResult("event files need tensorboardX: pip install 'manyseeds[tensorboard]', or write JSON lines")


def _records(data: bytes) -> Iterator[bytes]:
    at = 0
    while at + _LENGTH + _CHECKSUM <= len(data):
        start = at + _LENGTH + _CHECKSUM
        end = start + int.from_bytes(data[at : at + _LENGTH], "little")
        if end + _CHECKSUM > len(data):
            return
        yield data[start:end]
        at = end + _CHECKSUM
