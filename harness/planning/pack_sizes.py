"""Measure what the shapes of a study take here: every signature with missing replicates, on every kind of slot.

Rates that are kept from an earlier command are used as they are (`harness.planning.kept_rates`).
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import torch

import harness.planning.amounts as amounts
from harness.executor import Executor, KindsExecutor
from harness.planning.kept_rates import KeptRates
from harness.planning.manifest import is_committed, parts_of, sets_by_key, signature_of
from harness.planning.pack import Pack, Replicate, scored_sets
from harness.planning.plan import Part, Plan, numerics_on, shape, signature
from harness.planning.throughput import Rate, best_rate, too_large
from harness.study.config import Condition, Study
from harness.study.identity import canonical
from harness.study.slot_kinds import Kind
from harness.study.stages import taken_from
from results.errors import StudyError
from results.grouping import grouped
from results.plain_values import Options
from results.store.manifest import Manifest

_SAY_S = 2.0  # between lines of a shape
_OTHER_SEEDS = (1_000, 2_000)  # first seeds of the packs that are tried in place of one that can't be trained


class Timer:
    """Finds the rates of packs: kept ones, or else it says what it measures, and keeps that.

    kept: None to keep nothing. measured: how many packs it measured.
    """

    def __init__(self, executor: Executor, say: Callable[[str], None] = lambda text: None, kept: KeptRates | None = None):
        self._executor, self._say, self._kept = executor, say, kept
        self._said_at = -math.inf
        self._shape = ""
        self.measured = 0

    def begin(self, number: int, shapes: int, name: str) -> None:
        """Note what is measured next: the shape of the condition `name`. Its first line comes at once."""
        self._shape = f"shape {number} of {shapes} ({name})"
        self._said_at = -math.inf

    def rate(self, pack: Pack, kind: Kind | None = None) -> Rate:
        machine = "" if self._kept is None else self._executor.machine(kind)
        kept = None if self._kept is None else self._kept.find(pack, machine)
        if kept is not None:
            return kept
        if time.monotonic() - self._said_at > _SAY_S:
            self._said_at = time.monotonic()
            size = len(pack.replicates)
            self._say(f"measuring {self._shape}: {'one replicate' if size == 1 else f'a pack of {size}'}")
        rate = self._measured(pack, kind)
        self.measured += 1
        if self._kept is not None:
            self._kept.keep(pack, machine, rate)
        return rate

    def _measured(self, pack: Pack, kind: Kind | None) -> Rate:
        """Measure a pack; where it can't be trained, one with other seeds.

        An unlucky seed will fail alone when it is trained, so a warning is enough here.
        """
        try:
            return self._executor.measure(pack) if kind is None else self._executor.measure(pack, kind)
        except StudyError as error:
            for first in _OTHER_SEEDS:
                seeds = enumerate(pack.replicates, first)
                members = tuple(replace(replicate, init_seed=seed, data_seed=seed) for seed, replicate in seeds)
                try:
                    other = replace(pack, replicates=members)
                    rate = self._executor.measure(other) if kind is None else self._executor.measure(other, kind)
                except StudyError:
                    continue
                which = "seed 0" if len(members) == 1 else f"one of the seeds 0 to {len(members) - 1}"
                self._say(f"warning: {which} can't be trained, and others can: {error}")
                return rate
            raise


def examples(study: Study) -> dict[str, Condition]:
    """{signature: its first condition}."""
    first: dict[str, Condition] = {}
    for condition in study.conditions:
        first.setdefault(signature(condition, study.sets), condition)
    return first


def settled_sizes(
    earlier: Sequence[Manifest], numerics: Options, begun: Collection[str] | None = None, sets: Mapping[str, int] | None = None
) -> dict[str, int]:
    """{signature: size of its largest pack in an earlier manifest of the same numerics}.

    begun: ids of packs; only signatures are then listed that have one of these which is not committed by now. None: all.
    sets: on how many evaluation sets each committed key is scored.
    """
    settled: dict[str, int] = {}
    listed: set[str] = set()
    for manifest in earlier:
        if manifest["numerics"] == numerics:
            for pack in manifest["packs"]:
                name = signature_of(pack, manifest)
                settled[name] = max(settled.get(name, 1), len(pack["replicates"]))
                if begun is None or (pack["id"] in begun and not is_committed(pack, manifest, sets or {})):
                    listed.add(name)
    return {name: size for name, size in settled.items() if name in listed}


def sizes_of_begun(
    study: Study, earlier: Sequence[Manifest], numerics: Options, begun: Collection[str], scored: pa.Table
) -> dict[str, int]:
    """The sizes that hold, by signature, because packs with these ids have begun; a smaller pack.size of the study wins.

    scored: key and sets of committed rows. A driver that was killed leaves the lease of a pack behind, which others may have committed.
    """
    settled = settled_sizes(earlier, numerics, begun, sets_by_key(scored)) if begun else {}
    return {name: min(size, study.pack_size or size) for name, size in settled.items()}


def measure(
    study: Study,
    first: Plan,
    executor: Executor,
    earlier: Sequence[Manifest],
    numerics: Options,
    timer: Timer | None = None,
    kept: Mapping[str, int] | None = None,
) -> dict[str, Rate]:
    """A rate for every signature with missing replicates; a size that an earlier manifest settled is kept, so packs stay the same.

    kept: as in `harness.planning.plan.plan`; other sizes are made smaller where slots would be idle.
    StudyError where the device does not hold a pack of the size that is given or settled, or one replicate.
    """
    settled = settled_sizes(earlier, numerics)
    rates = {}
    timer = timer or Timer(executor)
    for name, condition, replicates in _shapes(study, first, timer):
        largest = -(-replicates // executor.slots)
        of_size = _trial_pack(study, name, condition, numerics)
        fixed = (kept or {}).get(name) or min(study.pack_size or settled.get(name, 0), largest)
        if fixed:
            trial = of_size(fixed)
            try:
                rates[name] = timer.rate(trial)
            except torch.OutOfMemoryError as error:
                raise too_large(trial) from error
        else:
            rates[name] = best_rate(_timed(timer, of_size), largest, executor.device, executor.room, condition.steps)
    return rates


def measure_kinds(
    study: Study,
    first: Plan,
    executor: KindsExecutor,
    earlier: Sequence[Manifest],
    numerics: Options,
    timer: Timer | None = None,
) -> tuple[dict[str, Rate], dict[str, tuple[Part, ...]]]:
    """As `measure`, by shape, and what each kind of slot takes of each signature; the executor is told the rates.

    A kind whose memory does not hold a pack takes none; what an earlier manifest with the same slots settled is kept.
    ValueError where no kind holds a replicate.
    """
    slots = [kind.as_dict() for kind in study.slots]
    settled: dict[str, tuple[Part, ...]] = {}
    for manifest in earlier:
        if manifest["numerics"] == numerics and manifest.get("slots") == slots:
            settled |= parts_of(manifest)
    rates: dict[str, Rate] = {}
    parts: dict[str, tuple[Part, ...]] = {}
    rooms = {kind.name: executor.room(kind) for kind in executor.kinds()}
    timer = timer or Timer(executor)
    for name, condition, replicates in _shapes(study, first, timer):
        steps = condition.steps
        taken = []
        for kind in executor.kinds():
            count, room = executor.most_slots[kind.name], rooms[kind.name]
            size = kind.pack or study.pack_size or _settled_size(settled.get(name, ()), kind)
            largest = -(-replicates // count)
            of_size = _trial_pack(study, name, condition, numerics_on(numerics, kind.name), kind.name)
            if size is None:
                rate = best_rate(_timed(timer, of_size, kind), largest, kind.device, lambda room=room: room, steps)  # type: ignore[misc]
            else:
                size = min(size, largest)
                try:
                    rate = timer.rate(of_size(size), kind)
                except torch.OutOfMemoryError:
                    executor.say(f"slots {kind.name}: a pack of {size} of {condition.label} does not fit, so they take none")
                    continue
            if rate.memory > room:
                needs = f"a pack of {rate.size} of {condition.label} takes {amounts.size(rate.memory)}"
                executor.say(f"slots {kind.name}: {needs}, more than the {amounts.size(room)} of a slot, so they take none")
                continue
            rates[shape(name, kind.name)] = rate
            taken.append(Part(kind.name, rate.size, count * rate.size / rate.pack_seconds(steps), count))
        if not taken:
            remedy = "give slots with more memory, or a smaller pack, model or batch"
            raise StudyError(f"no slot of the study holds condition {condition.label}: {remedy}")
        kept = settled.get(name, ())
        parts[name] = kept if kept and {part.kind for part in kept} <= {part.kind for part in taken} else tuple(taken)
    executor.place(rates, rooms)
    return rates, parts


def _timed(timer: Timer, of_size: Callable[[int], Pack], kind: Kind | None = None) -> Callable[[int], Rate]:
    return lambda size: timer.rate(of_size(size), kind)


def packs_by_kind(planned: Plan) -> dict[str, str]:
    """What each kind of slot was given, in words: {kind: "12 replicates in packs of at most 4"}."""
    sizes = grouped((pack.kind, len(pack.replicates)) for pack in planned.packs)
    return {kind: f"{sum(packs)} replicates in {len(packs)} packs of at most {max(packs)}" for kind, packs in sizes.items()}


def _settled_size(parts: Sequence[Part], kind: Kind) -> int | None:
    return next((part.size for part in parts if part.kind == kind.name), None)


def _shapes(study: Study, first: Plan, timer: Timer) -> Iterator[tuple[str, Condition, int]]:
    """Every signature with missing replicates, its first condition and how many replicates have it; the timer is told of each."""
    names = [signature(condition, study.sets) for condition in study.conditions]
    counts, conditions = Counter(names[replicate.condition] for replicate in first.replicates), examples(study)
    missing = list(dict.fromkeys(pack.signature for pack in first.packs))
    for number, name in enumerate(missing, 1):
        timer.begin(number, len(missing), conditions[name].label)
        yield name, conditions[name], counts[name]


def _trial_pack(study: Study, name: str, condition: Condition, numerics: Options, kind: str = "") -> Callable[[int], Pack]:
    """A function that makes a pack of n replicates of a shape, to be measured."""
    sets = scored_sets(study, condition)
    needed = taken_from(study.conditions)  # by a later stage
    teachers = [other for other in study.conditions if canonical(other.config()) in needed] if needed else []
    keep = study.keep != "none" or any(signature(other, study.sets) == name for other in teachers)

    def of_size(size: int) -> Pack:
        replicates = tuple(Replicate(f"probe-{seed}", condition, seed, seed, sets) for seed in range(size))
        shared = (study.curve_every, numerics, keep, condition.stage)
        return Pack(f"probe-{size}", name, replicates, *shared, kind=kind, watch=study.watch)

    return of_size
