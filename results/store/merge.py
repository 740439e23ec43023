"""Merging of stores, and compaction of a store's many small files into one for each table, which leaves readers the same rows.

Neither may run while another process writes into the store's study or compacts it.
"""

import hashlib
import itertools
import json
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs

from results.errors import StudyError
from results.grouping import grouped
from results.plain_values import Tree
from results.rows.plural import counted
from results.store.filesystem import content, listing
from results.store.manifest import FOLDER, NEWEST, label, manifest_files, newest_manifest, read_manifest, stage_of
from results.store.parquet import COMPACTED, SUFFIX, densest
from results.store.schema import IDENTITY_COLUMNS, SCHEMAS
from results.store.seal import state
from results.store.tables import (
    LOGS,
    ROW,
    Store,
    anti_join,
    check_name,
    commit,
    delete,
    log_path,
    matching,
    read,
    read_bytes,
    read_files,
    semi_join,
    table_files,
    winners,
    write_bytes,
    write_file,
)

_QUANTITY = ("set", "metric", "axis", "probe", "layer", "head", "item")  # columns that say what a row's number is of
_LONGEST = 60  # characters of a setting in an error message
_NAMED = 10  # most replicates that an error message names
_DEPENDENT = [table for table in SCHEMAS if table not in ("replicates", "failures")]


@dataclass(frozen=True)
class Merged:
    """What `merge` added. superseded: how many (key, stage) of the result are held by more than one pack. exchanged: how many
    (key, stage, pack) that were there already have rows of another store now.
    """

    packs: int
    replicates: int
    superseded: int
    failures: int
    manifests: int
    artifacts: int
    exchanged: int = 0

    def __str__(self) -> str:
        """A sentence on what was added and exchanged, without the kinds of which there was none."""
        numbers = {"pack": self.packs, "replicate": self.replicates, "failure": self.failures, "manifest": self.manifests}
        numbers["weight file"] = self.artifacts
        added = ", ".join(counted(number, what) for what, number in numbers.items() if number)
        changed = f"exchanged the rows of {counted(self.exchanged, 'replicate')} for another store's" if self.exchanged else ""
        done = "; ".join(filter(None, [f"added {added}" if added else "", changed]))
        twice = f"; {counted(self.superseded, 'replicate')} in more than one pack, of which the smallest pack counts"
        return (done or "nothing to add") + (twice if self.superseded else "")


def compact(store: Store, instead: Mapping[str, pa.Table] | None = None) -> tuple[int, int]:
    """Rewrite each table as one file `compacted-<hash of what it holds>.parquet` of the winning rows, which keep their pack.

    instead: rows by table that replace all rows of their (key, stage, pack), each of which is in the store's `replicates`; rows that do
    not win are then kept too.
    The compacted `replicates` is written after all others and the inputs are deleted last. A crash in between leaves rows twice, which
    `results.store.tables.read` shows once. Files of uncommitted packs are left alone. Tables are held in memory.
    Returns how many files were rewritten, and into how many.
    """
    files = {"replicates": table_files(store, "replicates")}  # listed first: a later commit is no input
    replicates = _exchanged("replicates", read_files(store, "replicates", files["replicates"]), instead)
    winning = winners(replicates) if instead is None else replicates.select(ROW)
    if not winning.num_rows:
        return 0, 0
    packs = set(replicates["pack"].to_pylist())
    files |= {t: table_files(store, t, packs) for t in _DEPENDENT}
    files["failures"] = table_files(store, "failures")
    rows = {t: semi_join(_exchanged(t, read_files(store, t, files[t]), instead), winning) for t in _DEPENDENT}
    rows["failures"] = read_files(store, "failures", files["failures"])
    rows["replicates"] = semi_join(replicates, winning)
    contents = [
        sorted(map(str, winning.to_pylist())),
        sorted(map(str, rows["failures"].select(["pack", "attempt"]).to_pylist())),
    ]
    if instead is not None:
        contents.append(sorted(_texts(instead["replicates"], instead).values()))
    target = f"{COMPACTED}{hashlib.sha256(repr(contents).encode()).hexdigest()[:16]}{SUFFIX}"
    for table, kept in rows.items():
        if kept.num_rows:
            write_bytes(store, f"{table}/{target}", densest(_orders(kept)))
    with ThreadPoolExecutor(1 if store.is_local else 8) as threads:  # an object store takes tens of milliseconds for each
        for table, names in files.items():
            older = [name for name in names if name != target]
            for compacted in (True, False):  # newer files go last: they hide what an older compacted one holds
                gone = [f"{table}/{name}" for name in older if name.startswith(COMPACTED) == compacted]
                list(threads.map(lambda path: delete(store, path), gone))
    return sum(map(len, files.values())), sum(kept.num_rows > 0 for kept in rows.values())


