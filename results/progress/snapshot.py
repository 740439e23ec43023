"""A study's state at one moment, from its store alone: counts by pack state, condition and node, a rate, and an estimated end time."""

import datetime
import math
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from results.errors import DamagedFile
from results.store.filesystem import listing
from results.store.manifest import Manifest, label, named_as_planned, stage_of
from results.store.tables import Store, read

# the columns of `replicates` that a snapshot needs
COLUMNS = ["key", "stage", "pack", "condition", "status", "started", "ended", "train_s", "evaluate_s", "host"]
WINDOW_S = 3600.0  # time over which rates are taken
LEASE_S = 120.0  # life of a lease that is not renewed; `harness.executing.leases` renews it four times as often
_FARTHEST_S = 10 * 365 * 86400.0  # an end time farther away is no estimate


@dataclass(frozen=True)
class Packs:
    """Numbers of packs. committed, waiting, failed: with a replicate of the newest plan. in_flight: with a checkpoint or a living lease."""

    committed: int
    in_flight: int
    waiting: int
    failed: int


@dataclass(frozen=True)
class Condition:
    """Replicates of a condition; `planned` is 0 for one that the newest plan lacks."""

    name: str
    committed: int
    planned: int
    diverged: int
    failed: int


@dataclass(frozen=True)
class Node:
    """Replicates that a host has committed, and how many of them within the last hour."""

    name: str
    committed: int
    recent: int
    last: datetime.datetime


@dataclass(frozen=True)
class Snapshot:
    """The state of a study. Times are UTC.

    committed: how many of the planned replicates are (of all, where there is no plan). unplanned: committed ones that the newest plan
    lacks. recent: how many were within the last hour.
    per_minute: replicates a minute over the last hour, or since the first of its packs began. ends: estimated end at the pace of the last
    hour, without the time in which none of its replicates was under way; missing ones count by the seconds that others of their condition
    took. None where none was committed in that hour.
    """

    study: str
    at: datetime.datetime
    committed: int
    planned: int
    unplanned: int
    failed: int
    packs: Packs
    conditions: tuple[Condition, ...]
    nodes: tuple[Node, ...]
    recent: int
    per_minute: float
    last: datetime.datetime | None
    ends: datetime.datetime | None


def take(store: Store, manifest: Manifest | None) -> Snapshot:
    """Take a snapshot now, with the newest manifest. Raises ValueError, naming the file, where a file is none of the store's tables."""
    return snapshot(store.study, manifest, read(store, "replicates", COLUMNS), failed_keys(store), in_flight(store))


def failed_keys(store: Store) -> set[str]:
    """Keys of all replicates that ever failed, those that were committed later included."""
    return set(read(store, "failures", ["keys"])["keys"].combine_chunks().flatten().unique().to_pylist())


def in_flight(store: Store) -> set[str]:
    """Ids of packs that have a checkpoint, or a lease that was renewed in time."""
    now, packs = datetime.datetime.now(datetime.UTC), set()
    for folder in ("checkpoints", "leases"):
        for info in listing(store.filesystem, store.path(folder)):
            late = info.mtime is not None and (now - info.mtime).total_seconds() > LEASE_S
            if not info.base_name.startswith(".") and not (folder == "leases" and late):
                packs.add(info.base_name.removesuffix(".json"))
    return packs


def snapshot(
    study: str,
    manifest: Manifest | None,
    rows: pa.Table,
    failures: Collection[str],
    flying: Collection[str],
    now: datetime.datetime | None = None,
) -> Snapshot:
    """Make a snapshot from what was read. rows: `COLUMNS` of the winning replicates; failures: keys; flying: ids of packs in flight."""
    now, rows = now or datetime.datetime.now(datetime.UTC), _labelled(rows)
    if manifest:
        rows = named_as_planned(manifest, rows, [label(each["name"], stage_of(each)) for each in manifest["conditions"]])
    keys = set(rows["key"].to_pylist())
    planned = {row[0] for row in manifest["replicates"]} if manifest else keys
    failed = set(failures) - keys
    if manifest:
        failed &= planned
    packs = set(rows["pack"].unique().to_pylist())
    own = rows.filter(pc.is_in(rows["key"], pa.array(sorted(planned), pa.string())))["pack"]
    if manifest and planned <= keys:  # what an earlier plan left is not on its way; packs that score a new set are
        flying = set(flying) & {name for name, _ in _planned(manifest)}
    conditions = _conditions(manifest, rows, failed)
    recent = rows.filter(pc.greater(rows["ended"], pa.scalar(now - datetime.timedelta(seconds=WINDOW_S), rows["ended"].type)))
    window = 0.0
    if recent.num_rows:
        window = min(WINDOW_S, max(1.0, (now - pc.min(recent["started"]).as_py()).total_seconds()))
    return Snapshot(
        study,
        now,
        len(keys & planned),
        len(manifest["replicates"]) if manifest else 0,
        len(keys - planned),
        len(failed),
        _packs(manifest, keys, failed, packs, set(flying) - packs, len(own.unique())),
        conditions,
        _nodes(rows, recent),
        recent.num_rows,
        60 * recent.num_rows / window if window else 0.0,
        pc.max(rows["ended"]).as_py(),
        _ends(now, conditions, rows, recent),
    )


