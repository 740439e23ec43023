"""Checkpoints of a pack: one safetensors file, tensors and JSON metadata, never anything that needs unpickling.

<store>/<study>/checkpoints/<pack>/<step>.safetensors; the two newest are kept, as either may be damaged, and none once the pack is
committed. Training goes on only from a file with a digest of its bytes (`results.store.seal`).
"""

import json
import re
from collections.abc import Callable

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from results.errors import MissingFile
from results.store.seal import BLANK, seal, state
from results.store.tables import Store, delete, list_names, read_bytes, write_bytes

Found = tuple[dict[str, Tensor], dict]  # tensors by name, and the state beside them
_KEPT = 2


def write(store: Store, pack: str, step: int, tensors: dict[str, Tensor], state: dict) -> None:
    """Write the checkpoint of `step`, then remove all but it and the one before."""
    about = {"state": json.dumps(state), "digest": BLANK}
    data = save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, about)
    write_bytes(store, _path(pack, step), seal(data))
    for older in [earlier for earlier in steps(store, pack) if earlier <= step][:-_KEPT]:
        delete(store, _path(pack, older))


def read(
    store: Store,
    pack: str,
    unfit: Callable[[Found], str] = lambda checkpoint: "",
    say: Callable[[str], None] = lambda text: None,
) -> Found | None:
    """The tensors and state of the newest checkpoint that is whole and fits, or None; newer ones are removed, and said to be.

    unfit: says why training can't go on from a whole checkpoint; an empty string where it can.
    """
    for step in reversed(steps(store, pack)):
        checkpoint = _content(read_bytes(store, _path(pack, step)))
        why = checkpoint if isinstance(checkpoint, str) else unfit(checkpoint)
        if not isinstance(checkpoint, str) and not why:
            return checkpoint
        delete(store, _path(pack, step))
        say(f"the checkpoint of step {step} of pack {pack} is removed: {why}; training goes on from an earlier step")
    return None


def newest(store: Store, pack: str) -> Found | None:
    """The tensors and state of the newest checkpoint that is whole, or None. Nothing is removed."""
    for step in reversed(steps(store, pack)):
        try:
            checkpoint = _content(read_bytes(store, _path(pack, step)))
        except MissingFile:  # its pack was committed meanwhile
            continue
        if not isinstance(checkpoint, str):
            return checkpoint
    return None


def _content(data: bytes) -> Found | str:
    """A checkpoint, or why the file is none."""
    if state(data) != "whole":
        return "it is damaged, or another version wrote it"
    try:
        tensors = load(data)
        size = int.from_bytes(data[:8], "little")
        return tensors, json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["state"])
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError):
        return "it is another file"


def steps(store: Store, pack: str) -> list[int]:
    """Steps that have a checkpoint, ascending."""
    matches = (re.fullmatch(r"([0-9]{1,18})\.safetensors", name) for name in list_names(store, f"checkpoints/{pack}"))
    return sorted(int(match[1]) for match in matches if match)


def clear(store: Store, pack: str) -> None:
    delete(store, f"checkpoints/{pack}")


def _path(pack: str, step: int) -> str:
    return f"checkpoints/{pack}/{step}.safetensors"
