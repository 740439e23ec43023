"""How far a study is, from its store alone: also while it runs, and from any machine."""

from collections.abc import Callable

from results.progress.adaptive_status import CAUTION, lines
from results.progress.snapshot import COLUMNS, Snapshot, failed_keys, in_flight, snapshot
from results.rows.summary import replicates_of
from results.store.manifest import newest_manifest, reported
from results.store.tables import Store, committed, read


def show_status(store: Store, say: Callable[[str], None]) -> None:
    """Print committed of planned by condition, failures, packs in flight and the rate of the last hour."""
    newest = newest_manifest(store)
    manifest = newest[1] if newest else None
    at = snapshot(store.study, manifest, read(store, "replicates", COLUMNS), failed_keys(store), in_flight(store))
    say(head(at))
    for condition in at.conditions:
        extra = f", {condition.diverged} diverged" if condition.diverged else ""
        say(f"  {condition.name}: {condition.committed} of {condition.planned}{extra}")
    if manifest and manifest.get("adaptive"):
        finished = committed(store)
        evaluations = read(store, "evaluations", filter=reported(manifest), winning=finished)
        replicates = replicates_of(manifest, finished, evaluations, read(store, "failures"))
        for line in lines(manifest, replicates):
            say(f"  {line}")
        say(f"  {CAUTION}")
    if at.packs.in_flight:
        say(f"  {at.packs.in_flight} packs have a checkpoint or a lease: running, or waiting to go on")
    if at.last:
        say(f"  last commit {at.last:%Y-%m-%d %H:%M:%S} UTC; {at.recent} replicates in the last hour")
    if at.failed:
        say(f"  why they failed: manyseeds failures STORE {store.study}")


def head(at: Snapshot) -> str:
    """`name: 12 of 24 replicates committed, 2 failed`"""
    return f"{at.study}: {at.committed} of {at.planned} replicates committed" + (f", {at.failed} failed" if at.failed else "")
