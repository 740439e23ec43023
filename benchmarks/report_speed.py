"""How long a report of the whole campaign takes: 10,625 synthetic replicates of 426 conditions, with the real schemas.

The store has two layouts: one pack per replicate, as transformers on CPUs leave it while the study runs, and the same store compacted, as
it is afterwards. Seconds are those of a whole process, imports included. Both layouts must give the same page.

python -m benchmarks.report_speed [--replicates 10625] [--out benchmarks/results/cpu]
"""

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.tables import conditions, number, show
from results.markdown_table import markdown_table
from results.plain_values import Row
from results.store.merge import compact
from results.store.parquet import SUFFIX, serialise
from results.store.schema import SCHEMAS
from results.store.tables import open_store, write_bytes

STUDY, STEPS, EVERY, EACH = "campaign", 10_000, 100, 25
SETS = {"in_distribution": (1000, 51_000, None), "sparse": (1000, 3_540, None), "dense": (400, 46_120, None)}
SETS["sparse_online"] = (1000, 3_540, EVERY)  # (sequences, reads, every)
BINS = ((1, 2), (2, 4), (4, 8), (8, 16), (16, 32), (32, 64))
BOUNDS = {"seconds": 10.0, "peak_bytes": 2e9, "page_bytes": 3e6, "curves": 300}
LAYOUTS = ("one pack per replicate", "compacted")
_CHILD = """
import json, resource, sys, time
start = time.perf_counter()
from results.report.report import write_report
from results.store.tables import open_store
page = write_report(open_store(sys.argv[1], sys.argv[2]), sys.argv[3])
seconds = time.perf_counter() - start
from results.second_process import stop
stop()
used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
peak, cpu = sum(1024 * each.ru_maxrss for each in used), sum(each.ru_utime + each.ru_stime for each in used)
print(json.dumps({"seconds": seconds, "cpu_seconds": cpu, "peak_bytes": peak, "page": str(page)}))
"""


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def manifest(replicates: int) -> Row:
    """The plan: 25 seeds a condition, the first condition the baseline; the last one has what remains."""
    count = -(-replicates // EACH)
    names = ["baseline", *(f"setting_{i:03d}" for i in range(1, count))]
    sets = {
        n: {"definition": {"p_ignore": p}, "sequences": SETS[n][0], "every": SETS[n][2], "seed": 0}
        for n, p in _places().items()
    }
    plans = [
        {
            "name": name,
            "config": {
                "task": {"name": "flipflop"},
                "model": {"name": "transformer"},
                "train": {"steps": STEPS, "lr": 3e-4 + i},
            },
            "settings": {
                "task": {"name": "flipflop", "length": 512, "p_ignore": 0.8, "mode": "deterministic"},
                "model": {"name": "transformer", "layers": 6, "width": 512, "heads": 8, "positions": "learned"},
                "train": {"steps": STEPS, "lr": 3e-4 + i, "optimizer": "adamw", "sharpen": None},
            },
            "sets": {n: {"hash": digest(n), "task": {"p_ignore": p}} for n, p in _places().items()},
            "replicates": min(EACH, replicates - i * EACH),
            "scored": 0,
        }
        for i, name in enumerate(names)
    ]
    return {
        "study": STUDY,
        "question": "How long does a report of the whole campaign take?",
        "source": {"paper": "fflm"},
        "scale": "paper",
        **{"reductions": [], "overrides": [], "wandb": "off", "keep": "none", "device": "cpu", "packs": []},
        "sets": sets,
        "conditions": plans,
        "replicates": [[digest(str(i)), i // EACH, i % EACH, i % EACH] for i in range(replicates)],
        "numerics": {"device": "cpu", "threads": 1},
        "versions": {"torch": "2.13.0"},
        **{"git": None, "dirty": None, "curve_every": EVERY},
    }


def write_store(root: str, replicates: int) -> int:
    """Write the study, one pack per replicate; returns the number of evaluation rows."""
    store, plan = open_store(root, STUDY), manifest(replicates)
    rng, rows = np.random.default_rng(0), 0
    for table in ("replicates", "evaluations", "curves", "profiles"):
        Path(store.path(table)).mkdir(parents=True)
    for row in plan["replicates"]:
        pack = f"fd-{digest(row[0])[:16]}"
        for table, held in _pack(plan["conditions"][row[1]], [row], pack, row[1], rng).items():
            rows += held.num_rows if table == "evaluations" else 0
            if held.num_rows:  # as `commit` does, without its fsync
                Path(store.path(table, pack + SUFFIX)).write_bytes(serialise(held))
    write_bytes(store, f"manifests/{digest(STUDY)}.yaml", json.dumps(plan).encode())
    return rows


def measure_layouts(root: str, replicates: int) -> tuple[int, dict[str, Row]]:
    """Write the store and its report in each layout; the number of evaluation rows, and what was measured by layout.

    Raises ValueError where the pages differ.
    """
    rows, found, pages = write_store(root, replicates), {}, {}
    for layout in LAYOUTS:
        if layout == "compacted":
            compact(open_store(root, STUDY))
        out = Path(root) / f"report {layout}"
        found[layout] = measure(root, str(out))
        pages[layout] = (out / "index.html").read_bytes()
    if len(set(pages.values())) > 1:
        raise ValueError(f"the reports of the two layouts differ: compare their pages in {root}")
    return rows, found


def measure(root: str, out: str) -> Row:
    """Write the report in a fresh process: seconds with its imports, peak resident bytes, bytes of the page, curves in it."""
    command = [sys.executable, "-c", _CHILD, root, STUDY, out]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])
    page = Path(found.pop("page")).read_bytes()
    return found | {"page_bytes": len(page), "curves": embedded_curves(page.decode())}


def embedded_curves(page: str) -> int:
    """Training curves of single replicates: those that a figure's caption says it shows.

    Raises ValueError where a figure of curves does not say how many it shows, as where it shows all of a small study.
    """
    total = 0
    for figure in re.findall(r'<figure id="figure-(?:curves-[^"]*|loss)".*?</figure>', page, re.DOTALL):
        said = re.search(r"([\d,]+) of [\d,]+ replicates are shown", figure)
        if said is None:
            raise ValueError("a figure of curves does not say how many it shows: measure a study of over 75 replicates")
        total += int(said[1].replace(",", ""))
    return total


def _places() -> dict[str, float]:
    return {"in_distribution": 0.8, "sparse": 0.98, "dense": 0.1, "sparse_online": 0.98}


def _pack(condition: Row, mine: list[list[Any]], pack: str, index: int, rng: np.random.Generator) -> dict[str, pa.Table]:
    n = len(mine)
    keys = np.array([row[0] for row in mine], dtype=object)
    seeds = [row[2] for row in mine]
    lost = rng.random(n) < 0.01
    rates = np.clip(10 ** rng.normal(-2.5 + 0.8 * np.sin(index), 0.8, n), 1e-5, 0.4) * (rng.random(n) > 0.15)
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    replicates = {
        **{"key": keys, "stage": 0, "condition": condition["name"], "config": json.dumps(condition["config"])},
        **{"init_seed": seeds, "data_seed": seeds, "status": np.where(lost, "diverged", "finished").astype(object)},
        "diverged_at": pa.array(np.full(n, 321), mask=~lost),
        **{"steps": STEPS, "samples": STEPS * 16, "tokens": STEPS * 16 * 512, "parameters": 133_381},
        **{"loss": np.where(lost, np.nan, 0.01), "pack": pack, "pack_size": n, "slot": np.arange(n), "attempt": 0},
        **{"started": at, "ended": at, "train_s": 60.0, "evaluate_s": 6.0, "host": "a", "device": "cpu"},
        **{"numerics": "{}", "versions": '{"torch": "2.13.0"}', "sets": pa.array([[digest(s) for s in SETS]] * n)},
    }
    online, parts = np.arange(EVERY, STEPS + 1, EVERY), []
    for name, (sequences, reads, every) in SETS.items():
        steps = np.array([STEPS]) if every is None else online
        scale = {"dense": 0.3, "in_distribution": 0.0}.get(name, 1.0)
        learned = np.minimum(scale * rates[:, None] * (1 + 60 * np.exp(-4 * steps / STEPS)), 0.5)
        errors = rng.binomial(reads, learned).ravel()
        gone = np.repeat(lost, steps.size)
        sums = {"errors": errors, "count": np.full(errors.size, reads), "sequences_wrong": np.minimum(errors, sequences)}
        sums |= {"errors_sq": errors, "errors_x_count": errors * (reads // sequences)}
        sums |= {"count_sq": np.full(errors.size, sequences * (reads // sequences) ** 2)}
        base = {"key": np.repeat(keys, steps.size), "stage": 0, "pack": pack, "step": np.tile(steps, n), "weights": "raw"}
        base |= {"set": name, "set_hash": digest(name), "metric": "read", "sequences": sequences}
        parts.append(filled("evaluations", errors.size, base | {c: pa.array(v, mask=gone) for c, v in sums.items()}))
    well = keys[~lost]
    curves = {"key": np.repeat(keys, online.size), "stage": 0, "pack": pack, "step": np.tile(online, n), "metric": "loss"}
    curves["value"] = 0.69 * np.exp(-curves["step"] / 900) * rng.lognormal(0, 0.2, n * online.size) + 1e-3
    cells = len(BINS) * well.size
    lo, hi = np.array(BINS).T
    counts = np.tile(np.full(len(BINS), 600), well.size)
    profile = {"key": np.repeat(well, len(BINS)), "stage": 0, "pack": pack, "step": STEPS, "set_hash": digest("sparse")}
    profile |= {"set": "sparse", "axis": "since_write", "lo": np.tile(lo, well.size), "hi": np.tile(hi, well.size)}
    profile |= {"errors": rng.binomial(counts, np.repeat(rates[~lost], len(BINS))), "count": counts}
    return {
        "replicates": filled("replicates", n, replicates),
        "evaluations": pa.concat_tables(parts),
        "curves": filled("curves", n * online.size, curves),
        "profiles": filled("profiles", cells, profile),
    }


def filled(name: str, rows: int, columns: Row) -> pa.Table:
    """A table of the schema: one value per column is repeated, an absent column is null."""
    arrays = []
    for field in SCHEMAS[name]:
        value = columns.get(field.name)
        whole = isinstance(value, pa.Array | np.ndarray | list)
        arrays.append(pa.array(value, field.type) if whole else pa.repeat(pa.scalar(value, field.type), rows))
    return pa.table([a.cast(f.type) for a, f in zip(arrays, SCHEMAS[name], strict=True)], schema=SCHEMAS[name])


def text(replicates: int, rows: int, found: dict[str, Row], header: str) -> str:
    """The page as Markdown: what was measured in each layout beside its bound."""
    units = {
        "seconds": ("seconds, imports included", 1),
        "cpu_seconds": ("processor seconds of both processes", 1),
        "peak_bytes": ("peak memory of both processes, GB", 1e9),
        "page_bytes": ("page, MB", 1e6),
        "curves": ("curves", 1),
    }
    cells = [
        [label, *(number(found[layout][name] / by) for layout in LAYOUTS), f"{BOUNDS[name] / by:g}" if name in BOUNDS else "–"]
        for name, (label, by) in units.items()
    ]
    what = f"{replicates:,} replicates, {rows:,} evaluation rows, written by `python -m benchmarks.report_speed`. {header}"
    return "\n\n".join(["# Speed of the report", what, markdown_table(("measure", *LAYOUTS, "bound"), cells)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=10_625)
    parser.add_argument("--out", help="folder for report_speed.md; nothing is written without it")
    parser.add_argument("--keep", help="folder that keeps the store and the reports")
    chosen = parser.parse_args()
    if chosen.replicates < 1:
        parser.error("--replicates must be at least 1")
    header = conditions("cpu", "none")
    with tempfile.TemporaryDirectory() as folder:
        root = chosen.keep or folder
        rows, found = measure_layouts(root, chosen.replicates)
    page = text(chosen.replicates, rows, found, header)
    show(chosen.out, "report_speed", page)


if __name__ == "__main__":
    main()
