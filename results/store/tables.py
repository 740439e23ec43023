"""The Parquet store: how rows are committed, and how every reader sees them.

Layout: `<root>/<study>/<table>/<pack>.parquet`, on a local folder or any pyarrow filesystem. A file is serialised in memory
and becomes visible whole or not at all. The `replicates` table of a pack is written last: its rows are the commit, so rows of
another table whose (key, stage, pack) has no `replicates` row do not exist for a reader. Where one (key, stage) is in several
packs, **the smallest pack id wins**; that is the only rule.

`results.store.merge` leaves files called `compacted-<hash>.parquet`, which hold the rows of many packs. Until the files such a file
was made of are gone, one (key, stage, pack) can be in two files of a table. Its rows are then taken from one of them alone,
compacted files before others and each by name, so the same copy is chosen in every table. Only what a probe adds later to replicates
that are committed already (`results.rows.probe_values`) has files of its own, which come before compacted ones, step by step.
"""

import contextlib
import itertools
import os
import re
import uuid
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import PurePosixPath

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.fs

from results import second_process
from results.errors import DamagedFile, MissingFile, StoreError, StudyError, nearest, store_errors
from results.job_folder import in_ray_job
from results.store.filesystem import (
    ANONYMOUS,
    below,
    content,
    denied,
    folders,
    info_of,
    is_anonymous,
    join,
    missing_folders,
    names,
    public,
    public_options,
    reason,
    refuse_links_out,
    resolve,
    shell_word,
    upload,
    write_local,
)
from results.store.parquet import COMPACTED, SUFFIX, check_table, conform, read_file, read_local_files, serialise
from results.store.schema import SCHEMAS

ROW = ["key", "stage", "pack"]
_MANY = 64  # chunks of a table, above which copying them into one is faster than working on each
_THREADS, _AT_ONCE = 8, 64  # threads that read files, and files that a thread takes at once
_LOCAL_THREADS, _LOCAL_AT_ONCE = 4, 256  # of a local store, where more threads wait for the interpreter and not for files
_VERY_MANY = 4_000  # files of a table, above which a second process reads half of them
MOST_NAME = 200  # characters
_FOLDERS = 100  # folders of a folder that are searched for stores, for an error message
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{MOST_NAME - 1}}}")  # of studies, packs and keys
_SCHEMES = {"s3": "s3", "gcs": "gs"}  # of the filesystems that a URI alone names
KEPT = "artifacts"  # the folder of a store that is no study's: kept weights and arrays
LOGS = "logs"  # the folder of a study with what failed packs printed and logged


@dataclass(frozen=True)
class Store:
    """One study's folder in a store. `root` is the store's path inside `filesystem`: it never holds credentials.

    begun: the study has a manifest there, so a local folder that shows none is one whose mount is away, and nothing is written to it.
    """

    filesystem: pyarrow.fs.FileSystem
    root: str
    study: str
    begun: bool = False
    options: str = ""  # of its URI, those of `public_options`

    def path(self, *parts: str) -> str:
        """The path inside the filesystem of something in this study. Raises DamagedFile where a part leads out of the study."""
        return join(self.root, self.study, *parts)

    def shared(self, *parts: str) -> str:
        """As `path`, for something that the store's studies share, such as kept weights."""
        return join(self.root, *parts)

    @property
    def is_local(self) -> bool:
        return isinstance(self.filesystem, pyarrow.fs.LocalFileSystem)

    @property
    def address(self) -> str:
        """The store as a person names it, a path or a URI: without credentials and options."""
        scheme = _SCHEMES.get(self.filesystem.type_name)
        who = ANONYMOUS if is_anonymous(self.filesystem) else ""
        return f"{scheme}://{who}{self.root}" if scheme else self.root

    @property
    def shell_word(self) -> str:
        """The store as a word of a command that can be pasted into a shell, with the options without which it is not found."""
        return shell_word(self.address + self.options)

    def check_writable(self) -> None:
        """Write and remove a small file. Raises StoreError with the reason when that fails; folders made for it are removed."""
        name = f".writable-{uuid.uuid4().hex}"
        made = missing_folders(self.path()) if self.is_local else []
        try:
            write_bytes(self, name, b"manyseeds")
            delete(self, name)
        except StoreError as error:
            why = reason(error.__cause__ or error)
            advice = "name a path or URI that can be, with store= or --store"
            if denied(error) and in_ray_job():
                advice = (
                    "the node where this job runs has no credentials for it; give them to `ray start` on every node, or to the job with "
                    "--runtime-env-json"
                )
            raise StoreError(f"the store {self.address} can't be written ({why}): {advice}") from error
        finally:
            for folder in reversed(made):
                try:
                    os.rmdir(folder)
                except OSError:
                    break  # never made, or another driver already writes into it