def _orders(rows: pa.Table) -> list[pa.Table]:
    """Orders of which one may take the fewest bytes: mostly numbers are alike that are of one quantity, or of one replicate too."""
    quantity = [name for name in _QUANTITY if name in rows.column_names]
    if not quantity:
        return [rows]
    replicate = [name for name in ("key", "stage", "step") if name in rows.column_names]
    orders = [[(name, "ascending") for name in names] for names in (quantity, quantity + replicate)]
    return [rows, *(rows.take(pc.sort_indices(rows, order)) for order in orders)]


def _exchanged(table: str, rows: pa.Table, instead: Mapping[str, pa.Table] | None) -> pa.Table:
    return rows if instead is None else pa.concat_tables([anti_join(rows, instead["replicates"]), instead[table]])


def merge(into: Store, others: list[Store], keep_one: bool = False) -> Merged:
    """Add what other stores have committed of a study: rows, failures, manifests, kept weights. Run again, it adds nothing.

    A row is identified by (key, stage, pack), and its numbers must be the same in all stores. Where and when it was trained may differ;
    the record in `into` is kept. Of weights that several packs left, those of the smallest pack id are kept. The resulting numbers do not
    depend on the order of merges.
    Raises StudyError, before anything is written, where stores scored a set of one name and condition on two definitions or have two
    names for one definition, and where numbers or weights differ, unless `keep_one`: then one copy is kept, chosen by its numbers
    alone.
    """
    _check_sets([into, *others])
    own = _everything(into)
    union, changed = own, own["replicates"].select(ROW).slice(0, 0)
    for place, other in enumerate(others):
        incoming = _everything(other)
        for column in ("key", "pack"):
            for name in incoming["replicates"][column].unique().to_pylist():
                check_name(name, f"a {column} ({other.path('replicates')})")
        union, exchanged = _united(union, incoming, keep_one, [into, *others[:place]], other)
        changed = pa.concat_tables([changed, exchanged])
    keys_of_others = [(other, read(other, "replicates", ["key"])["key"].to_pylist()) for other in others]
    weights = _better_weights(into, [(into, union["replicates"]["key"].to_pylist()), *keys_of_others], keep_one)
    plans = [plan for plan in map(newest_manifest, [into, *others]) if plan]
    changed = semi_join(own["replicates"].select(ROW), changed)
    if changed.num_rows:
        compact(into, {table: semi_join(rows, changed) for table, rows in union.items()})
    missing = anti_join(union["replicates"], own["replicates"])
    touched = missing["pack"].unique()
    pieces = {t: _by_pack(rows.filter(pc.is_in(rows["pack"], touched))) for t, rows in union.items()}
    for pack in sorted(touched.to_pylist()):
        # every table, so that what an interrupted training of the pack left is removed
        commit(into, pack, {t: packs.get(pack, SCHEMAS[t].empty_table()) for t, packs in pieces.items()})
    failures = manifests = 0
    for other in others:
        failures += _merge_failures(into, other)
        manifests += _merge_manifests(into, other)
    for relative, source in weights.items():
        write_file(into, into.shared(*relative), content(source.filesystem, source.shared(*relative)))
    if manifests:  # the newest plan is then the one of most replicates, and of several such the one of the smallest hash
        name = min(plans, key=lambda plan: (-len(plan[1]["replicates"]), plan[0]))[0]
        write_bytes(into, NEWEST, name.encode())
    superseded = union["replicates"].num_rows - winners(union["replicates"]).num_rows
    return Merged(len(touched), missing.num_rows, superseded, failures, manifests, len(weights), changed.num_rows)


