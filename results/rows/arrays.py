"""Arrays that the replicates of a study of experiments returned: the files that `harness.experiments.kept_arrays` writes."""

import json
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow.compute as pc
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load

from results.errors import DamagedFile, StudyError, nearest
from results.rows.keys import resolve_key
from results.rows.load_rows import chosen_study
from results.rows.measures import ARRAY, label
from results.store.filesystem import content, info_of
from results.store.manifest import as_planned, newest_manifest, planned_rows
from results.store.seal import state
from results.store.tables import Store, committed, open_store, read


class KeptArray(NamedTuple):
    """An array of one replicate. name: its name, followed by its set in parentheses where it has one."""

    condition: str
    seed: int
    key: str
    step: int
    name: str
    values: NDArray[Any]


def arrays(
    store: Store | str | os.PathLike[str], study: str | None = None, name: str | None = None, key: str | None = None
) -> Iterator[KeptArray]:
    """The arrays of a study's replicates by condition, seed and step, read one file at a time.

    study: may be left out where the store has one. name: only the array of this name; key: only the arrays of this replicate, whose first
    digits are enough. Without a key it is the replicates of the newest plan. Raises StudyError where there is no such study or replicate
    and where no replicate has an array of that name, and DamagedFile where a file is gone, damaged or another replicate's.
    """
    opened = store if isinstance(store, Store) else open_store(store, chosen_study(os.fspath(store), study, "arrays"))
    finished = as_planned(opened, committed(opened))
    if key is not None:
        finished = finished.filter(pc.field("key") == resolve_key([opened], key))
    elif newest := newest_manifest(opened):
        finished = planned_rows(newest[1], finished)
    rows = read(
        opened, "evaluations", ["key", "step", "set", "metric"], pc.field("kind") == ARRAY, winning=finished
    ).to_pylist()
    labelled = {(row["key"], row["step"], label(row["set"], row["metric"])) for row in rows}
    names = sorted({array for _, _, array in labelled})
    if name is not None and name not in names:
        raise StudyError(
            f"no replicate of {opened.study} has an array {name!r}; arrays: {', '.join(names) or 'none'}{nearest(name, names)}"
        )
    wanted: dict[str, dict[int, list[str]]] = {}
    for owner, step, array in sorted(labelled):
        if name in (None, array):
            wanted.setdefault(owner, {}).setdefault(step, []).append(array)
    order = finished.select(["condition", "init_seed", "key"]).to_pylist()
    for row in sorted(order, key=lambda row: (row["condition"], row["init_seed"])):
        for step, expected in wanted.get(row["key"], {}).items():
            by_name = _file(opened, row["key"], step)
            for array in expected:
                if array not in by_name:
                    raise DamagedFile(
                        f"{_path(opened, row['key'], step)} lacks the array {array!r}: delete it; {_cure(opened, row['key'])}"
                    )
                yield KeptArray(row["condition"], row["init_seed"], row["key"], step, array, by_name[array])


def _path(store: Store, key: str, step: int) -> str:
    return store.shared("artifacts", key, "0", f"{step}.safetensors")


def _cure(store: Store, key: str) -> str:
    return f"manyseeds rerun {store.shell_word} {key[:12]} --keep weights makes it again"


def _file(store: Store, key: str, step: int) -> dict[str, NDArray[Any]]:
    """The arrays by name in the file of a replicate's step."""
    where = _path(store, key, step)
    if not info_of(store.filesystem, where).is_file:
        raise DamagedFile(f"{where}, which holds arrays of a replicate, is gone: {_cure(store, key)}")
    data = content(store.filesystem, where)
    damaged = DamagedFile(f"{where} is damaged, or of another replicate: delete it; {_cure(store, key)}")
    if state(data) != "whole":
        raise damaged
    try:
        by_name: dict[str, NDArray[Any]] = load(data)
        owner = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]["key"]
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise damaged from error
    if owner != key:
        raise damaged
    return by_name
