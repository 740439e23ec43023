"""What the shapes of a study take here: every signature that misses replicates is measured, on every kind of slot."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness.configuration import Condition, Study
from harness.identity import canonical
from harness.kinds import Kind
from harness.manifest import parts_of
from harness.pack import Pack, Replicate, scored_sets
from harness.plan import Part, Plan, numerics_on, shape, signature
from harness.probe import Rate
from harness.stages import taken_from
from results.errors import StudyError


def examples(study: Study) -> dict[str, Condition]:
    """{signature: its first condition}."""
    found: dict[str, Condition] = {}
    for condition in study.conditions:
        found.setdefault(signature(condition, study.sets), condition)
    return found


def measure(
    study: Study, first: Plan, executor: Any, earlier: Sequence[Mapping[str, Any]], numerics: Mapping[str, Any]
) -> dict[str, Rate]:
    """A rate for every signature with missing replicates; a size that an earlier manifest settled is kept, so packs stay the same."""
    settled: dict[str, int] = {}
    for manifest in earlier:
        if manifest["numerics"] == numerics:
            for pack in manifest["packs"]:
                settled[pack["signature"]] = max(settled.get(pack["signature"], 1), len(pack["replicates"]))
    rates = {}
    counts, known = _counts(study, first), examples(study)
    for name in dict.fromkeys(pack.signature for pack in first.packs):
        largest = -(-counts[name] // executor.slots)
        of_size = _probe(study, name, known[name], numerics)
        fixed = study.pack_size or settled.get(name)
        rates[name] = executor.measure(of_size(min(fixed, largest))) if fixed else executor.best_rate(of_size, largest)
    return rates


def measure_kinds(
    study: Study, first: Plan, executor: Any, earlier: Sequence[Mapping[str, Any]], numerics: Mapping[str, Any]
) -> tuple[dict[str, Rate], dict[str, tuple[Part, ...]]]:
    """As `measure`, by shape, and what each kind of slot takes of each signature; tells the executor what decides where packs run.

    A kind whose memory does not hold a pack takes none; what an earlier manifest with the same slots settled is kept.
    ValueError where no kind holds a replicate.
    """
    slots = [each.as_dict() for each in study.slots]
    settled: dict[str, tuple[Part, ...]] = {}
    for manifest in earlier:
        if manifest["numerics"] == numerics and manifest.get("slots") == slots:
            settled |= parts_of(manifest)
    rates: dict[str, Rate] = {}
    parts: dict[str, tuple[Part, ...]] = {}
    counts, known = _counts(study, first), examples(study)
    rooms = {kind.name: executor.room(kind) for kind in executor.kinds()}
    for name in dict.fromkeys(pack.signature for pack in first.packs):
        steps = known[name].train.steps
        taken = []
        for kind in executor.kinds():
            count, room = executor.most[kind.name], rooms[kind.name]
            size = kind.pack or study.pack_size or _settled_size(settled.get(name, ()), kind)
            largest = -(-counts[name] // count)
            of_size = _probe(study, name, known[name], numerics_on(numerics, kind.name))
            fixed = None if size is None else of_size(min(size, largest))
            rate = executor.best_rate(of_size, largest, kind, room) if fixed is None else executor.measure(fixed, kind)
            if rate.memory > room:
                needs = f"a pack of {rate.size} of {known[name].name} takes {rate.memory / 1e9:.3g} GB"
                executor.say(f"slots {kind.name}: {needs}, more than the {room / 1e9:.3g} GB of a slot, so they take none")
                continue
            rates[shape(name, kind.name)] = rate
            taken.append(Part(kind.name, rate.size, count * rate.size / rate.pack_seconds(steps), count))
        if not taken:
            raise StudyError(
                f"no slot of the study holds condition {known[name].name}: give slots with more memory, or a smaller pack, model or batch"
            )
        kept = settled.get(name, ())
        parts[name] = kept if kept and {part.kind for part in kept} <= {part.kind for part in taken} else tuple(taken)
    executor.place(rates, rooms)
    return rates, parts


def packs_by_kind(planned: Plan) -> dict[str, str]:
    """What each kind of slot was given, in words: {kind: "12 replicates in packs of at most 4"}."""
    sizes: dict[str, list[int]] = {}
    for pack in planned.packs:
        sizes.setdefault(pack.kind, []).append(len(pack.replicates))
    return {kind: f"{sum(each)} replicates in {len(each)} packs of at most {max(each)}" for kind, each in sizes.items()}


def _settled_size(parts: Sequence[Part], kind: Kind) -> int | None:
    return next((part.size for part in parts if part.kind == kind.name), None)


def _counts(study: Study, first: Plan) -> dict[str, int]:
    """Replicates of each signature."""
    names = [signature(condition, study.sets) for condition in study.conditions]
    counts: dict[str, int] = {}
    for replicate in first.replicates:
        name = names[replicate.condition]
        counts[name] = counts.get(name, 0) + 1
    return counts


def _probe(study: Study, name: str, condition: Condition, numerics: Mapping[str, Any]) -> Callable[[int], Pack]:
    """Packs of n replicates of a shape, to be measured."""
    sets = scored_sets(study, condition)
    needed = taken_from(study.conditions)  # by a later stage
    fed = needed and any(canonical(each.config()) in needed for each in study.conditions if signature(each, study.sets) == name)
    keep = study.keep != "none" or bool(fed)

    def of_size(size: int) -> Pack:
        replicates = tuple(Replicate(f"probe-{seed}", condition, seed, seed, sets) for seed in range(size))
        return Pack(f"probe-{size}", name, replicates, study.curve_every, numerics, keep, condition.stage)

    return of_size
