"""What the harness itself costs: packs that do nothing, beside as many empty Ray tasks and Ray Tune's empty trials.

python -m benchmarks.overhead [--packs 2000] [--out benchmarks/results/cpu]
"""

import argparse
import cProfile
import datetime
import json
import os
import pstats
import secrets
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import harness.executing.cluster
import harness.executing.ray_worker
import harness.prepare
import harness.run
from benchmarks.tables import conditions, number, show
from harness.executing.progress import Progress
from harness.executing.run_pack import Outcome
from harness.machine.interrupt import Interrupt
from harness.study.load import load
from results.markdown_table import markdown_table
from results.plain_values import Row
from results.store.tables import committed, open_store

STUDY = """
name: overhead
question: What does a pack cost that trains nothing?
task: {{name: flipflop, length: 8}}
model: {{name: lstm, width: 1}}
train: {{steps: 1, batch: 1}}
evaluate: {{sets: {{one: {{p_ignore: 0.5, sequences: 1}}}}}}
replicates: {packs}
pack: {{size: 1}}
wandb: off
"""
BOUND_S, BOUND_BYTES = 20.0, 20_000  # beyond as many empty Ray tasks; of the driver's memory, a pack
_SLOTS = 2


def empty_train(pack, *_, **__):
    """Replaces `harness.training.train.train`: returns one row for each table of a real pack, and takes no step."""
    import pyarrow as pa

    from results.store.schema import SCHEMAS

    now = datetime.datetime.now(datetime.UTC)
    words = {
        **{"condition": "base", "config": "{}", "status": "finished", "weights": "raw", "set": "one", "set_hash": "0"},
        **{"metric": "read", "axis": "position", "host": "a", "device": "cpu", "numerics": "{}", "versions": "{}"},
        **{"started": now, "ended": now, "dirty": False, "sets": sorted(scored.hash for scored in pack.replicates[0].sets)},
    }
    tables = {}
    for table in ("replicates", "evaluations", "profiles", "curves"):
        rows = [
            {field.name: words.get(field.name, None if field.nullable else 0) for field in SCHEMAS[table]}
            | {"key": replicate.key, "stage": pack.stage, "pack": pack.id}
            for replicate in pack.replicates
        ]
        tables[table] = pa.Table.from_pylist(rows, SCHEMAS[table])
    return tables


class EmptySlot(harness.executing.ray_worker.Slot):
    """The actor of the harness, whose packs do nothing but commit."""

    def run(self, *arguments):
        import harness.executing.run_pack

        harness.executing.run_pack.train = empty_train
        return super().run(*arguments)


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


class Watched(Progress):
    """Progress that notes the driver's memory at every pack's end."""

    memory: list[int]

    def end(self, outcome: Outcome) -> None:
        super().end(outcome)
        self.memory.append(resident())


def harness_packs(packs: int, folder: str, empty: bool, profile: bool) -> Row:
    """Plan, schedule, commit and finish so many packs. Seconds by part; bytes of the driver per pack, over the last nine tenths."""
    path = Path(folder) / "overhead.yaml"
    path.write_text(STUDY.format(packs=packs))
    store = str(Path(folder) / "runs")
    cluster = harness.executing.cluster.Cluster("cpu")
    if empty:
        harness.executing.cluster.Slot = EmptySlot  # type: ignore[misc]
    tasks_s = ray_tasks(packs)
    watched: list[Watched] = []

    def progress(*arguments: Any) -> Watched:
        watched.append(Watched(*arguments))
        watched[-1].memory = [resident()]
        return watched[-1]

    harness.run.Progress = progress  # type: ignore[assignment,misc]
    measured = 0.0

    with Interrupt() as interrupt:
        started = time.perf_counter()
        study = load(str(path), [f"store={store}"])
        before = resident()
        measure = cluster.measure

        def timed(pack):
            nonlocal measured
            begun = time.perf_counter()
            rate = measure(pack)
            measured += time.perf_counter() - begun
            return rate

        cluster.measure = timed  # type: ignore[method-assign]
        prepared = harness.prepare.prepare(study, cluster)
        planned = time.perf_counter()
        with profiled(profile):
            outcomes = harness.run.train_all(prepared, cluster, interrupt)
        ended = time.perf_counter()
    after = resident()
    cluster.close()
    if len(outcomes) != packs or any(outcome.status != "committed" for outcome in outcomes):
        raise RuntimeError(
            f"{len(outcomes)} of {packs} packs ended: {next((o for o in outcomes if o.status != 'committed'), None)}"
        )
    if committed(open_store(store, "overhead")).num_rows != packs:
        raise RuntimeError("the store does not hold what was committed")
    memory = watched[0].memory
    tenth = len(memory) // 10
    return {
        "packs": packs,
        "tasks_s": tasks_s,
        "plan_s": planned - started - measured,
        "probe_s": measured,
        "run_s": ended - planned,
        "whole_bytes": (after - before) / packs,
        "growth_bytes": (memory[-1] - memory[tenth]) / (len(memory) - 1 - tenth),
    }


@contextmanager
def profiled(wanted: bool):
    """The driver's 25 most expensive functions, on stderr."""
    if not wanted:
        yield
        return
    with cProfile.Profile() as profile:
        yield
    pstats.Stats(profile, stream=sys.stderr).sort_stats("cumulative").print_stats(25)


