"""A study from its plan to its report: what `manyseeds run` and the scripts under launch/ call."""

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

import harness.planning.adaptive as adaptive
import harness.planning.amounts as amounts
import harness.planning.experiment_rates as experiment_rates
import harness.planning.manifest as manifests
import harness.training.sgd_loop as sequential
import harness.training.weights as artifacts
from harness import compiled_draw
from harness.executing.compaction import compact_alone
from harness.executing.missing_mount import begun
from harness.executing.progress import Progress
from harness.executing.run_pack import Outcome, attempts
from harness.executor import Executor, KindsExecutor
from harness.machine.device import planned_numerics
from harness.machine.device import resolve as resolve_device
from harness.machine.interrupt import Interrupt
from harness.machine.provenance import code_state, versions
from harness.machine.store_retry import PATIENCE_S, patiently
from harness.planning.cost import Estimate, estimate
from harness.planning.kept_rates import KeptRates, folder
from harness.planning.pack import Pack, resolve
from harness.planning.pack_sizes import Timer, examples, measure_kinds, packs_by_kind
from harness.planning.pack_sizes import measure as _measure
from harness.planning.plan import Part, Plan, PlannedPack, plan
from harness.planning.stage_order import by_stage, ready, refuse_lost
from harness.planning.throughput import Rate
from harness.study.config import Study, keep_tail
from results.dashboards.live_feed import LiveFeed
from results.errors import DamagedFile, StoreError, StudyError
from results.report.first_screen import smaller_than
from results.store.filesystem import public
from results.store.leftovers import remove_leftovers
from results.store.manifest import FOLDER, manifest_bytes, newest_manifest, write_manifest
from results.store.tables import Store, check_there, committed, list_names, open_store, read, scored

_AROUND_S = {"local": 8.0, "ray": 20.0}  # seconds of a command that trains little: imports, Ray and its workers, report, W&B
SMALL_S = 60.0  # of work of one slot, below which `executor: auto` starts no Ray
_TRIES = 3  # first replicates that may fail before the others are run without knowing what they take


@dataclass(frozen=True)
class Prepared:
    """A plan with what it costs, before anything is trained. `rates` by `plan.shape`: by signature, and kind of slot where there are
    several; `parts` is what each kind then takes."""

    study: Study
    uri: str
    store: Store
    plan: Plan
    rates: dict[str, Rate]
    cost: Estimate
    numerics: dict[str, Any]
    slots: int
    parts: Mapping[str, Sequence[Part]] = field(default_factory=dict)
    measured: int = 0  # packs; the rates of the others were kept from earlier commands
    watcher: Callable[[Mapping[str, float]], None] = lambda state: None  # told how the study stands while it trains
    first: Sequence[PlannedPack] = ()  # of experiments that nothing is known of: to be run before the others

    @property
    def small(self) -> bool:
        """Whether the work is done sooner in this process than Ray is started."""
        return not self.first and self.cost.slot_hours * 3600 <= SMALL_S

    def seconds(self, pack: Pack) -> float:
        """Expected seconds of a pack on its slot."""
        rate = self.rates[pack.shape]
        whole = rate.pack_seconds(pack.replicates[0].condition.steps)
        return whole * len(pack.replicates) / rate.size


def store_uri(given: str) -> str:
    """A URI as it is, a path made absolute. ValueError for a relative path inside a Ray job, whose folder is thrown away."""
    if "://" in given:
        return given
    path = Path(given).expanduser()
    # the variable of a job's entry point, and the folder that Ray unpacks working_dir to
    in_job = "RAY_JOB_CONFIG_JSON_ENV_VAR" in os.environ or "runtime_resources/working_dir_files" in os.getcwd()
    if in_job and not path.is_absolute():
        raise StudyError(
            f"store={given} is relative, and a Ray job runs in a temporary folder that is removed with all it holds: "
            f"pass an absolute path that every node sees, or a URI such as store=s3://bucket/{given}"
        )
    return str(path.absolute())


def executor_of(study: Study, say: Callable[[str], None] = print) -> Executor:
    """The study's executor, started. say: told what it waits for."""
    if study.executor == "local":
        from harness.local import Local

        return Local(study.device, study.leases)
    from harness.executing.cluster import Cluster

    return Cluster(study.device, study.leases, say, study.slots)


