"""Uniting stores, and rewriting a store's many small files as one a table; readers see the same rows before and after.

Neither may run while another process writes into the store's study or compacts it.
"""

import hashlib
import itertools
import os
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs

from results.errors import StudyError
from results.filesystem import content, info_of, join, listing
from results.manifest import FOLDER, manifest_path, newest_manifest, write_manifest
from results.parquet import COMPACTED, SUFFIX, serialise
from results.schema import SCHEMAS
from results.store import (
    ROW,
    Store,
    anti_join,
    check_name,
    commit,
    delete,
    read,
    read_bytes,
    read_files,
    semi_join,
    table_files,
    winners,
    write_bytes,
    write_file,
)

_DEPENDENT = [table for table in SCHEMAS if table not in ("replicates", "failures")]


@dataclass(frozen=True)
class Merged:
    """What `merge` added; `superseded` of the (key, stage) in the result are held by more than one pack."""

    packs: int
    replicates: int
    superseded: int
    failures: int
    manifests: int
    artifacts: int


def compact(store: Store) -> tuple[int, int]:
    """Rewrite each table as one file `compacted-<hash of what it holds>.parquet`, of the winning rows, which keep their pack.

    The compacted `replicates` is written after all others and the inputs are deleted last: a crash in between leaves rows
    twice, which `results.store.read` shows once. Files of uncommitted packs are left alone. Holds tables in memory.
    Returns how many files it rewrote, and into how many.
    """
    files = {"replicates": table_files(store, "replicates")}  # listed first: a later commit is no input
    replicates = read_files(store, "replicates", files["replicates"])
    winning = winners(replicates)
    if not winning.num_rows:
        return 0, 0
    done = {f"{pack}{SUFFIX}" for pack in replicates["pack"].unique().to_pylist()}
    files |= {t: [n for n in table_files(store, t) if n in done or n.startswith(COMPACTED)] for t in _DEPENDENT}
    files["failures"] = table_files(store, "failures")
    rows = {table: semi_join(read_files(store, table, files[table]), winning) for table in _DEPENDENT}
    rows["failures"] = read_files(store, "failures", files["failures"])
    rows["replicates"] = semi_join(replicates, winning)
    held = [sorted(map(str, winning.to_pylist())), sorted(map(str, rows["failures"].select(["pack", "attempt"]).to_pylist()))]
    target = f"{COMPACTED}{hashlib.sha256(repr(held).encode()).hexdigest()[:16]}{SUFFIX}"
    for table, kept in rows.items():
        if kept.num_rows:
            write_bytes(store, f"{table}/{target}", serialise(kept))
    for table, names in files.items():
        for name in names:
            if name != target:
                delete(store, f"{table}/{name}")
    return sum(map(len, files.values())), sum(kept.num_rows > 0 for kept in rows.values())


def merge(into: Store, others: list[Store]) -> Merged:
    """Add what other stores have committed of a study: rows, failures, manifests, kept weights. Run again, it adds nothing.

    A row is known by (key, stage, pack): what `into` has is kept. Raises ValueError, before anything is written, where a store
    scored a set of the same name and condition on another definition.
    """
    _check_sets([into, *others])
    plans = [plan for plan in map(newest_manifest, [into, *others]) if plan]
    counts = dict.fromkeys(("packs", "replicates", "failures", "manifests", "artifacts"), 0)
    for other in others:
        mine, theirs = _everything(into), _everything(other)
        for column in ("key", "pack"):
            for name in theirs["replicates"][column].unique().to_pylist():
                check_name(name, f"a {column} ({other.path('replicates')})")
        missing = anti_join(theirs["replicates"], mine["replicates"])
        counts["replicates"] += missing.num_rows
        pieces = {t: _by_pack(pa.concat_tables([mine[t], semi_join(theirs[t], missing)])) for t in mine}
        for pack in sorted(missing["pack"].unique().to_pylist()):
            commit(into, pack, {t: packs[pack] for t, packs in pieces.items() if pack in packs})
            counts["packs"] += 1
        counts["failures"] += _merge_failures(into, other)
        _copy_missing(into, other, into.path("logs"), other.path("logs"))  # of its failures
        counts["manifests"] += _copy_missing(into, other, into.path(FOLDER), other.path(FOLDER))
        for key in sorted(set(theirs["replicates"]["key"].to_pylist())):
            target, source = (store.shared("artifacts", key) for store in (into, other))
            counts["artifacts"] += _copy_missing(into, other, target, source)
    if counts["manifests"]:  # the plan that holds is the one of most replicates
        name = max(plans, key=lambda plan: len(plan[1]["replicates"]))[0]
        write_manifest(into, name, read_bytes(into, manifest_path(name)))
    replicates = _everything(into, ["replicates"])["replicates"]
    return Merged(**counts, superseded=replicates.num_rows - winners(replicates).num_rows)