def _united(
    own: dict[str, pa.Table], incoming: dict[str, pa.Table], keep_one: bool, earlier: Sequence[Store], other: Store
) -> tuple[dict[str, pa.Table], pa.Table]:
    """All rows of two stores, and the (key, stage, pack) of the rows of `own` that were replaced.

    earlier, other: the stores, for the message of the StudyError that is raised where their numbers differ.
    """
    fresh = anti_join(incoming["replicates"], own["replicates"])
    union = {t: pa.concat_tables([own[t], semi_join(incoming[t], fresh)]) for t in own}
    shared = semi_join(own["replicates"], incoming["replicates"])
    pairs = {t: (semi_join(own[t], shared), semi_join(incoming[t], shared)) for t in own}
    if all(_sorted(t, one).equals(_sorted(t, two)) for t, (one, two) in pairs.items()):
        return union, shared.select(ROW).slice(0, 0)
    trained = [{t: pair[side] for t, pair in pairs.items() if t != "probes"} for side in (0, 1)]
    ours, its = (_texts(shared, tables) for tables in trained)
    differing = [row for row in ours if ours[row] != its[row]]
    probed = [_probe_texts(table) for table in pairs["probes"]]
    other_probes = [row for row in probed[0] if row in probed[1] and probed[0][row] != probed[1][row]]
    if (differing or other_probes) and not keep_one:
        lines = [
            f"{key} (stage {stage}, pack {pack})" for key, stage, pack in sorted({row[:3] for row in differing + other_probes})
        ]
        more = f" and {len(lines) - _NAMED} more" if len(lines) > _NAMED else ""
        key, _, pack = min(row[:3] for row in differing + other_probes)
        theirs = (pc.field("key") == key) & (pc.field("pack") == pack)
        first = next(store for store in earlier if read(store, "replicates", ["key"], theirs).num_rows)
        raise StudyError(
            f"{first.path()} and {other.path()} hold different numbers for the same replicates and packs: {', '.join(lines[:_NAMED])}{more}"
            "; look for a damaged file with manyseeds verify, or keep one copy of each with --keep-one"
        )
    taken = [row for row in differing if its[row] < ours[row]]
    added = [row for row in probed[1] if row not in probed[0] or probed[1][row] < probed[0][row]]
    changed = _rows_of(sorted({row[:3] for row in taken + added}))
    for table, (_, two) in pairs.items():
        if table != "probes":
            union[table] = pa.concat_tables([anti_join(union[table], _rows_of(taken)), semi_join(two, _rows_of(taken))])
    probe, step = ([row[place] for row in added] for place in (3, 4))
    names = (
        _rows_of([row[:3] for row in added])
        .append_column("probe", pa.array(probe, pa.string()))
        .append_column("step", pa.array(step, pa.int64()))
    )
    kept = union["probes"].take(matching(union["probes"], names, "left anti", names.column_names))
    union["probes"] = pa.concat_tables(
        [kept, pairs["probes"][1].take(matching(pairs["probes"][1], names, "left semi", names.column_names))]
    )
    return union, changed


def _rows_of(rows: list[tuple[Any, ...]]) -> pa.Table:
    schema = pa.schema([SCHEMAS["replicates"].field(name) for name in ROW])
    return pa.Table.from_pylist([dict(zip(ROW, row, strict=True)) for row in rows], schema)


def _numbers(table: str, rows: pa.Table) -> pa.Table:
    """The columns that must be the same wherever a replicate was trained."""
    return rows.select([*IDENTITY_COLUMNS, "pack", "sets"]) if table == "replicates" else rows


def _sorted(table: str, rows: pa.Table) -> pa.Table:
    """The numbers of rows, sorted so that equal tables compare equal, and with floats as their bits, so that NaN equals NaN."""
    rows = _numbers(table, rows)
    for place, field in enumerate(rows.schema):
        if pa.types.is_floating(field.type):
            bits = pa.chunked_array([chunk.view(pa.int64()) for chunk in rows[field.name].chunks], pa.int64())
            rows = rows.set_column(place, field.name, bits)
        elif pa.types.is_list(field.type):
            rows = rows.set_column(
                place, field.name, pa.array(["\n".join(sorted(names)) for names in rows[field.name].to_pylist()], pa.string())
            )
    return rows.sort_by([(name, "ascending") for name in rows.column_names]).combine_chunks()


def _texts(shared: pa.Table, tables: Mapping[str, pa.Table]) -> dict[tuple[Any, ...], str]:
    """A digest of the numbers of every (key, stage, pack)."""
    lines: dict[tuple[Any, ...], list[str]] = {tuple(row.values()): [] for row in shared.select(ROW).to_pylist()}
    for table, rows in tables.items():
        for row in _numbers(table, rows).to_pylist():
            if row.get("sets"):
                row["sets"] = sorted(row["sets"])
            lines[tuple(row[name] for name in ROW)].append(f"{table} {row!r}")
    return _digests(lines)