def planner_of(study: Study, say: Callable[[str], None] = print) -> Executor:
    """As `executor_of`, for a plan alone: where Ray would be started on this machine, this process measures in its place."""
    if study.executor != "local" and "RAY_ADDRESS" not in os.environ and not study.slots:
        from harness.local import Local

        return Local(study.device, study.leases, slots=None)
    return executor_of(study, say)


def starter_of(study: Study, say: Callable[[str], None] = print) -> Executor:
    """What a run begins with: with `executor: auto` this process, on a CPU, until the work is known to be worth a start of Ray."""
    if study.executor == "auto" and resolve_device(study.device).type == "cpu":
        return planner_of(study, say)
    return executor_of(study, say)


def prepare(
    study: Study,
    executor: Executor,
    retry: bool = False,
    say: Callable[[str], None] = lambda text: None,
    fresh: bool = False,
    guesses: Mapping[str, float] | None = None,
) -> Prepared:
    """Check the store, measure the shapes that are missing, and plan. Trains nothing and writes nothing into the store.

    say: told what is measured; fresh: whether rates that are kept from earlier commands are measured again; guesses: seconds of a replicate
    by function or command, where no row of an experiment says it.
    An adaptive study is planned to its maximum here; `next_round` leaves of that what is needed next.
    """
    uri = store_uri(study.store)
    store = open_store(uri, study.name)
    store.check_writable()
    store = replace(store, begun=begun(store))
    executor.check_store(store, uri)
    _refuse_tf32(study, {kind.device for kind in study.slots} or {executor.device})
    numerics = planned_numerics(executor.device, study.compile)
    # which shapes are missing; refuses what can't be planned before anything is measured
    first = _planned(study, store, 1, numerics, executor.slots, retry)
    refuse_lost(first, store)
    earlier = _manifests(store)
    if study.is_experimental:
        return _prepare_experiments(study, uri, store, first, numerics, executor.slots, retry, guesses or {})
    timer = Timer(executor, say, KeptRates(folder(), say, fresh))
    if study.slots:
        if not isinstance(executor, KindsExecutor):
            raise TypeError(f"{type(executor).__name__} has no kinds of slots, and the study asks for some")
        rates, parts = measure_kinds(study, first, executor, earlier, numerics, timer)
    else:
        rates, parts = _measure(study, first, executor, earlier, numerics, timer), {}
    return _priced(
        Prepared(study, uri, store, first, rates, Estimate(0, 0, 0.0, 0.0, 0), numerics, executor.slots, parts, timer.measured),
        None,
        retry,
    )


def _prepare_experiments(
    study: Study,
    uri: str,
    store: Store,
    first: Plan,
    numerics: dict[str, Any],
    slots: int,
    retry: bool,
    guesses: Mapping[str, float],
) -> Prepared:
    """As `prepare`: what a replicate takes is read from committed rows. Where none says it, the packs to be run first are named."""
    kinds = read(store, "evaluations", ["metric", "kind"])
    study = replace(study, metrics=experiment_rates.metrics_of(study, kinds))
    rates = experiment_rates.rates(study, first, committed(store), guesses, slots)
    trial = experiment_rates.first_packs(study, first, rates, numerics)
    # an hour, so that a first replicate that takes long is not taken for one that hangs
    unknown = {pack.signature: Rate(1, 3600.0, 0.0) for pack in first.packs if pack.signature not in rates}
    prepared = Prepared(study, uri, store, first, rates | unknown, Estimate(0, 0, 0.0, 0.0, 0), numerics, slots, first=trial)
    return _priced(prepared, None, retry)


def next_round(prepared: Prepared, retry: bool = False) -> Prepared:
    """Of an adaptive study what is known to be needed, from the rows that the store holds now."""
    study, store = prepared.study, prepared.store
    tables = {name: read(store, name) for name in ("evaluations", "failures")} | {"replicates": committed(store)}
    return _priced(prepared, adaptive.targets(study, tables, prepared.slots, retry), retry)


