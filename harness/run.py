"""A study from its plan to its report: what `manyseeds run` and the scripts under launch/ call."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pyarrow as pa

import harness.planning.adaptive as adaptive
import harness.planning.manifest as manifests
import harness.training.weights as artifacts
from harness.announce import announce
from harness.executing.compaction import compact_alone
from harness.executing.orphaned_checkpoints import remove_orphans
from harness.executing.progress import Progress
from harness.executing.run_pack import Outcome, attempts
from harness.executor import Executor
from harness.machine.interrupt import Interrupt
from harness.machine.store_retry import PATIENCE_S, patiently
from harness.planning.experiment_rates import kinds_of, unseen_metrics
from harness.planning.pack import resolve
from harness.planning.stage_order import by_stage, ready
from harness.prepare import Prepared, executor_of, next_round, planned_manifest, prepare, starter_of, store_uri
from harness.study.config import Study, keep_tail
from results.dashboards.live_feed import LiveFeed
from results.errors import DamagedFile, StoreError
from results.job_folder import in_ray_job
from results.output import copy_to_store
from results.rows.plural import counted
from results.store.leftovers import remove_leftovers
from results.store.manifest import newest_manifest, write_manifest
from results.store.tables import Store, check_there, committed, studies

_TRIES = 3  # rounds of first replicates that may fail before the others run without a measured time


def run(study: Study, say: Callable[[str], None] = print, retry: bool = False) -> int:
    """Run what is missing of a study, then write its report and W&B run.

    Returns the exit status: 0 all committed, 1 some failed, 130 stopped by Ctrl-C. Raises ValueError or OSError, before anything is
    trained, with one sentence on what is wrong.
    """
    with LiveFeed(store_uri(study.store), study.name, study.wandb, study.wandb_runs, study.tensorboard, say) as feed:
        return _run(study, feed, say, retry)


def _run(study: Study, feed: LiveFeed, say: Callable[[str], None], retry: bool) -> int:
    executor = starter_of(study, say)
    try:
        with Interrupt() as interrupt:
            executor.asked = interrupt.requested
            prepared = replace(prepare(study, executor, retry, say), watcher=feed.offer)
            if prepared.first:
                prepared = replace(_begin(prepared, executor, interrupt, retry, say), watcher=feed.offer)
            announce(prepared, say, retry)
            if study.executor == "auto" and not prepared.small and not interrupt.requested():
                executor = _start_ray(study, executor, prepared, interrupt, say)
            if study.adaptive is None:
                outcomes = train_all(prepared, executor, interrupt)
                _keep_manifest(prepared)
            else:
                prepared, outcomes = _train_rounds(prepared, executor, interrupt, retry, say)
            stopped = interrupt.requested()
    finally:
        executor.close()
    bad = [outcome for outcome in outcomes if outcome.status not in ("committed", "stopped", "unstored")]
    unstored = sum(outcome.replicates for outcome in outcomes if outcome.status == "unstored")
    try:
        if study.leases and not (stopped or unstored):  # without leases nothing tells whether another driver works
            compact_alone(prepared.store, say)
            remove_orphans(prepared.store, say)
        finish(prepared, feed, say, PATIENCE_S if not (stopped or unstored) else 0.0)
    except DamagedFile:
        raise
    except StoreError as error:
        say(f"the store can't be used, so there is no report: {error}; the same command goes on from here")
        return 130 if stopped else 1
    if stopped:
        say("stopped: the same command goes on from here")
        return 130
    if bad or prepared.plan.failed:
        count = sum(outcome.replicates for outcome in bad) + len(prepared.plan.failed)
        say(
            f"{count} replicate{'s' * (count > 1)} failed: manyseeds failures {prepared.store.shell_word} says why; manyseeds retry runs "
            f"{'them' if count > 1 else 'it'} again"
        )
    if unstored:
        say(f"{unstored} replicates were trained and the store would not take them: the same command trains them again")
    return 1 if bad or prepared.plan.failed or unstored else 0


def _begin(prepared: Prepared, executor: Executor, interrupt: Interrupt, retry: bool, say: Callable[[str], None]) -> Prepared:
    """Run the first replicates of experiments that were never timed, and plan the rest by the time that they took.

    Replicates that fail here are failed in the new plan.
    """
    guesses: dict[str, float] = {}
    for attempt in range(_TRIES):
        for pack in prepared.first:
            condition = prepared.study.conditions[prepared.plan.replicates[pack.replicates[0]].condition]
            words = condition.experiment.words if condition.experiment is not None else ""
            say(f"{prepared.study.name}: {words} is not timed yet, so its first replicate goes before the others")
            started = time.monotonic()
            alone = replace(prepared, plan=replace(prepared.plan, packs=(pack,)))
            ended = train_all(alone, executor, interrupt)
            if attempt == _TRIES - 1 and any(outcome.status == "failed" for outcome in ended):
                guesses[words] = time.monotonic() - started
            if interrupt.requested():
                return prepared
        prepared = replace(prepare(prepared.study, executor, False, say, guesses=guesses), watcher=prepared.watcher)
        if not prepared.first:
            break
    return prepare(prepared.study, executor, retry, say, guesses=guesses) if retry else prepared


def _start_ray(
    study: Study, executor: Executor, prepared: Prepared, interrupt: Interrupt, say: Callable[[str], None]
) -> Executor:
    """Replace this process's executor by Ray, for work that is worth starting it."""
    executor.close()
    cluster = executor_of(study, say)
    cluster.asked = interrupt.requested
    cluster.check_store(prepared.store, prepared.uri)
    return cluster