def open_store(uri: str | os.PathLike[str], study: str) -> Store:
    """The store at a local path (made absolute) or any URI that pyarrow knows; nothing is written.

    Raises StudyError for a URI that pyarrow refuses; credentials in it are not repeated.
    """
    if not isinstance(study, str) or not _NAME.fullmatch(study):
        raise StudyError(
            f"study name {str(study)[:100]!r} can't name a folder: use letters, digits, '.', '_' and '-', a letter or digit first"
        )
    if study == KEPT:
        raise StudyError(
            f"study name {study!r} is taken: a store has its kept weights in a folder of that name; choose another"
        )
    filesystem, root = resolve(os.fspath(uri))
    return Store(filesystem, root, study, options=public_options(os.fspath(uri)))


def studies(uri: str | os.PathLike[str]) -> list[str]:
    """Names of the studies in a store, sorted; [] where there is no store."""
    filesystem, root = resolve(os.fspath(uri))
    if filesystem.type_name == "local" and info_of(filesystem, root).is_file:
        raise StudyError(f"{public(os.fspath(uri))} is a file, and a store is a folder: give the folder, such as runs")
    candidates = [name for name in folders(filesystem, root) if _NAME.fullmatch(name) and name != KEPT]
    return [name for name in candidates if {"replicates", "manifests"} & set(names(filesystem, f"{root}/{name}"))]


def no_study(uri: str | os.PathLike[str]) -> StudyError:
    """The error that a store holds no study, which names a store if this is the folder of a study or of stores."""
    filesystem, root = resolve(os.fspath(uri))
    sentence, (above, _, name) = f"there is no study in {public(os.fspath(uri))}", root.rpartition("/")
    if {"replicates", "manifests"} & set(names(filesystem, root)):
        sentence += f": it is the folder of the study {name}, so give the folder above it, {above}, and then {name}"
    elif stores := _stores_below(filesystem, root):
        sentence += f": it is a folder of stores, so give one of them, such as {below(public(os.fspath(uri)), stores[0])}"
    elif filesystem.type_name == "local":
        sentence += nearest(name, _stores_below(filesystem, above))
    return StudyError(sentence)


def _stores_below(filesystem: pyarrow.fs.FileSystem, root: str) -> list[str]:
    """Names of the stores among the first folders of a folder; what can't be read is left out."""
    stores, names_there = [], []
    with contextlib.suppress(StoreError):
        names_there = folders(filesystem, root)[:_FOLDERS]
    for name in names_there:
        with contextlib.suppress(StoreError):
            parts = [join(root, name, part) for part in folders(filesystem, join(root, name))[:_FOLDERS]]
            if any({"replicates", "manifests"} & set(names(filesystem, part)) for part in parts):
                stores.append(name)
    return stores


def refuse_folder_of_study(uri: str | os.PathLike[str]) -> None:
    """Raise StudyError where `uri`, which is to be a store, is a file, or the folder of a study that holds no study itself."""
    filesystem, root = resolve(os.fspath(uri))
    if info_of(filesystem, root).is_file:
        raise StudyError(f"{public(os.fspath(uri))} is a file, and a store is a folder: give another path")
    if {"replicates", "manifests"} & set(names(filesystem, root)) and not studies(uri):
        above, _, name = root.rpartition("/")
        raise StudyError(
            f"{public(os.fspath(uri))} is the folder of the study {name}, and no store: give the folder above it, {above}"
        )


def write_bytes(store: Store, relative_path: str, data: bytes) -> None:
    """Write a file, replacing one of that name; readers see it whole or not at all. Raises StoreError with one sentence.

    Local: temporary name, fsync, rename. Elsewhere: one upload.
    """
    write_file(store, store.path(*PurePosixPath(relative_path).parts), data)


def log_path(pack: str, attempt: int) -> str:
    """The path, within its study, of the log of a failed pack's attempt; `harness.machine.logs` writes it."""
    return f"{LOGS}/{pack}-{attempt}.log"


def write_file(store: Store, target: str, data: bytes) -> None:
    """As `write_bytes`, to any path inside the filesystem. Raises StoreError, instead of making a new store, where the store is away."""
    if store.begun:
        check_there(store)
    try:
        if store.is_local:
            refuse_links_out(store.root, target)
            write_local(target, data)
        else:
            upload(store.filesystem, target, data)
    except OSError as error:
        # an object store may have carried out what it then failed to confirm
        outcome = "nothing of it was committed" if store.is_local else "it is there whole or not at all"
        raise StoreError(f"{target} can't be written ({reason(error)}); {outcome}") from error


