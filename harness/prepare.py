"""Plan a study, price it and choose its executor: all that comes before the first step."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

import harness.planning.adaptive as adaptive
import harness.planning.experiment_rates as experiment_rates
import harness.planning.manifest as manifests
import harness.training.checkpoint as checkpoints
from harness.executing.missing_mount import begun
from harness.executor import Executor, KindsExecutor
from harness.experiments.measure import saved_seconds
from harness.machine.device import planned_numerics
from harness.machine.device import resolve as resolve_device
from harness.machine.provenance import code_state, versions
from harness.planning.cost import Estimate, estimate
from harness.planning.kept_rates import KeptRates, folder
from harness.planning.pack import Pack
from harness.planning.pack_sizes import Timer, examples, measure_kinds, sizes_of_begun
from harness.planning.pack_sizes import measure as _measure
from harness.planning.plan import Part, Plan, PlannedPack, plan
from harness.planning.stage_order import refuse_lost
from harness.planning.throughput import Rate
from harness.study.config import Study
from results.errors import StudyError
from results.job_folder import in_ray_job
from results.plain_values import Tree
from results.store.tables import Store, committed, list_names, open_store, read, refuse_folder_of_study, scored

SMALL_S = 60.0  # seconds of work on one slot, up to which `executor: auto` starts no Ray


@dataclass(frozen=True)
class Prepared:
    """A plan and its cost, before anything is trained.

    rates: by `plan.shape`, which is the signature, after the kind of slot where there are several; parts: what each of these kinds takes,
    by signature.
    """

    study: Study
    uri: str
    store: Store
    plan: Plan
    rates: dict[str, Rate]
    cost: Estimate
    numerics: Tree
    slots: int
    parts: Mapping[str, Sequence[Part]] = field(default_factory=dict)
    measured: int = 0  # packs that this command measured; other rates were kept by earlier ones
    watcher: Callable[[Mapping[str, float]], None] = lambda state: None  # told how the study stands while it trains
    first: Sequence[PlannedPack] = ()  # packs of experiments that were never timed: they run before the others

    @property
    def small(self) -> bool:
        """Whether the work is too little to be worth starting Ray."""
        return not self.first and self.cost.slot_hours * 3600 <= SMALL_S

    def seconds(self, pack: Pack) -> float:
        """Expected seconds of a pack on its slot."""
        rate = self.rates[pack.shape]
        whole = rate.pack_seconds(pack.replicates[0].condition.steps)
        return whole * len(pack.replicates) / rate.size


def planned_manifest(prepared: Prepared) -> bytes:
    """The manifest of a plan, as this code and these versions of libraries write it. StudyError where no reader would take it."""
    commit, dirty = code_state()
    content = manifests.to_bytes(manifests.build(prepared.plan, prepared.numerics, versions(), commit, dirty))
    manifests.refuse_unreadable(content)
    return content


def store_uri(given: str) -> str:
    """A URI as it is, a path made absolute. ValueError for a relative path inside a Ray job, whose folder is thrown away."""
    if "://" in given:
        return given
    path = Path(given).expanduser()
    if not path.is_absolute() and in_ray_job():
        raise StudyError(
            f"store={given} is relative, and a Ray job runs in a temporary folder that is removed with all it holds: "
            f"pass an absolute path that every node sees, or a URI such as store=s3://bucket/{path.as_posix()}"
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
    """The executor that a run begins with. With `executor: auto` on a CPU that is this process, until the work is known to be worth Ray."""
    elsewhere = "RAY_ADDRESS" in os.environ and study.device.startswith("cuda")  # a head without a GPU may have nodes with some
    if study.executor == "auto" and not elsewhere and resolve_device(study.device).type == "cpu":
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
    An adaptive study is planned to the most that it can still need; `next_round` reduces that to what is needed next.
    """
    uri = store_uri(study.store)
    refuse_folder_of_study(uri)
    store = open_store(uri, study.name)
    store.check_writable()
    store = replace(store, begun=begun(store))
    executor.check_store(store, uri)
    _refuse_tf32(study, {kind.device for kind in study.slots} or {executor.device})
    numerics = planned_numerics(executor.device, study.compile)
    # which shapes are missing; refuses what can't be planned before anything is measured
    targets = None if study.adaptive is None else adaptive.most(study, _tables(store), retry)
    first = _planned(study, store, 1, numerics, executor.slots, retry, targets)
    refuse_lost(first, store)
    earlier = manifests.read_all(store)
    if study.is_experimental:
        return _prepare_experiments(study, uri, store, first, numerics, executor.slots, retry, guesses or {})
    timer = Timer(executor, say, KeptRates(folder(), say, fresh))
    if study.slots:
        if not isinstance(executor, KindsExecutor):
            raise TypeError(f"{type(executor).__name__} has no kinds of slots, and the study asks for some")
        rates, parts = measure_kinds(study, first, executor, earlier, numerics, timer)
    else:
        kept = sizes_of_begun(study, earlier, numerics, _begun_packs(store), scored(store))
        rates, parts = _measure(study, first, executor, earlier, numerics, timer, kept), {}
    prepared = Prepared(study, uri, store, first, rates, Estimate(), numerics, executor.slots, parts, timer.measured)
    return _priced(prepared, targets, retry)