def _priced(prepared: Prepared, targets: Mapping[str, int] | None, retry: bool) -> Prepared:
    """The same, planned again up to `targets`."""
    study, rates = prepared.study, prepared.rates
    known = examples(study)
    sizes = dict.fromkeys(known, 1) | {name: rate.size for name, rate in rates.items()}  # 1: of shapes that miss nothing
    final = _planned(study, prepared.store, sizes, prepared.numerics, prepared.slots, retry, targets, prepared.parts)
    steps = {each.shape: known[each.signature].steps for each in final.packs}
    per_replicate = {name: rates[name].pack_seconds(count) / rates[name].size for name, count in steps.items()}
    weights = {name: rate.weights for name, rate in rates.items()}
    return replace(prepared, plan=final, cost=estimate(final, per_replicate, prepared.slots, weights))


def _planned(
    study: Study,
    store: Store,
    sizes: int | dict[str, int],
    numerics: dict[str, Any],
    slots: int,
    retry: bool,
    targets: Mapping[str, int] | None = None,
    parts: Mapping[str, Sequence[Part]] | None = None,
) -> Plan:
    return plan(
        study,
        scored(store),
        sizes,
        targets,
        numerics=numerics,
        slots=slots,
        manifests=_manifests(store),
        failed={key for keys in read(store, "failures", ["keys"])["keys"].to_pylist() for key in keys},
        retry=retry,
        checkpoints=list_names(store, "checkpoints"),
        parts=parts,
    )


def _manifests(store: Store) -> list[dict[str, Any]]:
    names = list_names(store, FOLDER)
    return [manifests.read(manifest_bytes(store, name), store.path(FOLDER, name)) for name in names]


def _refuse_tf32(study: Study, devices: Collection[str]) -> None:
    trained = [condition for condition in study.conditions if condition.experiment is None]
    wanted = [condition.name for condition in trained if condition.train.precision == "tf32"]
    others = sorted(set(devices) - {"cuda"})
    if wanted and others:
        raise StudyError(
            f"train.precision = tf32 of condition {wanted[0]} is a mode of NVIDIA GPUs and this study runs on device={others[0]}: "
            "write fp32 or bf16"
        )


def announce(prepared: Prepared, say: Callable[[str], None], retry: bool = False) -> None:
    """What the study is and what it will cost. StudyError where a budget is less than the first look of an adaptive study takes."""
    study, cost, planned = prepared.study, prepared.cost, prepared.plan
    device = prepared.numerics["device"]
    scale = "" if study.scale == "paper" else f" (scale {study.scale})"
    say(f"{study.name}{scale}: {' '.join(study.question.split())}")
    if study.reductions:
        say(f"  {smaller_than(study.source, study.reductions)}")
    total = len(planned.replicates)
    new = "" if begun(prepared.store) else ", where this study has not begun"
    say(
        f"  {total} replicates of {len(study.conditions)} conditions, {len(planned.done)} committed in {public(prepared.uri)}{new}"
    )
    if planned.failed:
        say(f"  {len(planned.failed)} failed before and are left out: manyseeds retry plans them again")
    trained = [condition for condition in study.conditions if condition.experiment is None]
    looped = sum(map(sequential.fits, trained)) if device == "cpu" and not study.compile else 0
    if looped:
        said = sequential.missing()
        how = f"the ordinary loop, many times slower: {said}" if said else "the compiled loop"
        say(f"  batch-1 SGD ({looped} of {len(study.conditions)} conditions) takes {how}")
    if refused := compiled_draw.refusal():
        say(f"  random numbers are drawn by torch, several times slower than in C: {refused}")
    for experiment in dict.fromkeys(c.experiment.words for c in study.conditions if c.experiment is not None):
        say(f"  {_code_line(study, experiment)}")
    if prepared.first:
        say("  nothing is known of what a replicate takes: the run begins with the first ones, and then says it")
        return
    unit = "core" if device == "cpu" else "GPU"
    if len(study.slots) > 1:
        unit = "slot"
        for name, packs in packs_by_kind(planned).items():
            say(f"  {name}: {packs}")
    executor = "local" if study.executor == "auto" and prepared.small else study.executor
    if study.adaptive is None:
        say(f"  to do: {_cost(cost, unit, executor)}")
        return
    rule, first = adaptive.rule_of(study), next_round(prepared, retry)
    say(f"  adaptive: {rule.minimum} to {rule.maximum} replicates a condition, until {rule.words}; looks every {rule.step}")
    say(f"  to do, at least: {_cost(first.cost, unit, executor)}")
    say(f"  to do, at most: {_cost(cost, unit, executor)}")
    if rule.budget is not None:
        used = adaptive.spent(study, committed(prepared.store))
        say(f"  budget: {rule.budget:g} {unit}-hours, {amounts.device_time(used, unit)} of them spent")
        if not used and first.cost.slot_hours > rule.budget:
            raise StudyError(
                f"budget.gpu_hours = {rule.budget:g} is less than the {first.cost.slot_hours:.2g} {unit}-hours that the first look is "
                "expected to take: raise it or lower replicates.min"
            )


