"""A made-up study with the real schemas: rows with known numbers for the tests of everything that reads a store.

Condition `transformer`: log-normal errors, some replicates without any, the last one diverged. Condition `lstm`: no error.
"""

import hashlib
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from results.store.schema import SCHEMAS
from results.store.tables import Store, commit, write_bytes

SETS = {
    "sparse_online": {"sequences": 1000, "every": 100, "p": 0.98, "reads": 3567},
    "sparse": {"sequences": 1000, "every": None, "p": 0.98, "reads": 3540},
    "dense": {"sequences": 400, "every": None, "p": 0.1, "reads": 46120},
}
STEPS = {"transformer": 1000, "lstm": 500}
BINS = ((0, 1), (1, 2), (2, 4), (4, 8), (8, 16), (16, 32), (32, 64), (64, 128), (128, 256))
START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def manifest(seeds: int = 8, study: str = "synthetic", names: tuple[str, ...] = ("transformer", "lstm")) -> dict[str, Any]:
    """The plan of `seeds` paired replicates of each condition."""
    conditions = [
        {
            "name": name,
            "config": {
                "task": {"name": "flipflop", "length": 512, "p_ignore": 0.8, "mode": "deterministic"},
                "model": {"name": name, **({"layers": 2, "width": 64} if name != "lstm" else {"width": 128})},
                "train": {"steps": STEPS.get(name, 1000), "batch": 16, "optimizer": "adamw", "lr": 3e-4, "betas": [0.9, 0.999]},
                "stages": [],
            },
            "sets": {
                set_name: {"hash": digest(set_name), "task": {"p_ignore": value["p"]}} for set_name, value in SETS.items()
            },
            "replicates": seeds,
            "scored": 0,
        }
        for name in names
    ]
    sets = {
        name: {"definition": {"p_ignore": value["p"]}, "sequences": value["sequences"], "every": value["every"], "seed": 0}
        for name, value in SETS.items()
    }
    keys = [[digest(f"{name} {seed}"), i, seed, seed] for i, name in enumerate(names) for seed in range(seeds)]
    return {
        "study": study,
        "question": "How long is the tail of read errors?",
        "source": {"paper": "fflm", "card": "F2"},
        "scale": "laptop",
        "reductions": ["train.steps: 10000 -> 1000"],
        "overrides": ["train.lr=0.0003"],
        "wandb": "off",
        "keep": "none",
        "device": "cpu",
        "sets": sets,
        "conditions": conditions,
        "replicates": keys,
        "packs": [],
        "numerics": {"device": "cpu", "threads": 1},
        "versions": {"torch": "2.13.0", "python": "3.12.3"},
        "git": "0123456789abcdef",
        "dirty": False,
        "curve_every": 50,
    }


def tables(plan: dict[str, Any], ended: int | None = None, seed: int = 0) -> dict[str, dict[str, pa.Table]]:
    """Rows of the first `ended` replicates of each condition (all by default), as {pack: {table: rows}}, one pack per condition."""
    rng = np.random.default_rng(seed)
    packs = {}
    for index, condition in enumerate(plan["conditions"]):
        mine = [row for row in plan["replicates"] if row[1] == index]
        rows = _rows(condition, mine[:ended], len(mine), f"fd-{digest(condition['name'])[:16]}", rng)
        packs[f"fd-{digest(condition['name'])[:16]}"] = {
            name: pa.Table.from_pylist(found, schema=SCHEMAS[name]) for name, found in rows.items()
        }
    return packs


def write(store: Store, plan: dict[str, Any], ended: int | None = None) -> None:
    """Commit the study to a store, manifest included."""
    text = json.dumps(plan)
    write_bytes(store, f"manifests/{digest(text)}.yaml", text.encode())
    for pack, rows in tables(plan, ended).items():
        commit(store, pack, rows)


def failure(key: str, exception: str = "RuntimeError: out of patience") -> dict[str, Any]:
    return {
        "pack": "fd-0000000000000000",
        "attempt": 1,
        "keys": [key],
        "stage": 0,
        "step": 17,
        "kind": "raised",
        "exception": exception,
        "traceback": f"Traceback (most recent call last):\n{exception}",
        "at": START,
    }