def _packs(
    manifest: Manifest | None, keys: set[str], failed: set[str], done: set[str], flying: set[str], committed: int
) -> Packs:
    """Count packs by state; one that is neither committed nor in flight has failed if one of its replicates has, else it waits."""
    waiting = broken = 0
    if manifest:
        ended = np.array([2 * (row[0] in keys) + (row[0] in failed) for row in manifest["replicates"]], dtype=np.int8)
        for name, members in _planned(manifest):
            states = ended[members]
            if name not in done and name not in flying:
                lost = bool((states == 1).any())
                broken += lost
                waiting += not lost and not states.all()
    return Packs(committed, len(flying), waiting, broken)


def _planned(manifest: Manifest) -> Iterator[tuple[str, np.ndarray]]:
    """The packs of a plan: each id with the places of its replicates in the plan."""
    count = len(manifest["replicates"])
    try:
        for pack in manifest.get("packs", []):
            name, members = pack["id"], np.asarray(pack["replicates"], dtype=np.int64)
            if not isinstance(name, str) or members.ndim != 1 or not ((members >= 0) & (members < count)).all():
                raise TypeError("another kind of pack")
            yield name, members
    except (TypeError, KeyError, ValueError, OverflowError) as error:
        raise DamagedFile(
            f"the newest manifest of {str(manifest['study'])[:100]!r} lists packs that no plan has; move it out of the store"
        ) from error


def _conditions(manifest: Manifest | None, rows: pa.Table, failed: set[str]) -> tuple[Condition, ...]:
    listed = manifest["conditions"] if manifest else []
    planned = {label(condition["name"], stage_of(condition)): condition["replicates"] for condition in listed}
    if manifest:  # rows that an earlier plan left under a planned name are none of this plan's
        keys = pa.array([row[0] for row in manifest["replicates"]], pa.string())
        elsewhere = pc.invert(pc.is_in(rows["condition"], pa.array(list(planned), pa.string())))
        rows = rows.filter(pc.or_(pc.is_in(rows["key"], keys), elsewhere))
    done = _counts(rows["condition"])
    diverged = _counts(rows.filter(pc.equal(rows["status"], "diverged"))["condition"])
    lost: Counter[str] = Counter()
    if failed and manifest:
        lost.update(
            label(listed[row[1]]["name"], stage_of(listed[row[1]])) for row in manifest["replicates"] if row[0] in failed
        )
    names = dict.fromkeys((*planned, *done))
    return tuple(Condition(n, done.get(n, 0), planned.get(n, 0), diverged.get(n, 0), lost[n]) for n in names)


def _labelled(rows: pa.Table) -> pa.Table:
    """The rows, with the labels of their stages as the names of conditions."""
    if not (pc.max(rows["stage"]).as_py() or 0):
        return rows
    pairs = zip(rows["condition"].to_pylist(), rows["stage"].to_pylist(), strict=True)
    named = pa.chunked_array([pa.array([label(name, stage) for name, stage in pairs], pa.string())])
    return rows.set_column(rows.column_names.index("condition"), rows.schema.field("condition"), named)


def _nodes(rows: pa.Table, recent: pa.Table) -> tuple[Node, ...]:
    """The nodes, those with most replicates in the last hour first."""
    lately = _counts(recent["host"])
    hosts = rows.group_by("host").aggregate([("host", "count"), ("ended", "max")]).to_pylist()
    nodes = [Node(row["host"], row["host_count"], lately.get(row["host"], 0), row["ended_max"]) for row in hosts]
    return tuple(sorted(nodes, key=lambda node: (-node.recent, node.name)))


def _ends(
    now: datetime.datetime, conditions: tuple[Condition, ...], rows: pa.Table, recent: pa.Table
) -> datetime.datetime | None:
    if not recent.num_rows:
        return None
    spent = pa.table({"condition": rows["condition"], "s": pc.add(rows["train_s"], rows["evaluate_s"])})
    overall = pc.mean(spent["s"]).as_py()
    seconds = {row["condition"]: row["s_mean"] for row in spent.group_by("condition").aggregate([("s", "mean")]).to_pylist()}
    work = sum(max(0, c.planned - c.committed - c.failed) * seconds.get(c.name, overall) for c in conditions)
    pace = pc.sum(pc.add(recent["train_s"], recent["evaluate_s"])).as_py() / _busy_s(recent)
    left = work / pace if work and pace else 0.0
    return now + datetime.timedelta(seconds=left) if 0 < left < _FARTHEST_S and math.isfinite(left) else None


def _busy_s(rows: pa.Table) -> float:
    """Seconds in which any of these replicates was under way, 1 at least: a study that was stopped meanwhile is not slow."""
    order = np.argsort(began := rows["started"].to_numpy())
    began, ended = began[order], np.maximum.accumulate(rows["ended"].to_numpy()[order])
    idle = np.maximum(began[1:] - ended[:-1], np.timedelta64(0)).sum()
    return max(1.0, (ended[-1] - began[0] - idle) / np.timedelta64(1, "s"))


def _counts(names: pa.ChunkedArray) -> dict[str, int]:
    return {value["values"]: value["counts"] for value in names.value_counts().to_pylist()}