def _code_line(study: Study, words: str) -> str:
    """The code of an experiment: its digest, and the files that this is of."""
    condition = next(each for each in study.conditions if each.experiment is not None and each.experiment.words == words)
    code = condition.experiment.code() if condition.experiment is not None else None
    if code is None:
        return f"{words}: built in"
    names = code.files
    shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    return f"{words}: code {(condition.code or '')[:12]} of {shown}"


def _cost(cost: Estimate, unit: str, executor: str) -> str:
    weights = f", {amounts.size(cost.weights)} of weights" if cost.weights else ""
    if cost.weights_meanwhile > cost.weights:
        weights += f" ({amounts.size(cost.weights_meanwhile)} until the end thins them out)"
    around = _AROUND_S.get(executor, _AROUND_S["ray"]) if cost.packs else 0.0
    hours = cost.slot_hours if executor == "local" else cost.hours  # one process runs the packs one after the other
    return (
        f"{cost.replicates} replicates in {cost.packs} packs, {amounts.device_time(cost.slot_hours, unit)}, about "
        f"{amounts.duration(hours * 3600 + around)} ({amounts.duration(around)} of them for the start and the report), "
        f"{amounts.size(cost.tables)} of tables{weights}"
    )


def run(study: Study, say: Callable[[str], None] = print, retry: bool = False) -> int:
    """Run what is missing of a study, then write its report and W&B run.

    Returns the exit status: 0 all committed, 1 some failed, 130 stopped by Ctrl-C. Raises ValueError or OSError, before anything is
    trained, with one sentence on what is wrong.
    """
    with LiveFeed(store_uri(study.store), study.name, study.wandb, study.wandb_runs, study.tensorboard, say) as feed:
        return _run(study, feed, say, retry)


def _run(study: Study, feed: LiveFeed, say: Callable[[str], None], retry: bool) -> int:
    executor = starter_of(study, say)
    begun: list[Outcome] = []
    try:
        with Interrupt() as interrupt:
            executor.asked = interrupt.requested
            prepared = replace(prepare(study, executor, retry, say), watcher=feed.offer)
            if prepared.first:
                prepared, begun = _begin(prepared, executor, interrupt, retry, say)
                prepared = replace(prepared, watcher=feed.offer)
            announce(prepared, say, retry)
            if study.executor == "auto" and not prepared.small and not interrupt.requested():
                executor = _larger(study, executor, prepared, interrupt, say)
            if study.adaptive is None:
                outcomes = begun + train_all(prepared, executor, interrupt)
                _keep_metrics(prepared)
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
            f"{count} replicates failed: their tracebacks are in {prepared.store.path('failures')}; manyseeds retry trains them again"
        )
    if unstored:
        say(f"{unstored} replicates were trained and the store would not take them: the same command trains them again")
    return 1 if bad or prepared.plan.failed or unstored else 0


def _begin(
    prepared: Prepared, executor: Executor, interrupt: Interrupt, retry: bool, say: Callable[[str], None]
) -> tuple[Prepared, list[Outcome]]:
    """Run the first replicates of experiments that nothing is known of, and plan the rest by what they took."""
    outcomes: list[Outcome] = []
    guesses: dict[str, float] = {}
    for attempt in range(_TRIES):
        for pack in prepared.first:
            condition = prepared.study.conditions[prepared.plan.replicates[pack.replicates[0]].condition]
            words = condition.experiment.words if condition.experiment is not None else ""
            say(f"{prepared.study.name}: {words} is not timed yet, so its first replicate goes before the others")
            started = time.monotonic()
            alone = replace(prepared, plan=replace(prepared.plan, packs=(pack,)))
            found = train_all(alone, executor, interrupt)
            outcomes += found
            if any(outcome.status == "failed" for outcome in found):
                say(f"that replicate failed: {found[-1].message}")
                if attempt == _TRIES - 1:
                    guesses[words] = time.monotonic() - started
            if interrupt.requested():
                return prepared, outcomes
        prepared = replace(prepare(prepared.study, executor, False, say, guesses=guesses), watcher=prepared.watcher)
        if not prepared.first:
            break
    return prepare(prepared.study, executor, retry, say, guesses=guesses) if retry else prepared, outcomes


