"""The newest manifest of a study and what it says. A manifest never changes, so a study that was extended has several."""

import gzip
import hashlib
import io
import json
import re
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs

from results.errors import DamagedFile, MissingFile, StoreError, StudyError, store_errors
from results.plain_values import Tree
from results.store.filesystem import info_of, public, reason
from results.store.manifest_fields import ConditionFields, Manifest, Planned
from results.store.manifest_schema import problem
from results.store.tables import Store, delete, list_names, read_bytes, write_bytes

FOLDER = "manifests"
NEWEST = "newest_manifest"  # a file of the study that names one: times of files do not survive a copy
SUFFIX = ".yaml"
COMPRESSED = f"{SUFFIX}.gz"  # as `compress` leaves it: most of a manifest is repetition
_MOST_NAME = 200  # bytes
MOST_BYTES = 2**28  # 2 × 10^6 replicates
_CHANGE = re.compile(
    r"(?P<path>[^:\s]+): (?P<old>(?:(?! -> ).)+) -> (?P<new>\S+|\[[^\]]*\])"
)  # of one value, for all conditions
_CURE = "bring it from a copy of the store, or delete it and run the study again, which writes its plan anew"


def write_manifest(store: Store, content: bytes) -> None:
    """Write a manifest, named for its bytes, and make it the newest. Raises OSError with one sentence."""
    name = digest(content)
    write_bytes(store, f"{FOLDER}/{name}{SUFFIX}", content)
    write_bytes(store, NEWEST, name.encode())


def newest_manifest(store: Store) -> tuple[str, Manifest] | None:
    """Hash and content of the manifest that was written last; None where there is none.

    It is the one that the file `newest_manifest` names. Without that file it is the latest by the time of the files, and of several with
    the same time the one that plans most. Raises DamagedFile, naming the file, where that is no manifest.
    """
    files = manifest_files(store)
    if not files:
        return None
    if (named := named_manifest(store)) is not None:
        if named not in files:
            raise DamagedFile(
                f"{store.path(NEWEST)} names {named}, which is not in {store.path(FOLDER)}: bring it there, or delete the file"
            )
        return named, read_manifest(store, files[named])
    with store_errors(store.path(FOLDER)):
        infos: list[pyarrow.fs.FileInfo] = store.filesystem.get_file_info([store.path(FOLDER, file) for file in files.values()])
    last = max(info.mtime_ns for info in infos)
    latest = [name for name, info in zip(files, infos, strict=True) if info.mtime_ns == last]
    return max(((name, read_manifest(store, files[name])) for name in latest), key=lambda named: len(named[1]["replicates"]))


def manifest_files(store: Store) -> dict[str, str]:
    """The files of a study's manifests by their names without suffix, sorted. Where one has both suffixes, it is the file of SUFFIX."""
    files = list_names(store, FOLDER)
    named = {file.removesuffix(suffix): file for suffix in (COMPRESSED, SUFFIX) for file in files if file.endswith(suffix)}
    return dict(sorted(named.items()))


def compress(store: Store) -> None:
    """Compress every manifest of a study with gzip. The newest stays the newest."""
    newest = newest_manifest(store)
    if newest is None:
        return
    write_bytes(store, NEWEST, newest[0].encode())  # without it, the time of the files would say which is the newest
    for name, file in manifest_files(store).items():
        if not file.endswith(COMPRESSED):
            write_bytes(store, f"{FOLDER}/{name}{COMPRESSED}", gzip.compress(manifest_bytes(store, file), mtime=0))
            delete(store, f"{FOLDER}/{file}")


def manifest_of(store: Store) -> Manifest:
    """The content of a study's newest manifest. Raises StudyError where the store has no such study, DamagedFile as above."""
    newest = newest_manifest(store)
    if newest is None:
        raise StudyError(
            f"there is no study {store.study!r} in {public(store.root)}, since it has no manifest: run it first, or correct the store or "
            "the name"
        )
    return newest[1]