def _rows(condition: dict, mine: list, planned: int, pack: str, rng: np.random.Generator) -> dict[str, list[dict]]:
    rows: dict[str, list[dict]] = {name: [] for name in ("replicates", "evaluations", "profiles", "curves")}
    steps = condition["config"]["train"]["steps"]
    perfect = condition["name"] == "lstm"
    for slot, (key, _, init_seed, data_seed) in enumerate(mine):
        diverged = not perfect and slot == planned - 1
        rate = 0.0 if perfect or slot % 4 == 1 else float(np.clip(10 ** rng.normal(-2.2, 0.7), 5e-4, 0.4))
        base = {"key": key, "stage": 0, "pack": pack}
        rows["replicates"].append(
            {
                **base,
                "condition": condition["name"],
                "config": json.dumps(condition["config"]),
                "init_seed": init_seed,
                "data_seed": data_seed,
                "status": "diverged" if diverged else "finished",
                "diverged_at": 321 if diverged else None,
                "steps": steps,
                "samples": steps * 16,
                "tokens": steps * 16 * 512,
                "parameters": 133381,
                "loss": float("nan") if diverged else 0.01,
                "pack_size": len(mine),
                "slot": slot,
                "attempt": 0,
                "started": START,
                "ended": START + timedelta(minutes=slot),
                "train_s": 60.0,
                "evaluate_s": 6.0,
                "host": "somewhere",
                "device": "cpu",
                "numerics": json.dumps({"device": "cpu", "threads": 1}),
                "versions": json.dumps({"torch": "2.13.0", "python": "3.12.3"}),
                "git": "0123456789abcdef",
                "dirty": False,
                "sets": [digest(name) for name in SETS],
            }
        )
        for name, value in SETS.items():
            last = steps if value["every"] is None else value["every"]
            for step in range(last, steps + 1, last):
                early = 1 + 60 * np.exp(-4 * step / steps) * rng.lognormal(0, 0.4) if not perfect else 1
                learned = rate * early * (0.3 if name == "dense" else 1) if not perfect else 0.4 * (step < 200)
                rows["evaluations"] += _evaluation(base, step, name, value, min(learned, 0.5), diverged and step > 321, rng)
        if not diverged:
            rows["profiles"] += _profiles(base, steps, rate, rng)
        for step in range(50, (321 if diverged else steps) + 1, 50):
            loss = float(0.69 * np.exp(-step / 90) * rng.lognormal(0, 0.2) + 1e-3)
            rows["curves"] += [{**base, "step": step, "metric": "loss", "value": loss}]
            rows["curves"] += [{**base, "step": step, "metric": "lr", "value": 3e-4}]
    return rows


def _evaluation(base: dict, step: int, name: str, value: dict, rate: float, lost: bool, rng: np.random.Generator) -> list[dict]:
    sequences = value["sequences"]
    count = np.full(sequences, value["reads"] // sequences) + (np.arange(sequences) < value["reads"] % sequences)
    errors = rng.binomial(count, rate)
    row = {**base, "step": step, "weights": "raw", "set": name, "set_hash": digest(name), "sequences": sequences}
    sums = {
        "errors": int(errors.sum()),
        "count": int(count.sum()),
        "sequences_wrong": int((errors > 0).sum()),
        "errors_sq": int((errors**2).sum()),
        "errors_x_count": int((errors * count).sum()),
        "count_sq": int((count**2).sum()),
    }
    return [{**row, "metric": metric, **({} if lost else sums)} for metric in ("read", "read_restricted")]


def _profiles(base: dict, step: int, rate: float, rng: np.random.Generator) -> list[dict]:
    rows = []
    for axis in ("since_write", "since_event"):
        for name in ("sparse", "dense"):
            reach = 9 if name == "sparse" else 5
            for i, (lo, hi) in enumerate(BINS[1:reach]):
                count = 300 if name == "sparse" else 30000 >> (2 * i)
                errors = int(rng.binomial(count, min(rate * 2 ** (i - 4), 0.6)))
                cell = {"axis": axis, "lo": lo, "hi": hi, "errors": errors, "count": count}
                rows.append({**base, "step": step, "set": name, "set_hash": digest(name), **cell})
    return rows
