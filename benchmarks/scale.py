"""The harness itself at scale: how long `manyseeds status` takes on a store of 10^6 replicates, and planning 10,000 packs.

python -m benchmarks.scale [--replicates 1000000] [--packs 10000] [--out benchmarks/results/cpu]

The store is synthetic, with the real schemas: `packed` has one file per pack, `compacted` one file in all. Each step runs in a fresh
process, imports included; peak memory is that of the process.
"""

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.report_speed import digest, filled
from benchmarks.tables import conditions, number, show
from results.markdown_table import markdown_table
from results.plain_values import Row
from results.store.parquet import serialise
from results.store.tables import open_store, write_bytes

STUDY, CONDITIONS, HOSTS = "scale", 20, 8
_ACTS = {
    "status": """
from results.progress.status import show_status
show_status(open_store(sys.argv[1], sys.argv[2]), lambda line: None)
""",
    "watch, first look": """
from results.progress.watch import Follower
Follower(open_store(sys.argv[1], sys.argv[2])).take()
""",
    "watch, next look": """
from results.progress.watch import Follower
follower = Follower(open_store(sys.argv[1], sys.argv[2]))
follower.take()
start = used()
follower.take()
""",
}
_PLAN = """
import harness.planning.manifest as manifests
from harness.planning.pack import resolve
from harness.planning.plan import plan
from harness.study.load import load
fixed = ["executor=local", "wandb=off", "pack.size=1"]
each = int(sys.argv[2]) // len(load(sys.argv[1], fixed).conditions)
study = load(sys.argv[1], [*fixed, f"replicates={each}"])
numerics = {"device": "cpu", "threads": 1}
marks = [("load", used())]
planned = plan(study, None, 1, numerics=numerics, slots=2)
marks.append(("plan", used()))
content = manifests.to_bytes(manifests.build(planned, numerics, {}))
marks.append(("manifest", used()))
packs = resolve(planned, numerics, {})
marks.append(("resolve", used()))
again = manifests.plan_of(manifests.read(content))
marks.append(("read back", used()))
assert again.packs == planned.packs and len(packs) == len(planned.packs), "the manifest reads back as another plan"
print(json.dumps({"packs": len(packs), "bytes": len(content), "marks": marks}))
"""
_HEAD = """
import json, sys, time
def used():
    # not ru_maxrss, which starts from the parent's
    peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    return [time.perf_counter(), time.process_time(), 1024 * int(peak.split()[1])]
start = [used()[0], 0.0]
from results.store.tables import open_store
"""
_TAIL = """
end = used()
print(json.dumps({"seconds": end[0] - start[0], "cpu_s": end[1] - start[1], "peak_bytes": end[2]}))
"""


