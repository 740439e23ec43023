"""Measured rates, kept in the user's cache folder so that a plan and the run that follows measure each shape once.

A rate holds for one shape, pack size, device, numerics and version of this code: all of them are in the name of its file and in the file. A
pack whose file is damaged, or holds another rate, is measured again. Rates of a user's own model are not kept, as its module may change.
"""

import contextlib
import functools
import hashlib
import json
import math
import os
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path

from harness.planning.pack import Pack
from harness.planning.throughput import Rate
from harness.study.identity import canonical, digest
from results.plain_values import Tree, Value

_MOST = 4096  # files; beyond that the older half is removed
_MOST_BYTES = 2**20  # of a file
_CODE = ("harness", "models", "tasks")


def folder() -> Path:
    """$MANYSEEDS_CACHE, or manyseeds in the user's cache folder ($XDG_CACHE_HOME, or ~/.cache)."""
    own = os.environ.get("MANYSEEDS_CACHE")
    return Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "manyseeds"


class KeptRates:
    """The rates kept in one folder. say: told once that something there can't be used; fresh: ignore what is there, measure everything."""

    def __init__(self, root: Path, say: Callable[[str], None], fresh: bool = False):
        self._root, self._say, self._fresh = root / "rates", say, fresh
        self._said = False

    def find(self, pack: Pack, machine: str) -> Rate | None:
        """The kept rate of a pack of this shape and size on this machine; None where there is none that can be used."""
        if self._fresh or not _can_be_kept(pack):
            return None
        key = _key(pack, machine)
        path = self._path(key)
        try:
            if path.stat().st_size > _MOST_BYTES:
                raise ValueError("it is too long")
            return _rate(json.loads(path.read_bytes()), key)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            self._say_once(f"a kept measurement can't be used and is measured again ({path}: {error})")
            return None

    def keep(self, pack: Pack, machine: str, rate: Rate) -> None:
        if not _can_be_kept(pack):
            return
        key = _key(pack, machine)
        path = self._path(key)
        temporary = path.with_suffix(f".{os.getpid()}.tmp")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._thin_out()
            temporary.write_text(canonical({"key": key, "rate": asdict(rate)}))
            os.replace(temporary, path)
        except OSError as error:
            self._say_once(f"measurements can't be kept for the next command: {error}")

    def _path(self, key: Tree) -> Path:
        return self._root / f"{digest(key, 32)}.json"

    def _thin_out(self) -> None:
        names = os.listdir(self._root)
        if len(names) > _MOST:
            paths = sorted((self._root / name for name in names), key=lambda path: path.stat().st_mtime)
            for path in paths[: len(paths) // 2]:
                with contextlib.suppress(FileNotFoundError):  # another command thins out too
                    path.unlink()

    def _say_once(self, text: str) -> None:
        if not self._said:
            self._said = True
            self._say(text)


def _can_be_kept(pack: Pack) -> bool:
    return all(":" not in str(replicate.condition.config()["model"]["name"]) for replicate in pack.replicates[:1])


def _key(pack: Pack, machine: str) -> Tree:
    """Everything that a rate depends on."""
    return {
        "code": _code(),
        "keep": pack.keep,
        "kind": pack.kind,
        "machine": machine,
        "numerics": dict(pack.numerics),
        "signature": pack.signature,
        "size": len(pack.replicates),
        "watch": None if pack.watch is None else asdict(pack.watch),
    }


@functools.cache
def _code() -> str:
    """A digest of the sources that a rate depends on."""
    root, code = Path(__file__).parent.parent.parent, hashlib.sha256()
    for path in sorted(path for name in _CODE for path in (root / name).rglob("*") if path.suffix in (".py", ".c")):
        code.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return code.hexdigest()[:32]


def _rate(content: Value, key: Tree) -> Rate:
    """The rate in a file's content. ValueError where it is not one of `key`."""
    if not isinstance(content, dict) or content.get("key") != key or not isinstance(content.get("rate"), dict):
        raise ValueError("it is of something else")
    values = content["rate"]
    for field in fields(Rate):
        value = values.get(field.name)
        whole = field.type is int
        if type(value) not in ((int,) if whole else (int, float)) or not math.isfinite(value) or value < 0:
            raise ValueError(f"{field.name} = {value!r} is no measurement")
    if values.keys() != {field.name for field in fields(Rate)} or values["size"] != key["size"] or not values["step_s"]:
        raise ValueError("it is no measurement of this pack")
    return Rate(**values)
