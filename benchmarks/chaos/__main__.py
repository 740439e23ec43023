"""python -m benchmarks.chaos --seeds 0..9 --out benchmarks/results/chaos.jsonl: see docs/reference/chaos.md."""

import argparse
import json
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.chaos.attempt import attempt
from benchmarks.chaos.machines import Machines, machines
from benchmarks.chaos.places import PLACES, check
from benchmarks.chaos.scenario import Scenario, scenario
from benchmarks.chaos.study import NAME, undisturbed, write
from harness.machine.provenance import code_state, versions
from results.plain_values import Row
from tests.harness.tiny import tables


def one(
    plan: Scenario, study: str, folder: Path, cluster: Machines, expected: dict[str, list[str]], limit: float, place: str
) -> Row:
    """Run one scenario in `folder`; what happened and the verdict, as a line of the log."""
    begun = time.monotonic()
    record: Row = {
        "seed": plan.seed,
        "store": place,
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "scenario": plan.words(),
    }
    with attempt(plan, study, folder, cluster, place) as running:
        try:
            running.run(limit)
            record |= running.verdict(expected)
        except Exception as error:  # an attempt that fails is a line of the log too
            traceback.print_exc()
            record |= {"passed": False, "error": f"{type(error).__name__}: {error}"}
            record["faults"] = running.place.faults()
            record["endings"] = {driver.name: driver.endings for driver in running.drivers}
    return record | {"events": running.log, "seconds": round(time.monotonic() - begun, 1)}


def done_seeds(log: Path, same: Mapping[str, Any]) -> dict[int, bool]:
    """Whether each seed passed that the log holds with these fields: the same commit, kind of store and settings."""
    lines = log.read_text().splitlines() if log.exists() else []
    records = [record for record in map(json.loads, lines) if same.items() <= record.items()]
    return {record["seed"]: record["passed"] for record in records}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Disturb a study on a real Ray cluster of three nodes, seed by seed.")
    parser.add_argument("--seeds", required=True, help="N, or FIRST..LAST")
    parser.add_argument(
        "--out", help="a file that gets one JSON line an attempt; seeds it holds of this commit are not run again"
    )
    parser.add_argument("--store", choices=sorted(PLACES), default="folder", help="where the store lies")
    parser.add_argument("--keep", help="folder for stores and logs; by default a temporary one")
    parser.add_argument("--replicates", type=int, default=8, help="of each of three conditions; at two a pack, 8 are 12 packs")
    parser.add_argument("--steps", type=int, default=150, help="of a training")
    parser.add_argument("--window", type=float, default=10.0, help="seconds in which it all happens")
    parser.add_argument("--limit", type=float, default=400.0, help="seconds until an attempt has failed")
    chosen = parser.parse_args(arguments)
    first, _, last = chosen.seeds.partition("..")
    seeds = range(int(first), int(last or first) + 1)
    try:
        check(chosen.store)
    except ValueError as error:
        parser.error(str(error))
    commit, dirty = code_state()
    settings = {"replicates": chosen.replicates, "steps": chosen.steps, "window": chosen.window}
    same = {"store": chosen.store, "commit": commit, "dirty": dirty, "settings": settings}
    done = done_seeds(Path(chosen.out), same) if chosen.out and not dirty else {}
    left = [seed for seed in seeds if seed not in done]
    if len(left) < len(seeds):
        print(f"{len(seeds) - len(left)} of {len(seeds)} seeds are in {chosen.out}", flush=True)
    passed = sum(done[seed] for seed in seeds if seed in done)
    if left:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as Ctrl-C: the cluster that was started ends too
        for record in attempts(left, settings, chosen.keep, chosen.limit, chosen.store):
            passed += record["passed"]
            if chosen.out:
                with open(chosen.out, "a") as log:
                    log.write(json.dumps(record | same | {"ray": versions()["ray"]}) + "\n")
    print(f"{passed} of {len(seeds)} seeds passed")
    return 0 if passed == len(seeds) else 1


def attempts(seeds: Iterable[int], settings: Mapping[str, Any], keep: str | None, limit: float, place: str) -> Iterator[Row]:
    """The record of each seed, one after another on one cluster, against one undisturbed run."""
    with tempfile.TemporaryDirectory(prefix="chaos-") as temporary:
        folder = Path(keep or temporary).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        study = write(folder, settings["steps"], settings["replicates"])
        expected = tables(str(undisturbed(study, folder)), NAME)
        with machines(folder) as cluster:
            for seed in seeds:
                print(f"seed {seed}", flush=True)
                here = folder / f"{seed}-{int(time.time())}"
                record = one(scenario(seed, settings["window"]), study, here, cluster, expected, limit, place)
                print(f"seed {seed}: {'passed' if record['passed'] else 'FAILED'} after {record['seconds']} s", flush=True)
                yield record


if __name__ == "__main__":
    sys.exit(main())
