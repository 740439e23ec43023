"""Checkpoints of a pack: one safetensors file, tensors and JSON metadata, never anything that needs unpickling.

<store>/<study>/checkpoints/<pack>/<step>.safetensors; only the newest is kept, and none once the pack is committed.
"""

import json
import re

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from results.store import Store, delete, list_names, read_bytes, write_bytes


def write(store: Store, pack: str, step: int, tensors: dict[str, Tensor], state: dict) -> None:
    """Write the checkpoint of `step`, then remove older ones."""
    data = save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, {"state": json.dumps(state)})
    write_bytes(store, _path(pack, step), data)
    for older in steps(store, pack):
        if older < step:
            delete(store, _path(pack, older))


def read(store: Store, pack: str) -> tuple[dict[str, Tensor], dict] | None:
    """The newest readable checkpoint's tensors and state; a damaged one is passed over for the one before, then for none."""
    for step in reversed(steps(store, pack)):
        data = read_bytes(store, _path(pack, step))
        try:
            tensors = load(data)
            size = int.from_bytes(data[:8], "little")
            return tensors, json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["state"])
        except (SafetensorError, ValueError, KeyError, TypeError, RecursionError):  # truncated, or another file in its place
            delete(store, _path(pack, step))
    return None


def steps(store: Store, pack: str) -> list[int]:
    """Steps that have a checkpoint, ascending."""
    found = (re.fullmatch(r"([0-9]{1,18})\.safetensors", name) for name in list_names(store, f"checkpoints/{pack}"))
    return sorted(int(match[1]) for match in found if match)


def clear(store: Store, pack: str) -> None:
    delete(store, f"checkpoints/{pack}")


def _path(pack: str, step: int) -> str:
    return f"checkpoints/{pack}/{step}.safetensors"