def _prepare_experiments(
    study: Study,
    uri: str,
    store: Store,
    first: Plan,
    numerics: Tree,
    slots: int,
    retry: bool,
    guesses: Mapping[str, float],
) -> Prepared:
    """As `prepare`, with the seconds of a replicate from committed rows; where there are none, `first` names the packs to run first."""
    study = replace(study, metrics=experiment_rates.metrics_of(study, experiment_rates.kinds_of(store, first)))
    rates = experiment_rates.rates(study, first, committed(store), guesses, slots)
    trial = experiment_rates.first_packs(study, first, rates, numerics)
    # an hour, so that a first replicate that takes long is not taken for one that hangs
    unknown = {pack.signature: Rate(1, 3600.0, 0.0) for pack in first.packs if pack.signature not in rates}
    prepared = Prepared(study, uri, store, first, rates | unknown, Estimate(), numerics, slots, first=trial)
    return _priced(prepared, None, retry)


def next_round(prepared: Prepared, retry: bool = False) -> Prepared:
    """What an adaptive study needs next, by the rows that the store holds now."""
    return _priced(prepared, adaptive.targets(prepared.study, _tables(prepared.store), prepared.slots, retry), retry)


def _tables(store: Store) -> dict[str, pa.Table]:
    """What an adaptive study decides by."""
    return {name: read(store, name) for name in ("evaluations", "failures")} | {"replicates": committed(store)}


def _priced(prepared: Prepared, targets: Mapping[str, int] | None, retry: bool) -> Prepared:
    """Plan again, up to `targets` replicates of each condition by name, and price the plan."""
    study, rates = prepared.study, prepared.rates
    conditions = examples(study)
    # shapes without missing replicates have no rate
    sizes = dict.fromkeys(conditions, 1) | {name: rate.size for name, rate in rates.items()}
    final = _planned(study, prepared.store, sizes, prepared.numerics, prepared.slots, retry, targets, prepared.parts)
    steps = {pack.shape: conditions[pack.signature].steps for pack in final.packs}
    per_replicate = {name: rates[name].pack_seconds(count) / rates[name].size for name, count in steps.items()}
    weights = {name: rate.weights for name, rate in rates.items()}
    saved = _saved_seconds(prepared.store, final, rates, per_replicate)
    return replace(prepared, plan=final, cost=estimate(final, per_replicate, prepared.slots, weights, saved))


def _saved_seconds(
    store: Store, planned: Plan, rates: Mapping[str, Rate], per_replicate: Mapping[str, float]
) -> dict[str, float]:
    """Seconds of work that the checkpoints of interrupted packs hold, by pack id. The evaluations of a training count as missing."""
    begun_packs, seconds = set(list_names(store, "checkpoints")), {}
    for pack in planned.packs:
        if pack.id in begun_packs:
            rate, condition = rates[pack.shape], planned.study.conditions[planned.replicates[pack.replicates[0]].condition]
            if condition.experiment is not None:
                keys = [planned.replicates[index].key for index in pack.replicates]
                packed = condition.experiment.packed
                seconds[pack.id] = saved_seconds(store, pack.id, keys, packed, per_replicate[pack.shape])
                continue
            newest = min(max(checkpoints.steps(store, pack.id), default=0), condition.steps)
            seconds[pack.id] = newest * rate.step_s * len(pack.replicates) / rate.size
    return seconds


def _planned(
    study: Study,
    store: Store,
    sizes: int | dict[str, int],
    numerics: Tree,
    slots: int,
    retry: bool,
    targets: Mapping[str, int] | None = None,
    parts: Mapping[str, Sequence[Part]] | None = None,
) -> Plan:
    earlier, begun_packs, rows = manifests.read_all(store), _begun_packs(store), scored(store)
    return plan(
        study,
        rows,
        sizes,
        targets,
        numerics=numerics,
        slots=slots,
        manifests=earlier,
        failed={key for keys in read(store, "failures", ["keys"])["keys"].to_pylist() for key in keys},
        retry=retry,
        checkpoints=begun_packs,
        kept=sizes_of_begun(study, earlier, numerics, begun_packs, rows),
        parts=parts,
    )


def _begun_packs(store: Store) -> frozenset[str]:
    """The ids of packs that have a checkpoint, or that a driver has taken."""
    leased = (name.removesuffix(".json") for name in list_names(store, "leases"))
    return frozenset((*list_names(store, "checkpoints"), *leased))


def _refuse_tf32(study: Study, devices: Collection[str]) -> None:
    trained = [condition for condition in study.conditions if condition.experiment is None]
    wanted = [condition.label for condition in trained if condition.train.precision == "tf32"]
    others = sorted(set(devices) - {"cuda"})
    if wanted and others:
        raise StudyError(
            f"train.precision = tf32 of condition {wanted[0]} is a mode of NVIDIA GPUs and this study runs on device={others[0]}: "
            "write fp32 or bf16"
        )
