"""Studies with the errors that a test asks for: real schemas, one condition per set of options, for the tests of claims."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from results.store.schema import SCHEMAS
from results.store.tables import Store, commit, write_bytes
from tests.results.synthetic import START, digest

SETS = {
    "narrow": {},
    "rare": {"p_ignore": 0.98},
    "busy": {"p_ignore": 0.1},
    "often": {"p_ignore": 0.9},
}  # names that say nothing
LOOKS = {"rare_looks": {"p_ignore": 0.98}, "narrow_looks": {}}  # scored on the way, in a study of which a condition has looks
STRINGS = 500  # at a look, of two reads each
SEQUENCES, READS = 1000, 100_000
DEFAULTS = {
    "task": {"name": "flipflop", "length": 512, "p_ignore": 0.8, "mode": "deterministic"},
    "model": {"name": "transformer", "layers": 2, "width": 64, "heads": 4, "positions": "learned", "embedding_dropout": 0.0},
    "train": {"steps": 1000, "batch": 16, "pool": 0, "lr": 3e-4, "optimizer": "adamw", "sharpen": None},
}
Errors = Sequence[float | None]  # of one set by replicate: a rate, infinity for diverged, None for not run yet
Looks = Sequence[tuple[int, int, int]]  # of one replicate: step, strings with an error of rare_looks, and of narrow_looks


def tail(n: int, median: float, decades: float = 0.6, seed: int = 0) -> list[float]:
    """n log-normal rates in a fixed order that is not sorted."""
    rates = median * 10 ** (decades * np.random.default_rng(seed).permutation(np.linspace(-2, 2, n)))
    return [float(rate) for rate in np.clip(rates, 0, 0.5)]


def condition(
    n: int,
    rare: Errors | float = 0.0,
    busy: Errors | float = 0.0,
    narrow: Errors | float = 0.0,
    often: Errors | float = 0.0,
    looks: Sequence[Looks] = (),
    **options: Any,
) -> dict:
    """n replicates with these error rates on the sets; options by dotted path, with __ for a dot."""
    errors = {"narrow": narrow, "rare": rare, "busy": busy, "often": often}
    lists = {name: [value] * n if isinstance(value, int | float) else list(value) for name, value in errors.items()}
    assert all(len(value) == n for value in lists.values())
    named = {name.replace("__", "."): value for name, value in options.items()}
    return {"options": named, "errors": lists, "n": n, "looks": looks}


def manifest(claims: Mapping[str, Any], conditions: Sequence[dict], **changes: Any) -> dict[str, Any]:
    """A plan with one condition each, called c0, c1, …: a claim that looks at names finds nothing."""
    online = LOOKS if any(each["looks"] for each in conditions) else {}
    hashes = {name: {"hash": digest(name), "task": {}} for name in (*SETS, *online)}
    plans = [
        {
            "name": f"c{i}",
            "config": {},
            "settings": _settings(each["options"]),
            "sets": hashes,
            "replicates": each["n"],
            "scored": 0,
        }
        for i, each in enumerate(conditions)
    ]
    sets = {name: {"definition": each, "sequences": SEQUENCES, "every": None, "seed": 0} for name, each in SETS.items()}
    sets |= {name: {"definition": each, "sequences": STRINGS, "every": 100, "seed": 0} for name, each in online.items()}
    return {
        "study": "claims",
        "question": "Does it hold?",
        "source": {},
        "scale": "paper",
        "reductions": [],
        "overrides": [],
        "claims": dict(claims),
        "sets": sets,
        "conditions": plans,
        "replicates": [
            [digest(f"{i} {seed}"), i, seed, seed] for i, each in enumerate(conditions) for seed in range(each["n"])
        ],
        "curve_every": 50,
    } | changes


def write(store: Store, claims: Mapping[str, Any], conditions: Sequence[dict], **changes: Any) -> dict[str, Any]:
    """Commit a study; returns its manifest."""
    plan = manifest(claims, conditions, **changes)
    write_bytes(store, f"manifests/{digest(json.dumps(plan))}.yaml", json.dumps(plan).encode())
    for index, each in enumerate(conditions):
        keys = [row[0] for row in plan["replicates"] if row[1] == index]
        rows: dict[str, list[dict]] = {"replicates": [], "evaluations": []}
        for seed, key in enumerate(keys):
            _replicate(rows, each, f"c{index}", seed, key, f"fd-{digest(str(index))[:16]}")
        if rows["replicates"]:
            commit(
                store, f"fd-{digest(str(index))[:16]}", {t: pa.Table.from_pylist(r, schema=SCHEMAS[t]) for t, r in rows.items()}
            )
    return plan


def _settings(options: Mapping[str, Any]) -> dict[str, Any]:
    settings = {section: dict(values) for section, values in DEFAULTS.items()}
    for path, value in options.items():
        section, name = path.split(".", 1)
        settings[section][name] = value
    return settings


def _replicate(rows: dict[str, list[dict]], each: dict, name: str, seed: int, key: str, pack: str) -> None:
    found = {set_name: rates[seed] for set_name, rates in each["errors"].items()}
    if None in found.values():
        return
    diverged = np.inf in found.values()
    base = {"key": key, "stage": 0, "pack": pack}
    rows["replicates"].append(
        {
            **base,
            "condition": name,
            "config": "{}",
            "init_seed": seed,
            "data_seed": seed,
            "status": "diverged" if diverged else "finished",
            "diverged_at": 321 if diverged else None,
            "steps": 1000,
            "samples": 16000,
            "tokens": 16000 * 512,
            "parameters": 1,
            "loss": float("nan") if diverged else 0.01,
            "pack_size": each["n"],
            "slot": seed,
            "attempt": 0,
            "started": START,
            "ended": START,
            "train_s": 1.0,
            "evaluate_s": 1.0,
            "host": "somewhere",
            "device": "cpu",
            "numerics": "{}",
            "versions": "{}",
            "git": None,
            "dirty": None,
            "sets": [digest(set_name) for set_name in SETS],
        }
    )
    for set_name, rate in found.items():
        row = {**base, "step": 1000, "weights": "raw", "set": set_name, "set_hash": digest(set_name), "sequences": SEQUENCES}
        rows["evaluations"].append({**row, "metric": "read"} | ({} if diverged else _sums(rate)))
    for step, *wrong in each["looks"][seed] if each["looks"] else ():
        for set_name, strings in zip(LOOKS, wrong, strict=True):
            row = {**base, "step": step, "weights": "raw", "set": set_name, "set_hash": digest(set_name), "metric": "read"}
            rows["evaluations"].append(
                {**row, "sequences": STRINGS, "count": 2 * STRINGS, "errors": strings, "sequences_wrong": strings}
            )


def _sums(rate: float) -> dict[str, int]:
    errors = round(rate * READS)
    by = np.full(SEQUENCES, errors // SEQUENCES) + (np.arange(SEQUENCES) < errors % SEQUENCES)
    each = READS // SEQUENCES
    return {
        "errors": errors,
        "count": READS,
        "sequences_wrong": int((by > 0).sum()),
        "errors_sq": int((by**2).sum()),
        "errors_x_count": errors * each,
        "count_sq": SEQUENCES * each**2,
    }