def write_store(root: str, replicates: int, packs: int, form: str) -> None:
    """A study of so many replicates and its plan. form: packed (one file per pack) | compacted (one file)."""
    store, size = open_store(root, STUDY), -(-replicates // packs)
    keys = [digest(str(index)) for index in range(replicates)]
    ids = [f"fd-{first // size:05d}" for first in range(0, replicates, size)]
    write_bytes(store, f"manifests/{digest(STUDY)[:16]}.yaml", json.dumps(_plan(keys, ids, size)).encode())
    rows = _rows(keys, ids, size)
    if form == "compacted":
        write_bytes(store, f"replicates/compacted-{digest(STUDY)[:16]}.parquet", serialise(rows))
        return
    folder = Path(store.path("replicates"))
    folder.mkdir(parents=True)
    for index, pack in enumerate(ids):
        (folder / f"{pack}.parquet").write_bytes(serialise(rows.slice(index * size, size)))  # without the fsync of a commit


def _plan(keys: list[str], ids: list[str], size: int) -> Row:
    count = len(keys)
    same = {"task": {"name": "flipflop"}, "model": {"name": "transformer"}}
    conditions = [
        {
            "name": f"setting_{i}",
            "config": same | {"train": {"lr": i}},
            "sets": {},
            "replicates": len(range(i, count, CONDITIONS)),
        }
        for i in range(CONDITIONS)
    ]
    packs = [
        {"id": name, "stage": 0, "replicates": list(range(i * size, min(count, (i + 1) * size))), "signature": "s"}
        for i, name in enumerate(ids)
    ]
    rows = [[key, index % CONDITIONS, index, index] for index, key in enumerate(keys)]
    about = {"study": STUDY, "question": "", "source": {}, "scale": "paper", "reductions": [], "overrides": []}
    return about | {"sets": {}, "conditions": conditions, "replicates": rows, "packs": packs}


def _rows(keys: list[str], ids: list[str], size: int) -> pa.Table:
    """The `replicates` table: a pack every 7 seconds, the first one last."""
    n = len(keys)
    seeds, pack = np.arange(n), np.arange(n) // size
    now = np.datetime64(datetime.now(UTC).replace(tzinfo=None), "us")
    ended = now - 7_000_000 * pack.astype("timedelta64[us]")
    columns: Row = {
        **{"key": pa.array(keys), "condition": pa.array(_names("setting_", CONDITIONS)).take(pa.array(seeds % CONDITIONS))},
        **{"stage": 0, "config": json.dumps({"task": {"name": "flipflop"}, "train": {"steps": 10_000, "lr": 3e-4}})},
        **{"init_seed": pa.array(seeds), "data_seed": pa.array(seeds), "slot": pa.array(seeds % size)},
        "status": pa.array(["diverged", "finished"]).take(pa.array((seeds % 100 > 0).astype(int))),
        **{"steps": 10_000, "samples": 160_000, "tokens": 81_920_000, "parameters": 133_381, "loss": 0.01},
        **{"pack": pa.array(ids).take(pa.array(pack)), "pack_size": size, "attempt": 1},
        **{"started": pa.array(ended - np.timedelta64(300, "s")), "ended": pa.array(ended), "train_s": 3.0, "evaluate_s": 0.3},
        "host": pa.array(_names("node-", HOSTS)).take(pa.array(pack % HOSTS)),
        **{"device": "cuda", "numerics": '{"device": "cuda"}', "versions": '{"torch": "2.13.0"}'},
        "sets": pa.array([[digest("sparse")[:16], digest("dense")[:16]]] * n),
    }
    return filled("replicates", n, columns)


def _names(stem: str, count: int) -> list[str]:
    return [f"{stem}{index}" for index in range(count)]


def timed(root: str, act: str) -> dict[str, float]:
    """Seconds and peak bytes of one act on a store, in a process of its own."""
    return _run(_HEAD + _ACTS[act] + _TAIL, root, STUDY)


def planning(study: str, packs: int) -> list[Row]:
    """Seconds and peak bytes after each part of planning a study of so many packs of one replicate."""
    measured = _run(_HEAD + _PLAN, study, str(packs))
    out = []
    for (_, before), (name, then) in itertools.pairwise(measured["marks"]):
        taken = {"seconds": then[0] - before[0], "cpu_s": then[1] - before[1], "grown_bytes": then[2] - before[2]}
        out.append({"act": f"{name} ({measured['packs']:,} packs)", "peak_bytes": then[2]} | taken)
    return out


def _run(code: str, *arguments: str) -> Row:
    ran = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    if ran.returncode:
        raise RuntimeError(f"the measured process failed: {ran.stderr.strip()[-1000:]}")
    return json.loads(ran.stdout.splitlines()[-1])


def text(rows: list[Row], planned: list[Row], header: str, replicates: int, packs: int) -> str:
    """The page as Markdown."""
    cells = [[r["form"], *_cells(r)] for r in rows]
    plans = [[*_cells(r), number(r["grown_bytes"] / 1e6)] for r in planned]
    parts = [
        "# The harness at scale",
        "The middle one of the rounds, each a process of its own, imports included; beside the seconds that passed those of the "
        f"processor, which a busy machine changes less. `python -m benchmarks.scale`. {header}",
        f"## A store of {replicates:,} replicates in {packs:,} packs",
        markdown_table(("store", "act", "seconds", "processor seconds", "peak memory, GB"), cells),
        "## A plan",
        markdown_table(("act", "seconds", "processor seconds", "peak memory of the process, GB", "grown by, MB"), plans),
    ]
    return "\n\n".join(parts)


def _cells(row: Row) -> list[Any]:
    return [row["act"], number(row["seconds"]), number(row["cpu_s"]), number(row["peak_bytes"] / 1e9)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--replicates", type=int, default=1_000_000)
    parser.add_argument("--packs", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--study", default="launch/studies/flipflop/quick.yaml", help="that is planned with one replicate per pack"
    )
    parser.add_argument("--out", help="folder for scale.md; nothing is written without it")
    chosen = parser.parse_args()
    if min(chosen.replicates, chosen.packs, chosen.rounds) < 1 or chosen.packs > chosen.replicates:
        parser.error("--replicates, --packs and --rounds must be at least 1, and a pack holds at least one replicate")
    where, rows = conditions("cpu", "none", rounds=chosen.rounds), []
    for form in ("compacted", "packed"):
        with tempfile.TemporaryDirectory() as folder:
            write_store(folder, chosen.replicates, chosen.packs, form)
            for act in _ACTS:
                rounds = [timed(folder, act) for _ in range(chosen.rounds)]
                middle = sorted(rounds, key=lambda timing: timing["cpu_s"])[len(rounds) // 2]
                rows.append({"form": form, "act": act} | middle)
                print(form, act, middle, file=sys.stderr, flush=True)
    page = text(rows, planning(chosen.study, chosen.packs), where, chosen.replicates, chosen.packs)
    show(chosen.out, "scale", page)


if __name__ == "__main__":
    main()