def ray_tasks(count: int) -> float:
    """Seconds of so many empty tasks on the running cluster, its workers started before."""
    import ray

    empty = ray.remote(lambda: None)
    ray.get([empty.remote() for _ in range(2 * _SLOTS)])
    started = time.perf_counter()
    ray.get([empty.remote() for _ in range(count)])
    return time.perf_counter() - started


def tune_trials(count: int, reuse: bool, folder: str) -> float:
    """Seconds of so many trials of one empty step in Ray Tune."""
    import ray
    from ray import tune

    def empty(config):
        tune.report({"nothing": 0})

    # a token of its own: otherwise Ray writes ~/.ray/auth_token, and clusters started later turn authentication on
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(address="local", num_cpus=_SLOTS, include_dashboard=False, log_to_driver=False, object_store_memory=100 * 2**20)
    config = tune.TuneConfig(num_samples=count, reuse_actors=reuse)
    tuner = tune.Tuner(empty, tune_config=config, run_config=tune.RunConfig(storage_path=folder, verbose=0))
    started = time.perf_counter()
    results = tuner.fit()
    seconds = time.perf_counter() - started
    ray.shutdown()
    if len(results) != count or results.num_errors:
        raise RuntimeError(f"Ray Tune finished {len(results)} of {count} trials, {results.num_errors} with errors")
    return seconds


def child(*words: str) -> Row:
    """One part in a process of its own; what it prints last is its result as JSON."""
    command = [sys.executable, "-m", "benchmarks.overhead", *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def rows_of(empty: Row, real: Row, tune: list[tuple[str, int, float]]) -> list[Row]:
    """One row per variant: name, count, seconds, milliseconds each."""
    whole = [
        ("empty Ray tasks", empty["packs"], empty["tasks_s"]),
        ("packs that do nothing: plan", empty["packs"], empty["plan_s"]),
        ("packs that do nothing: schedule, commit, done", empty["packs"], empty["run_s"]),
        ("packs of one real step and one scored string: plan", real["packs"], real["plan_s"]),
        ("packs of one real step and one scored string: the rest", real["packs"], real["run_s"]),
        *tune,
    ]
    return [{"what": what, "count": count, "seconds": s, "each_ms": 1000 * s / count} for what, count, s in whole]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--packs", type=int, default=2000)
    parser.add_argument("--tune", type=int, default=100, help="trials of Ray Tune as it comes")
    parser.add_argument("--tune-reused", type=int, default=400, help="trials with reuse_actors")
    parser.add_argument("--profile", action="store_true", help="also print where the driver spends its time")
    parser.add_argument("--folder", help="where stores and trials go; by default a temporary folder")
    parser.add_argument("--out", help="folder for overhead.md and overhead.parquet; nothing is written without it")
    parser.add_argument("--part", choices=("empty", "real", "tune", "tune-reused"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        if chosen.part in ("empty", "real"):
            print(json.dumps(harness_packs(chosen.packs, folder, chosen.part == "empty", chosen.profile)))
            return
        if chosen.part:
            count = chosen.tune if chosen.part == "tune" else chosen.tune_reused
            print(json.dumps({"seconds": tune_trials(count, chosen.part == "tune-reused", folder)}))
            return
    header = conditions("cpu", "none")
    common = [f"--packs={chosen.packs}", *([f"--folder={chosen.folder}"] if chosen.folder else [])]
    common += ["--profile"] if chosen.profile else []
    empty, real = (child(*common, f"--part={part}") for part in ("empty", "real"))
    tune = [
        ("Ray Tune, empty trials", chosen.tune, child("--part=tune", f"--tune={chosen.tune}")["seconds"]),
        (
            "Ray Tune, empty trials, reuse_actors",
            chosen.tune_reused,
            child("--part=tune-reused", f"--tune-reused={chosen.tune_reused}")["seconds"],
        ),
    ]
    rows = rows_of(empty, real, tune)
    table = markdown_table(
        ("what", "count", "seconds", "ms each"),
        [[row["what"], f"{row['count']:,}", number(row["seconds"]), number(row["each_ms"])] for row in rows],
    )
    beyond = empty["plan_s"] + empty["run_s"] - empty["tasks_s"]
    growth = empty["growth_bytes"]
    notes = [
        f"Beyond the empty tasks: {beyond:.1f} s (bound {BOUND_S:g} s: {'held' if beyond <= BOUND_S else 'missed'}).",
        f"The driver grows by {growth / 1000:.1f} KB a pack while they run (bound {BOUND_BYTES / 1000:g} KB: "
        f"{'held' if growth <= BOUND_BYTES else 'missed'}), by {empty['whole_bytes'] / 1000:.1f} KB with the plan.",
        f"Not counted: starting Ray and the probe of the pack's speed ({empty['probe_s']:.1f} s).",
    ]
    text = "\n\n".join(["# Overhead", f"`python -m benchmarks.overhead --packs {chosen.packs}`. {header}", table, *notes])
    show(chosen.out, "overhead", text, rows)


if __name__ == "__main__":
    main()