def named_manifest(store: Store) -> str | None:
    path = store.path(NEWEST)
    info = info_of(store.filesystem, path)
    if not info.is_file:
        return None
    name = read_bytes(store, NEWEST).strip() if (info.size or 0) <= _MOST_NAME else b""
    if not re.fullmatch(rb"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise DamagedFile(f"{path} names no manifest; delete it")
    return name.decode()


def reductions_of(manifest: Mapping[str, Any]) -> list[str]:
    """What is smaller than in the study as written, with the values that the command line gave instead.

    Older manifests list what the scale says: "replicates: 20 -> 10" where `replicates=20` was typed and 20 were run.
    """
    typed = dict(override.split("=", 1) for override in map(str, manifest.get("overrides") or ()) if "=" in override)
    lines = []
    for line in map(str, manifest.get("reductions") or ()):
        change = _CHANGE.fullmatch(line)
        value = typed.get(change["path"]) if change else None
        if change and value is not None and value.replace(" ", "") != change["new"].replace(" ", ""):
            if value.replace(" ", "") == change["old"].replace(" ", ""):
                continue
            line = f"{change['path']}: {change['old']} -> {value}"
        lines.append(line)
    return lines


def stage_of(condition: ConditionFields) -> int:
    """The stage of a manifest's condition: its configuration lists the stages before it, and what it takes from the last."""
    stages = condition.get("config", {}).get("stages")
    return max(0, len(stages) - 1) if isinstance(stages, list) else 0


def is_of(manifest: Manifest, task: str) -> bool:
    """Whether every condition of a study trains on this task."""
    return all(
        condition.get("settings", condition["config"]).get("task", {}).get("name") == task
        for condition in manifest["conditions"]
    )


def has_settings_of(manifest: Manifest, *tasks: str) -> bool:
    """Whether a study is of one of these tasks and its manifest has the settings of all conditions, which older manifests lack."""
    return any(is_of(manifest, task) for task in tasks) and all("settings" in each for each in manifest["conditions"])


@dataclass(frozen=True)
class Scoring:
    """How a condition's task scores a model.

    metrics: kinds of errors, the first of which is reported. error: what counts as an error, a noun phrase. tokens: positions of a string
    that a model reads. outputs: classes that it chooses from. All but the metrics are None in manifests that do not say.
    """

    metrics: tuple[str, ...]
    error: str | None = None
    tokens: int | None = None
    outputs: int | None = None

    @property
    def metric(self) -> str:
        """The reported metric."""
        return self.metrics[0]


def scoring_of(condition: ConditionFields) -> Scoring:
    """The scoring of a manifest's condition; an older manifest lacks it, and has the metric of its time.

    Raises StoreError for numbers of which larger ones are better: no reader of this version ranks those.
    """
    scoring = condition.get("scoring")
    if scoring is None:
        return Scoring(("read",))
    if scoring["direction"] != "lower":
        raise StoreError(
            f"condition {condition['name']} has numbers of which {scoring['direction']} ones are better, and this version reads errors "
            "alone: upgrade manyseeds"
        )
    return Scoring(tuple(scoring["metrics"]), scoring["error"], scoring.get("tokens"), scoring.get("outputs"))


def reported(manifest: Planned) -> pc.Expression:
    """An expression for the reported rows of `evaluations`: the first metric of a condition's task; of experiments, all rows of planned
    replicates, as those of older code may have other metrics."""
    if any("experiment" in condition.get("config", {}) for condition in manifest["conditions"]):
        planned = pa.array([key for key, *_ in manifest["replicates"]], pa.string())
        return pc.field("kind").is_valid() & pc.field("key").isin(planned)
    hashes: dict[str, set[str]] = {}
    for condition in manifest["conditions"]:
        own = hashes.setdefault(scoring_of(condition).metric, set())
        own.update(evaluation_set["hash"] for evaluation_set in condition.get("sets", {}).values() if "hash" in evaluation_set)
    if len(hashes) == 1:
        return pc.field("metric") == next(iter(hashes))
    chosen = pc.scalar(False)
    for metric, own in hashes.items():  # a metric may be the first of one task and the second of another
        chosen = chosen | ((pc.field("metric") == metric) & pc.field("set_hash").isin(pa.array(sorted(own), pa.string())))
    return chosen


def reported_rows(manifest: Manifest, evaluations: pa.Table) -> pa.Table:
    """The reported rows of `evaluations`, in their order. Where all rows are reported, none is copied."""
    selects = reported(manifest)
    decisive = [name for name in ("key", "kind", "metric", "set_hash") if name in str(selects)]
    count = evaluations.select(decisive).filter(selects).num_rows
    return evaluations if count == evaluations.num_rows else evaluations.filter(selects)


def planned_rows(manifest: Planned, rows: pa.Table) -> pa.Table:
    """The rows with `key` of the replicates that a manifest plans, in their order."""
    return rows.filter(pc.is_in(rows["key"], pa.array([key for key, *_ in manifest["replicates"]], pa.string())))


def label(name: str, stage: int) -> str:
    """The name of a stage of a condition; a first stage has the condition's name."""
    return f"{name}, stage {stage}" if stage else name


def named_as_planned(manifest: Planned, rows: pa.Table, labels: Sequence[str] | None = None) -> pa.Table:
    """Rows with `key` and `condition` under the plan's names: a condition that was renamed keeps its rows. Others keep their names.

    labels: what the conditions of the plan are called, if not by their names.
    """
    if not manifest["replicates"]:
        return rows
    keys, places = zip(*((row[0], row[1]) for row in manifest["replicates"]), strict=True)
    names = pa.array([each["name"] for each in manifest["conditions"]] if labels is None else labels, pa.string())
    planned = names.take(pa.array(places)).take(pc.index_in(rows["key"], pa.array(keys, pa.string())).combine_chunks())
    named = pc.coalesce(planned, rows["condition"].combine_chunks())
    return rows.set_column(rows.column_names.index("condition"), rows.schema.field("condition"), named)


def as_planned(store: Store, rows: pa.Table) -> pa.Table:
    """Rows with `key` and `condition` under the names of the newest plan, as `named_as_planned`."""
    newest = newest_manifest(store)
    return named_as_planned(newest[1], rows) if newest else rows


def manifest_bytes(store: Store, name: str) -> bytes:
    """What the file `name` of a study's manifests holds, decompressed.

    Raises DamagedFile where it is larger than MOST_BYTES, which is asked before it is read, and where it is not what was written.
    """
    path = store.path(FOLDER, name)
    size = info_of(store.filesystem, path).size or 0
    if size > MOST_BYTES:
        raise DamagedFile(f"{path} has {size} bytes, and a manifest at most {MOST_BYTES}; move it out of the store")
    data = decompressed(read_bytes(store, f"{FOLDER}/{name}"), path)
    if named_for(name) not in (None, digest(data)):
        raise DamagedFile(f"{path} is not what was written, since its name is not the digest of its bytes: {_CURE}")
    return data


def decompressed(data: bytes, path: str) -> bytes:
    """The manifest in a file of these bytes. Raises DamagedFile where they can't be decompressed, or are more than MOST_BYTES then."""
    if not path.endswith(COMPRESSED):
        return data
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            content = file.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DamagedFile(
            f"{path} is not what was written, since it can't be decompressed ({reason(error)}): {_CURE}"
        ) from error
    if len(content) > MOST_BYTES:
        raise DamagedFile(
            f"{path} has more than {MOST_BYTES} bytes, decompressed, and a manifest has at most that; move it out of the store"
        )
    return content


def digest(content: bytes) -> str:
    """The digest of a manifest's bytes, for which a store names it: the first 16 digits of their SHA-256."""
    return hashlib.sha256(content).hexdigest()[:16]


def named_for(name: str) -> str | None:
    """The digest that the name of a manifest's file consists of; None where someone named it otherwise."""
    stem = name.partition(".")[0]
    return stem if re.fullmatch("[0-9a-f]{16}", stem) else None


def read_manifest(store: Store, file: str) -> Manifest:
    """The content of one of `manifest_files`, which fits the schema. Raises DamagedFile, naming the file, where it does not."""
    try:
        data = manifest_bytes(store, file)
    except MissingFile:
        if not file.endswith(SUFFIX):
            raise
        data = manifest_bytes(store, f"{file.removesuffix(SUFFIX)}{COMPRESSED}")  # `compress` was faster
    return checked(data, store.path(FOLDER, file))


def checked(data: bytes, path: str) -> Manifest:
    """Parse the bytes of a file as a manifest. Raises DamagedFile where they do not fit `results.store.manifest_schema`."""
    try:
        content = json.loads(data, parse_constant=_no_number, object_pairs_hook=without_twins)
    except (ValueError, RecursionError) as error:
        raise DamagedFile(
            f"{path} is no manifest ({reason(error)[:300]}); move it out of the store, and run the study again"
        ) from error
    if wrong := problem(content):
        raise DamagedFile(f"{path} is no manifest of a study: {wrong}; move it out of the store, and run the study again")
    manifest: Manifest = content
    return manifest


def _no_number(name: str) -> None:
    raise ValueError(f"it holds the number {name}")


def without_twins(pairs: list[tuple[str, Any]]) -> Tree:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        twin = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"it has the name {twin[:60]!r} twice in one mapping")
    return mapping