def _keep_manifest(prepared: Prepared) -> None:
    """Write the manifest of a study with nothing left to train, if the newest one says something else of the study.

    Readers go by the newest manifest, and drivers with different `only` may have filled the store, or the budget of an adaptive study may
    have ended between two looks.
    """
    if prepared.plan.packs:
        return
    newest = newest_manifest(prepared.store)
    stated = json.loads(manifests.to_bytes(manifests.build(prepared.plan, prepared.numerics, {})))
    asked = (
        "question",
        "source",
        "claims",
        "scale",
        "reductions",
        "adaptive",
        "conditions",
        "replicates",
        "sets",
        *(("metrics",) if prepared.study.is_experimental else ()),
    )
    if newest is None or any(newest[1].get(field) != stated.get(field) for field in asked):
        _write_manifest(prepared)


def _train_rounds(
    prepared: Prepared, executor: Executor, interrupt: Interrupt, retry: bool, say: Callable[[str], None]
) -> tuple[Prepared, list[Outcome]]:
    """Plan up to the next look, train, decide again, until every condition has stopped; each round has its own manifest."""
    study, outcomes = prepared.study, list[Outcome]()
    budget = adaptive.rule_of(study).budget
    asked = interrupt.requested

    def spent() -> bool:
        return budget is not None and adaptive.spent(study, patiently(rows, asked, say)) >= budget

    def rows() -> pa.Table:
        check_there(prepared.store)
        return committed(prepared.store)

    prepared = next_round(prepared, retry)
    while prepared.plan.packs and not interrupt.requested():
        say(
            f"round: {counted(prepared.cost.replicates, 'replicate')} to the next look, {len(prepared.plan.replicates)} with those before"
        )
        ended = train_all(prepared, executor, interrupt, None if budget is None else spent)
        outcomes += ended
        if interrupt.requested() or any(outcome.status not in ("committed", "failed") for outcome in ended):
            return prepared, outcomes  # what is planned is still needed: the newest manifest holds
        patiently(
            partial(check_there, prepared.store), asked, say
        )  # or a store that is away would read as one that holds nothing
        prepared = patiently(partial(next_round, prepared), asked, say)
    if not interrupt.requested():
        _keep_manifest(prepared)
    return prepared, outcomes