def check_there(store: Store) -> None:
    """Raise StoreError where a local store does not show the manifest that the study has in it."""
    if store.is_local and not list_names(store, "manifests"):
        raise StoreError(f"the store {store.root} is away: it shows no manifest of {store.study}, which has one there")


def read_bytes(store: Store, relative_path: str) -> bytes:
    """Read all of a file. Raises MissingFile, or StoreError with one sentence."""
    return content(store.filesystem, store.path(*PurePosixPath(relative_path).parts))


def list_names(store: Store, relative_folder: str) -> list[str]:
    """Sorted names of the files and folders in a folder, hidden ones left out; [] when it is missing."""
    return names(store.filesystem, store.path(*PurePosixPath(relative_folder).parts))


def delete(store: Store, relative_path: str) -> None:
    """Remove a file, or a folder with all it holds; a missing one is fine."""
    path = store.path(*PurePosixPath(relative_path).parts)
    if store.is_local:
        refuse_links_out(store.root, path)
    kind = info_of(store.filesystem, path).type
    try:
        with store_errors(path):
            if kind == pyarrow.fs.FileType.Directory:
                store.filesystem.delete_dir(path)
            elif kind != pyarrow.fs.FileType.NotFound:
                store.filesystem.delete_file(path)
    except MissingFile:
        return  # another process was faster
    except StoreError:
        # pyarrow then writes a marker of the parent folder, which some servers refuse: what counts is that the file is gone
        if store.is_local or info_of(store.filesystem, path).type != pyarrow.fs.FileType.NotFound:
            raise


def commit(store: Store, pack: str, tables: dict[str, pa.Table]) -> None:
    """Write one file per table, `replicates` last. Empty tables are not written. Committing a pack again replaces its files.

    A failure is committed alone: `commit(store, f"{pack}-{attempt}", {"failures": rows})`.
    Raises ValueError, before anything is written, where a table does not fit its schema or holds rows of another pack.
    """
    check_name(pack, "a pack")
    order = sorted(tables, key=lambda name: name == "replicates")
    files = {}
    for table in order:
        rows = conform(table, tables[table])
        if table != "failures" and set(rows["pack"].unique().to_pylist()) - {pack}:
            raise ValueError(f"table {table!r} holds rows of packs other than {pack}: commit each pack by itself")
        files[table] = serialise(rows) if rows.num_rows else None
    for table, data in files.items():
        if data is None:
            delete(store, f"{table}/{pack}{SUFFIX}")
        else:
            write_bytes(store, f"{table}/{pack}{SUFFIX}", data)


def check_name(name: str, what: str) -> None:
    """Raise DamagedFile where a name from rows or manifests can't be the name of one file or folder."""
    if not _NAME.fullmatch(name):
        raise DamagedFile(
            f"{name[:100]!r} can't be the name of {what}: it has other characters than letters, digits, '.', '_', '-'"
        )


def read(
    store: Store,
    table: str,
    columns: list[str] | None = None,
    filter: pa.compute.Expression | None = None,
    winning: pa.Table | None = None,
    packs: Collection[str] | None = None,
) -> pa.Table:
    """The rows of a table that count: those whose (key, stage, pack) won; `failures` is returned whole.

    `columns` are returned in that order (all by default); `filter` is a pyarrow expression over any column of the table.
    `winning` is `committed(store)` where that was read already: several tables are then those of one moment, and a store of
    thousands of packs is not asked for `replicates` again for each of them. `packs`: no other files are opened than those of these
    packs and compacted ones, which may hold rows of further packs.
    A truncated file, or one that is none of this table, raises DamagedFile naming it.
    """
    check_table(table)
    if table == "failures":
        return _rows(store, table, columns, filter)
    wanted = SCHEMAS[table].names if columns is None else columns
    needed = [*wanted, *(name for name in ROW if name not in wanted)]
    if table == "replicates" and filter is None:  # read once: the rows say themselves who wins
        return first_rows(_rows(store, table, needed)).select(wanted)
    # first: a pack that commits in between has its rows then, and is left out if its `replicates` row came too late
    winning = winners(_rows(store, "replicates", ROW) if winning is None else winning)
    return semi_join(_rows(store, table, needed, filter, packs), winning).select(wanted)