def _larger(study: Study, executor: Executor, prepared: Prepared, interrupt: Interrupt, say: Callable[[str], None]) -> Executor:
    """Ray in the place of this process, for work that is worth its start."""
    executor.close()
    cluster = executor_of(study, say)
    cluster.asked = interrupt.requested
    cluster.check_store(prepared.store, prepared.uri)
    return cluster


def _keep_metrics(prepared: Prepared) -> None:
    """Write a manifest where the study says another thing of its metrics than the newest one: readers go by that."""
    if prepared.study.is_experimental and not prepared.plan.packs:
        newest = newest_manifest(prepared.store)
        stated = manifests.build(prepared.plan, prepared.numerics, {}).get("metrics")
        if newest is not None and newest[1].get("metrics") != stated:
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
        say(f"round: {prepared.cost.replicates} replicates to the next look, {len(prepared.plan.replicates)} with those before")
        found = train_all(prepared, executor, interrupt, None if budget is None else spent)
        outcomes += found
        if interrupt.requested() or any(outcome.status not in ("committed", "failed") for outcome in found):
            return prepared, outcomes  # what is planned is still needed: the newest manifest holds
        patiently(
            partial(check_there, prepared.store), asked, say
        )  # or a store that is away would read as one that holds nothing
        prepared = patiently(partial(next_round, prepared), asked, say)
    if not interrupt.requested():
        newest = newest_manifest(prepared.store)
        needed = [[each.key, each.condition, each.init_seed, each.data_seed] for each in prepared.plan.replicates]
        if newest is None or newest[1]["replicates"] != needed or newest[1].get("adaptive") != study.adaptive:
            _write_manifest(prepared)  # a budget that ended between two looks, or a store that held more than is needed
    return prepared, outcomes


def _write_manifest(prepared: Prepared) -> None:
    commit, dirty = code_state()
    content = manifests.to_bytes(manifests.build(prepared.plan, prepared.numerics, versions(), commit, dirty))
    write_manifest(prepared.store, manifests.name_of_content(content), content)


def train_all(
    prepared: Prepared, executor: Executor, interrupt: Interrupt, enough: Callable[[], bool] | None = None
) -> list[Outcome]:
    """Write the manifest, then run its packs, the longest first. enough: asked before every pack of a slot; True starts no more."""
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
    """Write the report; the lines that say where it is and what it found."""
    from results.report.report import write_report  # and with it the figures: not before they are drawn
    from results.report.run_ending import run_ending

    page = write_report(store)
    return [f"report: {page}", *run_ending(store, page)]


def finish(prepared: Prepared, feed: LiveFeed, say: Callable[[str], None], patience_s: float = 0.0) -> None:
    """Thin out kept weights, then the views: the report and the W&B run, made from the tables.

    patience_s: seconds that a store which does not answer is tried again, each time; then StoreError.
    """
    store = prepared.store
    if removed := patiently(partial(remove_leftovers, store), say=say, patience_s=patience_s):
        say(f"{removed} temporary file{'s'[: removed > 1]} that killed writers left are removed")
    if not patiently(partial(committed, store), say=say, patience_s=patience_s).num_rows:
        say("nothing is committed yet, so there is no report")
        return
    if tail := keep_tail(prepared.study.keep):
        patiently(
            partial(artifacts.keep_worst, store, tail, {each.parent for each in prepared.plan.replicates}),
            say=say,
            patience_s=patience_s,
        )
    report, *ending = patiently(partial(_report, store), say=say, patience_s=patience_s)
    say(report)
    feed.finish()
    for line in ending:
        say(line)