def _digests(lines: Mapping[tuple[Any, ...], list[str]]) -> dict[tuple[Any, ...], str]:
    return {row: hashlib.sha256("\n".join(sorted(texts)).encode()).hexdigest() for row, texts in lines.items()}


def _probe_texts(rows: pa.Table) -> dict[tuple[Any, ...], str]:
    """A digest of the rows of every (key, stage, pack, probe, step)."""
    lines = grouped((tuple(row[name] for name in (*ROW, "probe", "step")), repr(row)) for row in rows.to_pylist())
    return _digests(lines)


def _better_weights(into: Store, keys_by_store: list[tuple[Store, list[str]]], keep_one: bool) -> dict[tuple[str, ...], Store]:
    """The files of weights that `into` lacks, or has damaged or from a larger pack, and the store to copy each from.

    keys_by_store: stores, `into` among them, with the keys whose weights count. Raises StudyError where weights of one pack differ,
    unless `keep_one`.
    """
    holders: dict[tuple[str, ...], list[Store]] = {}
    for store, keys in keys_by_store:
        for key in sorted(set(keys)):
            for below in _files(store, store.shared("artifacts", key)):
                holders.setdefault(("artifacts", key, *below.split("/")), []).append(store)
    better: dict[tuple[str, ...], Store] = {}
    for relative, stores in holders.items():
        if len(stores) == 1:
            if stores[0] is not into:
                better[relative] = stores[0]
            continue
        ranks = [_rank(content(store.filesystem, store.shared(*relative))) for store in stores]
        best = min(ranks)
        same = {rank: store for rank, store in zip(ranks, stores, strict=True) if rank[:2] == best[:2]}
        if len(same) > 1 and not keep_one:
            paths = " and ".join(sorted(store.shared(*relative) for store in same.values()))
            raise StudyError(f"{paths} hold different weights of the same replicate and pack: keep one copy with --keep-one")
        if into not in stores or ranks[stores.index(into)] != best:
            better[relative] = same[best]
    return better


def _rank(data: bytes) -> tuple[bool, str, str]:
    """The rank of a file of weights, (damaged, pack, digest of the tensors); the smallest is kept. A file without a pack comes last."""
    try:
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + size])
        about = header.pop("__metadata__", {})
        named = {name: about.get(name) for name in ("key", "config", "seeds")}
        whole = json.dumps([header, named], sort_keys=True).encode() + data[8 + size :]
        pack = str(about.get("pack", "~"))
    except (ValueError, AttributeError, RecursionError):
        whole, pack = data, "~"
    return state(data) == "damaged", pack, hashlib.sha256(whole).hexdigest()


def _everything(store: Store) -> dict[str, pa.Table]:
    """All committed rows, the losing ones too: a pack that loses here may win elsewhere."""
    replicates = read_files(store, "replicates", table_files(store, "replicates"))
    rows = {t: semi_join(read_files(store, t, table_files(store, t)), replicates) for t in _DEPENDENT}
    return rows | {"replicates": replicates}


def _by_pack(rows: pa.Table) -> dict[str, pa.Table]:
    rows = rows.take(pc.sort_indices(rows["pack"]))
    packs = np.asarray(rows["pack"].to_pylist(), dtype=object)
    edges = [0, *(np.flatnonzero(packs[1:] != packs[:-1]) + 1).tolist(), len(packs)]
    return {packs[start]: rows.slice(start, end - start) for start, end in itertools.pairwise(edges) if start < end}


def _merge_failures(into: Store, other: Store) -> int:
    """Copy the failures that `into` lacks, with their logs; returns how many.

    One whose attempt is taken by another failure of its pack becomes the next attempt.
    """
    present = read(into, "failures", ["pack", "attempt", "at"]).to_pylist()
    known, taken = ({(row["pack"], row[part]) for row in present} for part in ("at", "attempt"))
    rows = read(other, "failures").sort_by([("pack", "ascending"), ("attempt", "ascending")])
    place, logs, added = rows.schema.get_field_index("attempt"), _files(other, other.path(LOGS)), 0
    for index, row in enumerate(rows.select(["pack", "attempt", "at"]).to_pylist()):
        pack, attempt = row["pack"], row["attempt"]
        if (pack, row["at"]) in known:
            continue
        while (pack, attempt) in taken:
            attempt += 1
        taken.add((pack, attempt))
        field = rows.schema.field(place)
        numbered = rows.slice(index, 1).set_column(place, field, pa.array([attempt], field.type))
        log = log_path(pack, row["attempt"])
        if log.removeprefix(f"{LOGS}/") in logs:
            write_bytes(into, log_path(pack, attempt), read_bytes(other, log))  # before its row, which says that it was copied
        commit(into, f"{pack}-{attempt}", {"failures": numbered})
        added += 1
    return added