def committed(store: Store) -> pa.Table:
    """`replicates` after the winner rule: one row a (key, stage)."""
    return read(store, "replicates")


def scored(store: Store) -> pa.Table:
    """Key, stage, pack and sets of `committed`, with only the sets that have rows. lacking: whether sets were left out.

    The sets listed in `replicates` are not enough, since a file of `evaluations` may be gone.
    """
    rows = read(store, "replicates", [*ROW, "sets"])
    by = [*ROW, "set_hash"]
    with_rows = read(store, "evaluations", by, winning=rows).group_by(by).aggregate([])
    places = np.repeat(np.arange(rows.num_rows), pa.compute.list_value_length(rows["sets"]).to_numpy())
    listed = rows.select(ROW).take(pa.array(places)).append_column("set_hash", pa.compute.list_flatten(rows["sets"]))
    there = matching(listed, with_rows, "left semi", by)
    counts = np.bincount(places[there.to_numpy()], minlength=rows.num_rows)
    lists = pa.ListArray.from_arrays(np.append(0, np.cumsum(counts)), listed["set_hash"].take(there).combine_chunks())
    lacking = counts < np.bincount(places, minlength=rows.num_rows)
    return rows.set_column(rows.schema.get_field_index("sets"), "sets", lists).append_column("lacking", pa.array(lacking))


def winners(replicates: pa.Table) -> pa.Table:
    """(key, stage, pack) with the smallest pack id of every (key, stage)."""
    return first_rows(replicates.select(ROW))


def first_rows(replicates: pa.Table) -> pa.Table:
    """The row with the smallest pack id of every (key, stage), and of several such the first; in the order given."""
    if replicates.group_by(["key", "stage"]).aggregate([]).num_rows == replicates.num_rows:
        return replicates  # nearly always: sorting 10^6 ids takes seconds
    numbered = replicates.select(ROW).append_column("row", pa.array(np.arange(replicates.num_rows)))
    in_order = numbered.take(pa.compute.sort_indices(numbered["pack"]))  # stable
    first = in_order.group_by(["key", "stage"], use_threads=False).aggregate([("row", "first")])
    return replicates.take(pa.array(np.sort(first["row_first"].to_numpy())))


def semi_join(rows: pa.Table, wanted: pa.Table) -> pa.Table:
    """The rows whose (key, stage, pack) is in `wanted`, in their order."""
    return _taken(rows, matching(rows, wanted, "left semi"))


def anti_join(rows: pa.Table, unwanted: pa.Table) -> pa.Table:
    """The rows whose (key, stage, pack) is not in `unwanted`, in their order."""
    return _taken(rows, matching(rows, unwanted, "left anti"))


def _taken(rows: pa.Table, positions: pa.Array) -> pa.Table:
    return (
        rows if len(positions) == rows.num_rows else rows.take(positions)
    )  # nearly always all: a copy of 10^6 rows takes long


def table_files(store: Store, table: str, packs: Collection[str] | None = None) -> list[str]:
    """Names of a table's Parquet files: compacted ones first, then by name. packs: only files that may hold rows of these."""
    files = [name for name in list_names(store, table) if name.endswith(SUFFIX)]
    if packs is not None:
        files = [name for name in files if name.startswith(COMPACTED) or _of_pack(name, packs)]
    return sorted(files, key=lambda name: (not name.startswith(COMPACTED), name))


def read_files(store: Store, table: str, files: list[str], columns: list[str] | None = None) -> pa.Table:
    """All rows of these files, winning or not.

    Rows of a (key, stage, pack) that is in several files, and of each step of a probe, are taken from one file.
    """
    wanted = SCHEMAS[table].names if columns is None else columns
    identity = {"failures": ["pack", "attempt"], "probes": [*ROW, "probe", "step"]}.get(table, ROW)
    needed = [*wanted, *(name for name in identity if name not in wanted)]
    compacted = [name for name in files if name.startswith(COMPACTED)]
    added = [name for name in files if table == "probes" and "." in name.removesuffix(SUFFIX)]  # <pack>.<probe>
    others = [name for name in files if name not in {*compacted, *added}]
    groups = [added, *([name] for name in compacted), others]  # within a group nothing is twice
    kept = _concat(table, needed, [])
    for group in filter(None, groups):
        part = _read_many(store, table, group, needed)
        fresh = part.take(matching(part, kept, "left anti", identity)) if kept.num_rows else part
        kept = _concat(table, needed, [kept, fresh])
    return kept.select(wanted)