def _everything(store: Store, tables: list[str] | None = None) -> dict[str, pa.Table]:
    """All committed rows, the losing ones too: a pack that loses here may win elsewhere."""
    replicates = read_files(store, "replicates", table_files(store, "replicates"))
    others = [t for t in (tables or _DEPENDENT) if t != "replicates"]
    rows = {t: semi_join(read_files(store, t, table_files(store, t)), replicates) for t in others}
    return rows | {"replicates": replicates}


def _by_pack(rows: pa.Table) -> dict[str, pa.Table]:
    rows = rows.take(pc.sort_indices(rows["pack"]))
    packs = np.asarray(rows["pack"].to_pylist(), dtype=object)
    edges = [0, *(np.flatnonzero(packs[1:] != packs[:-1]) + 1).tolist(), len(packs)]
    return {packs[start]: rows.slice(start, end - start) for start, end in itertools.pairwise(edges) if start < end}


def _merge_failures(into: Store, other: Store) -> int:
    known = {(row["pack"], row["attempt"]) for row in read(into, "failures", ["pack", "attempt"]).to_pylist()}
    rows = read(other, "failures")
    added = 0
    for index, row in enumerate(rows.select(["pack", "attempt"]).to_pylist()):
        if (row["pack"], row["attempt"]) not in known:
            commit(into, f"{row['pack']}-{row['attempt']}", {"failures": rows.slice(index, 1)})
            added += 1
    return added


def _copy_missing(into: Store, other: Store, target: str, source: str) -> int:
    """Copy the files below `source` that `target` lacks (their names say what they hold); how many. Links are left out."""
    added = 0
    for info in listing(other.filesystem, source, recursive=True):
        relative = info.path[len(source) + 1 :]
        if info.type != pyarrow.fs.FileType.File or info.base_name.startswith("."):
            continue
        if other.is_local and os.path.realpath(info.path) != os.path.join(os.path.realpath(source), relative):
            continue  # a link could lend us any file of this machine
        if info_of(into.filesystem, join(target, relative)).type != pyarrow.fs.FileType.NotFound:
            continue
        write_file(into, join(target, relative), content(other.filesystem, info.path))
        added += 1
    return added


def _check_sets(stores: list[Store]) -> None:
    known: dict[tuple[str, str], tuple[str, str]] = {}
    for store in stores:
        configs = read(store, "replicates", [*ROW, "config"])
        sets = read(store, "evaluations", [*ROW, "set", "set_hash"]).group_by([*ROW, "set", "set_hash"]).aggregate([])
        for row in sets.join(configs, keys=ROW).group_by(["config", "set", "set_hash"]).aggregate([]).to_pylist():
            first, where = known.setdefault((row["config"], row["set"]), (row["set_hash"], store.path()))
            if first != row["set_hash"]:
                raise StudyError(
                    f"evaluation set {row['set']!r} is defined as {first} in {where} and as {row['set_hash']} in "
                    f"{store.path()} for the same condition: give one of them another name in its study"
                )
