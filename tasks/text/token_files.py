"""A user's own files of token ids: opened without being read into memory, and hashed.

    FOLDER/train/*.npy  *.arrow  *.parquet        a part is a folder in FOLDER; files in the order of their names
    FOLDER/test/…

A .npy file holds one row of whole numbers. It is memory-mapped, and so are the record batches of an Arrow file or stream; a Parquet file
is compressed, so it is read into memory. Arrow and Parquet files hold the ids as numbers or lists, in a column `input_ids` or `tokens`, or
in their only column.
"""

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.lib.format import MAGIC_PREFIX
from numpy.typing import NDArray

SUFFIXES = (".npy", ".arrow", ".parquet")
_COLUMNS = ("input_ids", "tokens")
Ids = NDArray[Any]
Stamp = tuple[tuple[str, int, int], ...]  # path, bytes and time of change of each file


def parts_of(folder: str) -> list[str]:
    """The parts of a corpus by name. ValueError where there is no such folder, or no part with files."""
    root = Path(folder)
    if not folder or not root.is_dir():
        raise ValueError(
            f"task.folder = {folder!r} is no folder here: give the folder with the parts of the corpus, such as train and test"
        )
    parts = sorted(path.name for path in root.iterdir() if path.is_dir() and _files(path))
    if not parts and _files(root):
        raise ValueError(
            f"task.folder = {folder!r} holds {_files(root)[0].name} itself: give the folder above it, or move its files into a folder "
            "train in it"
        )
    if not parts:
        raise ValueError(
            f"task.folder = {folder!r} has no folder with {', '.join(SUFFIXES)} files: put token ids into its folders train and test"
        )
    return parts


def content(folder: str) -> str:
    """The hash of a corpus, 32 hexadecimal digits: of every byte, the order of files and the names of parts, but not of its folder.

    All bytes are read, once a process. Raises ValueError as `parts_of` does.
    """
    whole = hashlib.sha256()
    for part in parts_of(folder):
        for line in _digests(part, _stamp(Path(folder) / part)):
            whole.update(line.encode())
    return whole.hexdigest()[:32]


def pieces(folder: str, part: str, vocabulary: int) -> tuple[Ids, ...]:
    """The runs of ids of a part, whole numbers in 0 … vocabulary - 1; a run is one file, or one record batch of it.

    Raises ValueError, in one sentence, for a part that is not there and for a file that can't be read or holds other numbers.
    """
    parts = parts_of(folder)
    if part not in parts:
        raise ValueError(f"task.part = {part!r} is no part of {folder}; parts: {', '.join(parts)}")
    runs, highest, where = _opened(_stamp(Path(folder) / part))
    if highest >= vocabulary:
        raise ValueError(
            f"{where} holds the token id {highest} and task.vocabulary = {vocabulary}: write the tokenizer's size, at least {highest + 1}"
        )
    return runs


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES and path.is_file())


def _stamp(folder: Path) -> Stamp:
    return tuple((str(path), (about := path.stat()).st_size, about.st_mtime_ns) for path in _files(folder))


@lru_cache(maxsize=64)
def _digests(part: str, stamp: Stamp) -> tuple[str, ...]:
    digests = []
    for path, *_ in stamp:
        with open(path, "rb") as file:
            digests.append(f"{part} {hashlib.file_digest(file, 'sha256').hexdigest()}\n")
    return tuple(digests)


@lru_cache(maxsize=16)
def _opened(stamp: Stamp) -> tuple[tuple[Ids, ...], int, str]:
    """The runs of these files, the largest id and the file that holds it."""
    runs: list[Ids] = []
    highest, where = -1, ""
    for path, *_ in stamp:
        for ids in _read(path):
            if ids.size and int(ids.min()) < 0:
                raise ValueError(f"{path} holds the token id {int(ids.min())}: ids are whole numbers from 0")
            if ids.size and int(ids.max()) > highest:
                highest, where = int(ids.max()), path
            runs.append(ids)
    return tuple(runs), highest, where


def _read(path: str) -> list[Ids]:
    try:
        if path.endswith(".npy"):
            runs = [_array(path)]
        else:
            runs = _column(path, pq.read_table(path) if path.endswith(".parquet") else _mapped(path))
    except (OSError, ValueError, pa.ArrowException) as error:
        raise ValueError(f"{path} can't be read as token ids: {str(error).splitlines()[0]}") from error
    for ids in runs:
        if ids.dtype.kind not in "iu" or ids.ndim != 1:
            raise ValueError(
                f"{path} holds {ids.dtype} of {ids.ndim} dimensions: token ids are one row of whole numbers, such as uint16"
            )
    return runs


def _array(path: str) -> Ids:
    with open(path, "rb") as file:
        if file.read(len(MAGIC_PREFIX)) != MAGIC_PREFIX:
            raise ValueError("it is no .npy file: write it with numpy.save")
    try:
        array: Ids = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError as error:
        if "Python objects" in str(error):
            raise ValueError("it holds Python objects: save one row of whole numbers, such as uint16") from error
        raise ValueError(f"it is damaged or cut off: write it again ({error})") from error
    return array


def _mapped(path: str) -> pa.Table:
    try:
        return pa.ipc.open_file(pa.memory_map(path)).read_all()
    except pa.ArrowInvalid:
        return pa.ipc.open_stream(pa.memory_map(path)).read_all()


def _column(path: str, table: pa.Table) -> list[Ids]:
    names = [name for name in _COLUMNS if name in table.column_names] or table.column_names
    if len(names) > 1 and names[0] not in _COLUMNS:
        raise ValueError(f"it has the columns {', '.join(names)}: name the one with the ids {' or '.join(_COLUMNS)}")
    column = table.column(names[0])
    if column.null_count:
        raise ValueError(f"its column {names[0]} has missing values")
    runs = []
    for chunk in column.chunks:
        flat = chunk.flatten() if pa.types.is_list(chunk.type) or pa.types.is_large_list(chunk.type) else chunk
        if flat.null_count:
            raise ValueError(f"its column {names[0]} has missing values in its lists")
        runs.append(flat.to_numpy(zero_copy_only=pa.types.is_integer(flat.type)))
    return runs