def _merge_manifests(into: Store, other: Store) -> int:
    """Copy the manifests that `into` lacks, compressed or not; returns how many."""
    there, files = manifest_files(into), _files(other, other.path(FOLDER))
    missing = [file for name, file in manifest_files(other).items() if name not in there and file in files]
    for file in missing:
        write_bytes(into, f"{FOLDER}/{file}", content(other.filesystem, other.path(FOLDER, file)))
    return len(missing)


def _files(store: Store, folder: str) -> list[str]:
    """Paths of the files below a folder, relative to it. Hidden files are left out, and links, which could expose any local file."""
    paths = []
    for info in listing(store.filesystem, folder, recursive=True):
        relative = info.path[len(folder) + 1 :]
        linked = store.is_local and os.path.realpath(info.path) != os.path.join(os.path.realpath(folder), relative)
        if info.type == pyarrow.fs.FileType.File and not info.base_name.startswith(".") and not linked:
            paths.append(relative)
    return paths


def _check_sets(stores: list[Store]) -> None:
    """Raise StudyError where stores have two definitions for one set and condition, or two names for one definition."""
    definitions: dict[tuple[str, str], tuple[str, Store]] = {}
    set_names: dict[tuple[str, str], tuple[str, str]] = {}
    for store in stores:
        configs = read(store, "replicates", [*ROW, "config"])
        sets = read(store, "evaluations", [*ROW, "set", "set_hash"]).group_by([*ROW, "set", "set_hash"]).aggregate([])
        for row in sets.join(configs, keys=ROW).group_by(["config", "set", "set_hash"]).aggregate([]).to_pylist():
            first, holder = definitions.setdefault((row["config"], row["set"]), (row["set_hash"], store))
            if first != row["set_hash"]:
                whose, (one, other) = _differing_settings(row["set"], (holder, first), (store, row["set_hash"]))
                raise StudyError(
                    f"the evaluation set {row['set']!r} of {whose} has {one} in {holder.path()} and {other} in {store.path()}: run one of "
                    "the two studies again in a new store, with another name for that set, and merge that one"
                )
            called, where = set_names.setdefault((row["config"], row["set_hash"]), (row["set"], store.path()))
            if called != row["set"] and where != store.path():  # no study file could ask for both, or find all rows under one
                raise StudyError(
                    f"the evaluation set that {where} calls {called!r} is {row['set']!r} in {store.path()}, for the same "
                    "condition: run one of the two studies again in a new store, with the other's name for that set, and merge that one"
                )


def _differing_settings(name: str, *copies: tuple[Store, str]) -> tuple[str, list[str]]:
    """Whose a set of this name is, and what differs between two copies of it: their settings, or their hashes where no plan has them.

    copies: the store of each, and its hash.
    """
    (whose, one), (_, other) = (_planned_set(store, name, set_hash) for store, set_hash in copies)
    keys = [key for key in {**one, **other} if one.get(key) != other.get(key)] if one and other else []
    if not keys:
        return whose, [f"the hash {set_hash}" for _, set_hash in copies]
    return whose, [", ".join(f"{key}={json.dumps(each.get(key))[:_LONGEST]}" for key in keys) for each in (one, other)]


def _planned_set(store: Store, name: str, set_hash: str) -> tuple[str, Tree]:
    """The condition of a study that is scored on a set, in words, and the settings of that set; {} where no plan of the store has it."""
    for file in manifest_files(store).values():
        plan = read_manifest(store, file)
        for condition in plan["conditions"]:
            if name in plan["sets"] and name in condition["sets"] and condition["sets"][name]["hash"] == set_hash:
                planned = plan["sets"][name]
                size = {"sequences": planned["sequences"], "every": planned.get("every"), "seed": planned.get("seed", 0)}
                settings = condition.get("settings", {}).get("task", {}) | dict(planned["definition"]) | size
                return f"{label(condition['name'], stage_of(condition))} of the study {store.study}", settings
    return f"a condition of the study {store.study}", {}