def _write_manifest(prepared: Prepared) -> None:
    content = planned_manifest(prepared)
    write_manifest(prepared.store, content)


def train_all(
    prepared: Prepared, executor: Executor, interrupt: Interrupt, enough: Callable[[], bool] | None = None
) -> list[Outcome]:
    """Write the manifest, then run its packs, the longest first.

    enough: asked before each batch of as many packs as there are slots; True starts no more.
    """
    if not prepared.plan.packs:
        return []
    patiently(partial(_write_manifest, prepared), interrupt.requested)
    prepared = replace(prepared, store=replace(prepared.store, begun=True))
    packs = resolve(prepared.plan, prepared.numerics, patiently(partial(attempts, prepared.store), interrupt.requested))
    seconds = {pack.id: prepared.seconds(pack) for pack in packs}
    packs.sort(key=lambda pack: -seconds[pack.id])
    progress = Progress(packs, seconds, len(prepared.plan.done), len(prepared.plan.replicates), prepared.watcher)
    outcomes: list[Outcome] = []
    batch = len(packs) if enough is None else executor.slots
    try:
        for stage in by_stage(packs):
            if interrupt.requested() or any(outcome.status == "unstored" for outcome in outcomes):
                break
            packs = patiently(partial(ready, stage, prepared.store, progress), interrupt.requested, progress.say)
            while packs and not interrupt.requested() and not (enough is not None and enough()):
                outcomes += executor.run(packs[:batch], prepared.store, prepared.uri, progress, interrupt)
                packs = packs[batch:] if all(outcome.status != "unstored" for outcome in outcomes) else []
    finally:
        progress.close()
    return outcomes


def _report(store: Store) -> list[str]:
    """Write the report, in a Ray job to the store too; return the lines that say where it is and what it found."""
    from results.report.report import write_report  # not at the top: it imports the code of the figures
    from results.report.run_ending import run_ending

    page = write_report(store)
    where = str(page)
    if in_ray_job() and not store.is_local:  # the job's own folder is not kept
        again = f"manyseeds report {store.shell_word} {store.study} --out report"
        where = f"{copy_to_store(store, page.parent)}; `{again}` writes it to a folder, on any machine"
    return [f"report: {where}", *run_ending(store, page)]


def _thin_out(prepared: Prepared, tail: int) -> None:
    """Remove the kept weights of all but the `tail` worst replicates of each condition, save those that something else needs."""
    others = [name for name in studies(prepared.uri) if name != prepared.study.name]
    planned = prepared.plan.replicates
    needed = {replicate.parent for replicate in planned} | artifacts.needed_elsewhere(prepared.store, others)
    artifacts.keep_worst(prepared.store, tail, {replicate.key for replicate in planned}, needed)


def finish(prepared: Prepared, feed: LiveFeed, say: Callable[[str], None], patience_s: float = 0.0) -> None:
    """Thin out kept weights, then write the report and the W&B run from the tables.

    patience_s: seconds that a store which does not answer is tried again, each time; then StoreError.
    """
    store = prepared.store
    if removed := patiently(partial(remove_leftovers, store), say=say, patience_s=patience_s):
        say(f"{removed} temporary file{'s'[: removed > 1]} that killed writers left are removed")
    if not patiently(partial(committed, store), say=say, patience_s=patience_s).num_rows:
        say("nothing is committed yet, so there is no report")
        return
    if tail := keep_tail(prepared.study.keep):
        try:
            patiently(partial(_thin_out, prepared, tail), say=say, patience_s=patience_s)
        except DamagedFile as error:
            say(f"no kept weights are removed, since another study may need them: {error}")
    if prepared.study.is_experimental:
        rows = patiently(partial(kinds_of, store, prepared.plan), say=say, patience_s=patience_s)
        for sentence in unseen_metrics(prepared.study, rows):
            say(sentence)
    report, *ending = patiently(partial(_report, store), say=say, patience_s=patience_s)
    say(report)
    feed.finish()
    for line in ending:
        say(line)