def _rows(
    store: Store,
    table: str,
    columns: list[str] | None,
    filter: pa.compute.Expression | None = None,
    packs: Collection[str] | None = None,
) -> pa.Table:
    """`read` without the winner rule."""
    columns = SCHEMAS[table].names if columns is None else columns
    unknown = [name for name in columns if name not in SCHEMAS[table].names]
    if unknown:
        raise ValueError(f"table {table!r} has no column {unknown[0]!r}: use some of {', '.join(SCHEMAS[table].names)}")
    unchanged = 0
    while True:
        files = table_files(store, table, packs)
        try:
            if len(files) < 2:
                return _concat(table, columns, [_read_one(store, table, name, columns, filter) for name in files])
            if filter is None:
                return read_files(store, table, files, columns)
            # copies are chosen before the filter, or each copy would give what another one lacks; and a filter of many small files
            # one by one takes longer than to read them
            named = [name for name in SCHEMAS[table].names if name in str(filter) and name not in columns]
            return read_files(store, table, files, [*columns, *named]).filter(filter).select(columns)
        except MissingFile:
            # a compaction takes listed files away, one by one: list again, unless the list stays as it was
            unchanged += table_files(store, table, packs) == files
            if unchanged == 3:
                raise


def _of_pack(name: str, packs: Collection[str]) -> bool:
    """Whether a file is of one of the packs: `<pack>.parquet`, or `<pack>.<probe>.parquet` of a probe."""
    stem = name.removesuffix(SUFFIX)
    return stem in packs or any(stem[:end] in packs for end, letter in enumerate(stem) if letter == ".")


def _read_one(store: Store, table: str, name: str, columns: list[str], filter: pa.compute.Expression | None = None) -> pa.Table:
    return read_file(store.filesystem, store.path(table, name), table, columns, filter)


def _read_many(store: Store, table: str, names: list[str], columns: list[str]) -> pa.Table:
    """The rows of files, in their order; a second process reads half of very many."""
    if len(names) < _VERY_MANY or not store.is_local or not second_process.worthwhile():
        return _read_here(store, table, names, columns)
    half = len(names) // 2
    later = second_process.submit(_read_here, store, table, names[half:], columns)
    return _concat(table, columns, [_read_here(store, table, names[:half], columns), later.result()])


def _read_here(store: Store, table: str, names: list[str], columns: list[str]) -> pa.Table:
    def read_some(some: list[str]) -> list[pa.Table]:
        if store.is_local:
            return read_local_files([store.path(table, name) for name in some], table, columns)
        return [_read_one(store, table, name, columns) for name in some]

    if len(names) < 2:
        return _concat(table, columns, read_some(names))
    count, most = (_LOCAL_THREADS, _LOCAL_AT_ONCE) if store.is_local else (_THREADS, _AT_ONCE)
    size = min(most, -(-len(names) // count))
    with ThreadPoolExecutor(count) as threads:
        pieces = threads.map(read_some, (names[start : start + size] for start in range(0, len(names), size)))
        return _concat(table, columns, list(itertools.chain.from_iterable(pieces)))


def _concat(table: str, columns: list[str], parts: list[pa.Table]) -> pa.Table:
    schema = pa.schema([SCHEMAS[table].field(name) for name in columns])
    same = (part if part.schema.equals(schema) else part.cast(schema) for part in parts)
    rows = pa.concat_tables([schema.empty_table(), *same])
    return rows.combine_chunks() if rows.num_columns and rows.column(0).num_chunks > _MANY else rows


def matching(rows: pa.Table, other: pa.Table, join: str, on: list[str] = ROW) -> pa.Array:
    """Positions of the rows that a semi or anti join ("left semi", "left anti") keeps, ascending.

    (pyarrow can't join tables that hold list columns.) Neighbouring rows of one identity are looked up once.
    """
    if not rows.num_rows:
        return pa.array([], pa.int64())
    changes = np.zeros(rows.num_rows, bool)
    changes[0] = True
    for name in on:
        column = rows[name].combine_chunks()
        changes[1:] |= pa.compute.not_equal(column[1:], column[:-1]).to_numpy(zero_copy_only=False)
    first = np.flatnonzero(changes)
    numbered = rows.select(on).take(pa.array(first)).append_column("run", pa.array(np.arange(first.size)))
    kept = np.zeros(first.size, bool)
    kept[numbered.join(other.select(on), keys=on, join_type=join)["run"].to_numpy()] = True
    return pa.array(np.flatnonzero(np.repeat(kept, np.diff(np.append(first, rows.num_rows)))))
