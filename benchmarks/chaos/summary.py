"""python -m benchmarks.chaos.summary LOG: the attempts in a log of chaos, how many passed, and how they were disturbed."""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from results.markdown_table import markdown_table

# events that are done to someone, each with a first letter of its own
KINDS = ("worker", "notice", "raylet", "driver", "interrupt", "memory", "outage")


def rows(records: Iterable[Mapping[str, Any]]) -> list[list[str]]:
    """One row per commit and kind of store, in the order of the log: attempts, how many passed, longest run of consecutive seeds that
    passed, disturbances, requests that were made to fail, hours."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for record in records:
        groups.setdefault((record["commit"][:7], record["store"]), []).append(record)
    return [[*name, *_row(mine)] for name, mine in groups.items()]


def _row(records: list[Mapping[str, Any]]) -> list[str]:
    done = Counter(event["kind"] for each in records for event in each["events"] if event["done"] and event["kind"] in KINDS)
    spoiled = sum(count for each in records for fault, count in each.get("faults", {}).items() if fault != "none")
    failed = [str(each["seed"]) for each in records if not each["passed"]]
    return [
        str(len(records)),
        f"{len(records) - len(failed)}" + (f" (not {', '.join(failed)})" if failed else ""),
        str(consecutive(records)),
        ", ".join(f"{done[kind]}{kind[0]}" for kind in KINDS if done[kind]),
        str(spoiled) if spoiled else "–",
        f"{sum(each['seconds'] for each in records) / 3600:.1f}",
    ]


def consecutive(records: Iterable[Mapping[str, Any]]) -> int:
    """The length of the longest run of consecutive seeds that passed."""
    best = run = 0
    last = None
    for each in records:
        run = (run + 1 if last is not None and each["seed"] == last + 1 else 1) if each["passed"] else 0
        last = each["seed"] if each["passed"] else None
        best = max(best, run)
    return best


def main(arguments: list[str]) -> int:
    names = ["commit", "store", "attempts", "passed", "in a row", "killed or disturbed", "spoiled", "hours"]
    records = [json.loads(line) for path in arguments for line in Path(path).read_text().splitlines()]
    print(markdown_table(names, rows(records)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
