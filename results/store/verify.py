"""`manyseeds verify`: whether every file of a store is as it was written, and every committed evaluation has its rows.

Tables, checkpoints and kept weights carry a digest of their bytes (`results.store.seal`), and a manifest is named for one. Of files that an
older version wrote nothing is known: tables are read instead, which finds some damage. The two copies of the rows of a small file
(`results.store.second_copy`) must agree.
"""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Literal

from results.errors import DamagedFile
from results.rows.plural import counted
from results.store.filesystem import content, listing
from results.store.manifest import FOLDER as MANIFESTS
from results.store.manifest import NEWEST, decompressed, digest, manifest_files, named_for, named_manifest
from results.store.parquet import read_file
from results.store.schema import SCHEMAS
from results.store.seal import State, state
from results.store.second_copy import copies_differ
from results.store.tables import Store, check_name, committed, scored

_PATTERNS = {
    **dict.fromkeys([*SCHEMAS, "rescored", "glitches"], r".*\.parquet"),
    MANIFESTS: r".*\.yaml(\.gz)?",
    "checkpoints": r".*/[0-9]+\.safetensors",
}
_AGAIN = "run the study again: what was in it is trained anew"
_CURES = {
    "replicates": f"delete it and {_AGAIN}",
    **dict.fromkeys(["evaluations", "profiles", "curves"], "delete it and replicates/{name}, and " + _AGAIN),
    "probes": "delete it and run manyseeds probe {store} again",
    "failures": "delete it: it tells of failed attempts alone, and the replicates that failed are then trained again",
    "rescored": "delete it and run manyseeds evaluate {store} again",
    "glitches": "delete it and run manyseeds glitches {store} again",
    MANIFESTS: "delete it and run the study again, which writes its plan anew",
    "checkpoints": "delete it: a run passes over it",
    "artifacts": "delete it; manyseeds rerun {store} {key} --keep weights makes it again",
}
_WRONG = {"damaged": "is damaged", "two copies": "holds its rows twice, and its two copies differ"}


@dataclass
class Verified:
    """The result of a check. damage: (what, cure) of everything that is not as it was written. unsealed: files without a digest, of which
    `example` is the first.
    """

    files: int = 0
    unsealed: int = 0
    example: str = ""
    damage: list[tuple[str, str]] = field(default_factory=list)


def verify(store: Store) -> Verified:
    """Check all files of a study and the weights of its committed replicates. Raises StoreError where the store can't be read."""
    verified = Verified()
    for kind, pattern in _PATTERNS.items():
        _check_files(store, kind, store.path(kind), re.compile(pattern), verified)
    _check_newest(store, verified)
    try:
        keys = committed(store)["key"].unique().to_pylist()
        rows = scored(store)
    except DamagedFile as error:
        if not verified.damage:
            verified.damage.append((str(error), "nothing more is known of its rows"))
        return verified
    for key in sorted(keys):
        try:
            check_name(key, "a key")
        except DamagedFile as error:
            verified.damage.append((f"{store.path('replicates')}: {error}", "move its file out of the store"))
            continue
        _check_files(store, "artifacts", store.shared("artifacts", key), re.compile(r".*\.safetensors"), verified)
    lacking = sorted(row["key"] for row in rows.select(["key", "lacking"]).to_pylist() if row["lacking"])
    if lacking:
        lack = "lacks" if len(lacking) == 1 else "lack"
        what = f"{counted(len(lacking), 'committed replicate')} {lack} rows of evaluation sets, such as {lacking[0]}"
        verified.damage.append((f"{store.path('evaluations')}: {what}", "run the study again, which trains them anew"))
    return verified


def show_verify(stores: list[Store], say: Callable[[str], None]) -> int:
    """Print what is damaged and what to do. Returns the exit status: 0 where nothing is damaged, else 1."""
    damaged = False
    for store in stores:
        verified = verify(store)
        for what, cure in verified.damage:
            say(
                f"{what}: {cure}; or bring the file from a copy of the store"
                if cure.startswith("delete")
                else f"{what}: {cure}"
            )
        older = f", {verified.unsealed} with no digest recorded ({verified.example})" if verified.unsealed else ""
        say(f"{store.study}: {verified.files} files{older}, {len(verified.damage) or 'nothing'} damaged")
        damaged |= bool(verified.damage)
    return int(damaged)


def state_of(kind: str, name: str, data: bytes) -> State:
    """Compare a file's bytes with their own digest, or a manifest's with its name. kind: its folder in the study, or artifacts."""
    if kind != MANIFESTS:
        return state(data)
    if (named := named_for(name)) is None:
        return "unsealed"
    try:
        return "whole" if digest(decompressed(data, name)) == named else "damaged"
    except DamagedFile:
        return "damaged"


def _check_files(store: Store, kind: str, folder: str, pattern: re.Pattern[str], verified: Verified) -> None:
    """Check the files below a folder and add them to the result."""
    paths = sorted(_paths(store, folder, pattern))
    with ThreadPoolExecutor(8) as threads:
        states = threads.map(lambda path: _state(store, kind, path), paths)
        for path, seen in zip(paths, states, strict=True):
            if seen is None:
                continue  # removed meanwhile: a pack was committed or the study compacted
            verified.files += 1
            if seen == "unsealed":
                verified.unsealed += 1
                verified.example = verified.example or path
            if seen in _WRONG:
                key = path.split("/")[-3][:12] if kind == "artifacts" else ""
                cure = _CURES[kind].format(name=path.rpartition("/")[2], store=store.shell_word, key=key)
                verified.damage.append((f"{path} {_WRONG[seen]}", cure))


def _paths(store: Store, folder: str, pattern: re.Pattern[str]) -> Iterator[str]:
    for info in listing(store.filesystem, folder, recursive=True):
        if not info.base_name.startswith(".") and pattern.fullmatch(info.path[len(folder) + 1 :]):
            yield info.path


def _state(store: Store, kind: str, path: str) -> State | Literal["two copies"] | None:
    try:
        data = content(store.filesystem, path)
        seen = state_of(kind, path.rpartition("/")[2], data)
        if seen == "whole" and kind in SCHEMAS and copies_differ(data, kind):
            return "two copies"
        if seen == "unsealed" and kind in SCHEMAS:
            read_file(store.filesystem, path, kind, SCHEMAS[kind].names)
    except FileNotFoundError:
        return None
    except DamagedFile:  # raised by `read_file`
        return "damaged"
    return seen


def _check_newest(store: Store, verified: Verified) -> None:
    try:
        name = named_manifest(store)
    except DamagedFile:
        name = ""
    if name is not None:
        verified.files += 1
        if name not in manifest_files(store):
            cure = "delete it and run the study again, which writes it anew"
            verified.damage.append((f"{store.path(NEWEST)} names no manifest of the study", cure))
