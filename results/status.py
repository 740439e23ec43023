"""How far a study is, from its store alone: also while it runs, and from any machine."""

import datetime
from collections import Counter
from collections.abc import Callable

import pyarrow.compute as pc

from results.adaptive_status import CAUTION, lines
from results.manifest import newest_manifest
from results.store import Store, committed, list_names, read
from results.summary import METRIC, replicates_of


def show_status(store: Store, say: Callable[[str], None]) -> None:
    """Print committed of planned by condition, failures, packs in flight and the rate of the last hour."""
    found = newest_manifest(store)
    rows = committed(store)
    done = Counter(rows["condition"].to_pylist())
    diverged = Counter(rows.filter(pc.equal(rows["status"], "diverged"))["condition"].to_pylist())
    planned = {c["name"]: c["replicates"] for c in found[1]["conditions"]} if found else {}
    keys = set(rows["key"].to_pylist())
    failed = {key for row in read(store, "failures", ["keys"])["keys"].to_pylist() for key in row} - keys
    total = sum(planned.values())
    held = len(keys & {row[0] for row in found[1]["replicates"]}) if found else len(keys)
    say(f"{store.study}: {held} of {total} replicates committed" + (f", {len(failed)} failed" if failed else ""))
    for name in dict.fromkeys((*planned, *done)):
        extra = f", {diverged[name]} diverged" if diverged[name] else ""
        say(f"  {name}: {done[name]} of {planned.get(name, 0)}{extra}")
    if found and found[1].get("adaptive"):
        evaluations = read(store, "evaluations", filter=pc.field("metric") == METRIC)
        for line in lines(found[1], replicates_of(found[1], rows, evaluations, read(store, "failures"))):
            say(f"  {line}")
        say(f"  {CAUTION}")
    flying = list_names(store, "checkpoints")
    if flying:
        say(f"  {len(flying)} packs have a checkpoint: running, or waiting to go on")
    if rows.num_rows:
        now = datetime.datetime.now(datetime.UTC)
        ends = rows["ended"].to_pylist()
        recent = sum((now - end).total_seconds() < 3600 for end in ends)
        say(f"  last commit {max(ends):%Y-%m-%d %H:%M:%S} UTC; {recent} replicates in the last hour")
