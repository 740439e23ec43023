"""Which manifest of a study holds: the plan is immutable, so a study that was extended has several."""

import json
from typing import Any

import pyarrow.fs

from results.store import Store, list_names, read_bytes

FOLDER = "manifests"
SUFFIX = ".yaml"


def manifest_path(manifest_hash: str) -> str:
    """Where a manifest lies, relative to its study."""
    return f"{FOLDER}/{manifest_hash}{SUFFIX}"


def newest_manifest(store: Store) -> tuple[str, dict[str, Any]] | None:
    """Hash and content of the manifest that was written last, or None; of several of one time, the one that plans most.

    Raises ValueError, naming the file, where it is none.
    """
    names = [name for name in list_names(store, FOLDER) if name.endswith(SUFFIX)]
    if not names:
        return None
    infos: list[pyarrow.fs.FileInfo] = store.filesystem.get_file_info([store.path(FOLDER, name) for name in names])
    last = max(info.mtime_ns for info in infos)
    hashes = [name.removesuffix(SUFFIX) for name, info in zip(names, infos, strict=True) if info.mtime_ns == last]
    return max(((each, read_manifest(store, each)) for each in hashes), key=lambda found: len(found[1]["replicates"]))


def read_manifest(store: Store, manifest_hash: str) -> dict[str, Any]:
    """The content of one manifest. Raises ValueError, naming the file, where it is none."""
    path = manifest_path(manifest_hash)
    try:
        content = json.loads(read_bytes(store, path))
    except ValueError as error:
        raise ValueError(
            f"{store.path(path)} is no manifest ({error}); move it out of the store, and run the study again"
        ) from error
    if not isinstance(content, dict) or not {"study", "sets", "conditions", "replicates"} <= content.keys():
        raise ValueError(f"{store.path(path)} is no manifest of a study; move it out of the store, and run the study again")
    return content
