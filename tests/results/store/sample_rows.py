"""Small invented tables of a study, with every column filled, for the tests of this folder."""

import datetime
import json
import zlib

import pyarrow as pa

from results.store.schema import SCHEMAS
from results.store.tables import Store, commit

STARTED = datetime.datetime(2026, 11, 1, 12, tzinfo=datetime.UTC)
SETS = {"in_distribution": "hash-in", "sparse": "hash-sparse", "dense": "hash-dense"}
STEPS = (100, 200)


def number(*words: object) -> int:
    """A fixed number below 1000 for these words."""
    return zlib.crc32(repr(words).encode()) % 1000


def pack_tables(pack: str, keys: list[str], condition: str = "transformer", sets: dict[str, str] = SETS) -> dict[str, pa.Table]:
    """Every table of a pack but `failures`; counts differ between packs too, so that a mixed-up copy is seen."""
    replicates, evaluations, profiles, curves, probes = [], [], [], [], []
    for slot, key in enumerate(keys):
        row = {"key": key, "stage": 0, "pack": pack}
        diverged = key == "d"
        replicates.append(
            row
            | {"condition": condition, "config": json.dumps({"model": condition}), "init_seed": number(key), "data_seed": 1}
            | {"status": "diverged" if diverged else "finished", "diverged_at": 150 if diverged else None, "steps": 200}
            | {"samples": 3200, "tokens": 204800, "parameters": 1234, "loss": float("nan") if diverged else number(key) / 7}
            | {"pack_size": len(keys), "slot": slot, "attempt": 1, "started": STARTED, "ended": STARTED, "train_s": 1.5}
            | {"evaluate_s": 0.5, "host": "here", "device": "cpu", "numerics": "{}", "versions": "{}", "git": None}
            | {"dirty": False, "sets": sorted(sets.values()), "parent_key": None, "parent_step": None}
        )
        for name, set_hash in sets.items():
            errors = None if diverged else number(pack, key, name)
            evaluations.append(
                row
                | {"step": 200, "weights": "raw", "set": name, "set_hash": set_hash, "length": 64, "metric": "read"}
                | {"errors": errors, "count": None if diverged else 20000, "sequences": 1000, "sequences_wrong": errors}
                | {"errors_sq": errors, "errors_x_count": errors, "count_sq": errors, "value": None}
            )
            bins = row | {"step": 200, "set": name, "set_hash": set_hash, "axis": "since_write", "lo": 0, "hi": 8}
            profiles.append(bins | {"errors": errors or 0, "count": 20000})
        for step in STEPS:
            online = {"step": step, "weights": "raw", "set": "sparse_online", "set_hash": "hash-online", "metric": "read"}
            wrong = None if diverged else number(pack, key, step)
            evaluations.append(row | online | {"errors": wrong, "count": None if diverged else 2000, "sequences": 100})
            curves.append(row | {"step": step, "metric": "loss", "value": number(pack, key, step) / 3})
        probes.append(row | {"step": 200, "probe": "margin", "layer": 0, "head": None, "item": None, "value": 0.25})
    rows = {"replicates": replicates, "evaluations": evaluations, "profiles": profiles, "curves": curves, "probes": probes}
    return {table: pa.Table.from_pylist(listed, schema=SCHEMAS[table]) for table, listed in rows.items()}


def failure(pack: str, attempt: int) -> pa.Table:
    row = {"pack": pack, "attempt": attempt, "keys": ["k"], "stage": 0, "step": None, "kind": "raised"}
    row |= {"exception": "ValueError: no", "traceback": "…", "at": STARTED}
    return pa.Table.from_pylist([row], schema=SCHEMAS["failures"])


def commit_pack(store: Store, pack: str, keys: list[str], **options: object) -> None:
    commit(store, pack, pack_tables(pack, keys, **options))  # type: ignore[arg-type]


def in_order(rows: pa.Table) -> list[str]:
    """Rows as sorted text, so that tables compare whatever their order (and NaN equals NaN)."""
    return sorted(map(repr, rows.to_pylist()))


def manifest(conditions: dict[str, list[str]]) -> dict:
    """A manifest that plans these keys for each condition, in the shape that `harness` writes."""
    sets = {name: {"definition": {}, "sequences": 1000, "every": None, "seed": 0} for name in SETS}
    sets["sparse_online"] = {"definition": {}, "sequences": 100, "every": 100, "seed": 0}
    hashes = {name: {"hash": set_hash, "task": {}} for name, set_hash in (SETS | {"sparse_online": "hash-online"}).items()}
    planned = [[key, index, number(key), 1] for index, keys in enumerate(conditions.values()) for key in keys]
    config = {"task": {"name": "flipflop"}, "train": {}}
    listed = [
        {"name": n, "config": config | {"model": {"name": n}}, "sets": hashes, "replicates": len(k)}
        for n, k in conditions.items()
    ]
    return {
        "study": "quick",
        "question": "How long is the tail?",
        **{"source": {}, "scale": "laptop", "reductions": [], "overrides": []},
        "sets": sets,
        "conditions": listed,
        "replicates": planned,
        "packs": [],
        "versions": {"torch": "2"},
    }
