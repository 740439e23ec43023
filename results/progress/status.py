"""The progress of a study, from its store alone: also while it runs, and on any machine."""

from collections.abc import Callable

from results.progress.adaptive_status import CAUTION, lines
from results.progress.snapshot import Condition, Snapshot, take
from results.rows.plural import counted
from results.rows.study_rows import read_study
from results.store.manifest import newest_manifest
from results.store.tables import Store, read


def show_status(store: Store, say: Callable[[str], None]) -> None:
    """Print committed of planned by condition, failures, packs in flight and the rate of the last hour."""
    newest = newest_manifest(store)
    manifest = newest[1] if newest else None
    at = take(store, manifest)
    say(head(at))
    for condition in at.conditions:
        extra = f", {condition.diverged} diverged" if condition.diverged else ""
        say(f"  {condition.name}: {of_planned(condition)}{extra}")
    if manifest and manifest.get("adaptive"):
        for line in lines(manifest, read_study(store, manifest).replicates):
            say(f"  {line}")
        say(f"  {CAUTION}")
    if at.packs.in_flight:
        have = "has" if at.packs.in_flight == 1 else "have"
        say(f"  {counted(at.packs.in_flight, 'pack')} {have} a checkpoint or a lease: running, or waiting to go on")
    if at.last:
        say(f"  last commit {at.last:%Y-%m-%d %H:%M:%S} UTC; {counted(at.recent, 'replicate')} in the last hour")
    if at.failed:
        say(f"  why they failed: manyseeds failures {store.shell_word} {store.study}")


def head(at: Snapshot) -> str:
    """`name: 12 of 24 replicates committed, 2 failed`, and how many others there are; without a manifest it says that there is none."""
    failed = f", {at.failed} failed" if at.failed else ""
    if not at.planned:
        return f"{at.study}: {counted(at.committed, 'replicate')} committed{failed}, and no manifest says how many are planned"
    others = f"; {unplanned(at.unplanned)}" if at.unplanned else ""
    return f"{at.study}: {at.committed} of {at.planned} replicates committed{failed}{others}"


def unplanned(count: int) -> str:
    """What is said of committed replicates that a plan lacks, such as those of a setting that was changed since."""
    are = "is" if count == 1 else "are"
    return f"{counted(count, 'other replicate')} in the store {are} not of this plan, and left out of reports"


def left_out(store: Store) -> str | None:
    """The sentence on a store's replicates that the study's newest plan lacks; None where it has all, or where there is no plan."""
    newest = newest_manifest(store)
    if newest is None:
        return None
    more = set(read(store, "replicates", ["key"])["key"].to_pylist()) - {row[0] for row in newest[1]["replicates"]}
    return f"{store.study}: {unplanned(len(more))}" if more else None


def of_planned(condition: Condition) -> str:
    """`12 of 24`, or `12, and none planned` of a condition that the newest plan lacks."""
    return f"{condition.committed} of {condition.planned}" if condition.planned else f"{condition.committed}, and none planned"
