"""The plan: which replicates are missing, and in which packs they are trained. A pure function of data.

Replicates of one signature are chunked in study order over the *whole* study, and the done ones are then dropped: packs that nothing
disturbed keep their ids (and so their checkpoints) over any resume. Done = committed with every evaluation set that is asked.
"""

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from harness.study.config import Condition, EvaluationSet, Study, name_of, nearest
from harness.study.identity import canonical, describe, digest
from harness.study.stages import keys, parent_of, spans_of
from results.errors import StudyError
from results.grouping import grouped
from results.plain_values import Options, Tree
from results.store.manifest import Manifest
from results.store.manifest_fields import PlannedRow
from tasks.task import Task

# options of `train` that become vectors over the replicates of a pack
VECTORS = (
    *("lr", "weight_decay", "betas", "warmup", "schedule", "eps", "momentum", "final_lr", "decay_steps"),
    *("patience", "factor", "clip", "ema"),
)
SWITCHES = ("clip", "ema")  # vectors that are all zero in a pack or none: zero changes what a step computes


@dataclass(frozen=True)
class PlannedReplicate:
    """A replicate of a plan. condition: index into the study's conditions; parent: the key of the previous stage."""

    key: str
    condition: int
    init_seed: int
    data_seed: int
    stage: int = 0
    parent: str | None = None

    def entry(self) -> PlannedRow:
        """The replicate as a manifest lists it."""
        return [self.key, self.condition, self.init_seed, self.data_seed]


@dataclass(frozen=True)
class PlannedPack:
    """A pack of a plan.

    replicates: indices into the plan's replicates; signature: what the pack's shapes and code follow from; kind: of the slot that it was
    sized for, where there are several.
    """

    id: str
    stage: int
    replicates: tuple[int, ...]
    signature: str
    kind: str = ""

    @property
    def shape(self) -> str:
        return shape(self.signature, self.kind)


@dataclass(frozen=True)
class Part:
    """What one kind of slot takes of a signature: packs of `size`, and a share of the replicates in proportion to its `rate`.

    kind: its name, which begins with the device; rate: replicates a second of all slots of the kind; slots: how many they are.
    """

    kind: str
    size: int
    rate: float
    slots: int


@dataclass(frozen=True)
class Plan:
    """The whole study's replicates, and packs of those that are missing. `done` and `failed` are keys that no pack holds; `parts` is
    as in `plan`."""

    study: Study
    replicates: tuple[PlannedReplicate, ...]
    packs: tuple[PlannedPack, ...]
    done: frozenset[str]
    failed: frozenset[str]
    parts: Mapping[str, Sequence[Part]] = field(default_factory=dict)


def plan(
    study: Study,
    committed: pa.Table | None,
    sizes: int | Mapping[str, int],
    targets: Mapping[str, int] | None = None,
    *,
    numerics: Options,
    slots: int = 1,
    manifests: Sequence[Manifest] = (),
    failed: Collection[str] = (),
    retry: bool = False,
    checkpoints: Collection[str] = (),
    kept: Mapping[str, int] | None = None,
    parts: Mapping[str, Sequence[Part]] | None = None,
) -> Plan:
    """The packs that finish `study`.

    committed: rows of `replicates` (columns key, stage, sets). sizes: replicates a pack at most, for all or by signature; the study's
    own pack.size wins. targets: replicates of a condition by name, at most those of the study. manifests: earlier ones of the same
    store. failed: keys that failed before, planned again only with `retry`.
    checkpoints: ids of packs that have begun, which must not be split.
    kept: by signature, the size of packs that have begun. It is taken where only this size forms a pack of `checkpoints` again; otherwise
    that pack would begin anew.
    parts: where slots are of several kinds, what each takes, by signature; `sizes` is then not read, nor is pack.size.
    ValueError where an evaluation set was redefined or exchanged.
    """
    conditions = _limited(study.conditions, targets)
    asked = [study.set_hashes(condition) for condition in conditions]
    replicates = replicates_of(conditions)
    scored = _scored(committed)
    if not study.new_code:
        _refuse_changed_code(conditions, scored, manifests)
    done = _done(study, conditions, asked, replicates, scored, manifests)
    skipped = frozenset() if retry else _with_later(replicates, failed, done)
    signatures = [signature(condition, study.sets) for condition in conditions]
    groups = grouped((signatures[replicate.condition], index) for index, replicate in enumerate(replicates))

    gone = done | skipped

    def cut(name: str, part: Part | None, members: Sequence[int], size: int) -> list[tuple[PlannedPack, bool]]:
        """The packs of this size that have missing replicates, and whether all of theirs are missing."""
        found = []
        for first in range(0, len(members), size):
            chunk = members[first : first + size]
            missing = [index for index in chunk if replicates[index].key not in gone]
            if missing:
                sets = len(asked[replicates[missing[0]].condition])
                pack = _pack(replicates, missing, name, sets, numerics, "" if part is None else part.kind)
                found.append((pack, len(missing) == len(chunk)))
        return found

    whole: list[PlannedPack] = []
    partial: list[PlannedPack] = []
    for name, everyone in groups.items():
        for part, members in _shared_out(everyone, (parts or {}).get(name)):
            size = _size(study, sizes, name) if part is None else part.size
            cuts = [cut(name, part, members, min(size, -(-len(members) // (slots if part is None else part.slots))))]
            if part is None and kept and name in kept:
                cuts.append(cut(name, part, members, kept[name]))
            chosen = next((each for each in cuts if any(pack.id in checkpoints for pack, _ in each)), cuts[0])
            for pack, is_whole in chosen:
                (whole if is_whole else partial).append(pack)
    packs = _split(partial, slots - len(whole), frozenset(checkpoints), replicates, len(study.sets), numerics) + whole
    packs.sort(key=lambda pack: pack.replicates[0])
    return Plan(study, replicates, tuple(packs), done, skipped, parts or {})


def remaining(planned: Plan, committed: pa.Table, numerics: Options, manifests: Sequence[Manifest]) -> Plan:
    """What is left of a plan that was made elsewhere or earlier; the arguments are those of `plan`.

    Packs that lost nobody keep their ids. StudyError where an evaluation set was redefined or exchanged.
    """
    study = planned.study
    asked = [study.set_hashes(condition) for condition in study.conditions]
    done = _done(study, study.conditions, asked, planned.replicates, _scored(committed), manifests)
    packs = []
    for pack in planned.packs:
        missing = [index for index in pack.replicates if planned.replicates[index].key not in done]
        if len(missing) == len(pack.replicates):
            packs.append(pack)
        elif missing:
            packs.append(_pack(planned.replicates, missing, pack.signature, len(study.sets), numerics, pack.kind))
    return replace(planned, packs=tuple(packs), done=done)


def _done(
    study: Study,
    conditions: Sequence[Condition],
    asked: Sequence[Mapping[str, str]],
    replicates: Sequence[PlannedReplicate],
    scored: Mapping[str, Sequence[frozenset[str]]],
    manifests: Sequence[Manifest],
) -> frozenset[str]:
    """The keys with rows for every evaluation set that is asked. StudyError where a set was redefined or exchanged."""
    _refuse_redefined(study, conditions, asked, scored, manifests)
    _refuse_exchanged(conditions, asked, replicates, scored, manifests)
    return frozenset(
        replicate.key
        for replicate in replicates
        if any(sets.issuperset(asked[replicate.condition].values()) for sets in scored.get(replicate.key, ()))
    )


def replicates_of(conditions: Sequence[Condition]) -> tuple[PlannedReplicate, ...]:
    """Every replicate in study order."""
    out = []
    for index, condition in enumerate(conditions):
        out += [
            PlannedReplicate(key, index, init, data, condition.stage, parent)
            for (key, parent), (init, data) in zip(keys(condition), condition.seeds, strict=True)
        ]
    return tuple(out)


def _with_later(replicates: Sequence[PlannedReplicate], failed: Collection[str], done: Collection[str]) -> frozenset[str]:
    """The failed keys, and those of later stages that can't begin without them."""
    left: set[str] = set()
    for replicate in replicates:  # a stage stands after the one before it
        if replicate.key not in done and (replicate.key in failed or replicate.parent in left):
            left.add(replicate.key)
    return frozenset(left)


def shape(signature: str, kind: str) -> str:
    """The name under which a rate is measured: the signature, after the kind of slot where there are several."""
    return f"{kind} {signature}" if kind else signature


def numerics_on(numerics: Options, kind: str) -> Options:
    """The planned numerics of a pack for a kind of slot, whose name begins with its device."""
    return {**numerics, "device": kind.partition(" ")[0]} if kind else numerics


def signature(condition: Condition, sets: Sequence[EvaluationSet] = ()) -> str:
    """Canonical JSON of what all replicates of a pack share: the configuration without what may be a vector over them.

    Of a vector that turns a part of the step on, only whether it is zero remains; of a task's probabilities, only the number of positions K
    that are computed at once, for its own strings and for every evaluation set.
    """
    config = condition.config()
    if condition.experiment is not None:
        return canonical(config)
    train, penalty = condition.train, condition.train.sharpen
    loose_training = (*VECTORS, "sharpen", "consistency", "rev")  # the revision of a training comes of its schedule, a vector
    shared = {name: value for name, value in config["train"].items() if name not in loose_training}
    shared |= {name: "on" for name in SWITCHES if getattr(train, name)}
    if penalty is not None and penalty.weight:
        shared["sharpen"] = {"kind": penalty.kind, "layers": None if penalty.layers is None else list(penalty.layers)}
    if train.consistency is not None and train.consistency.weight:
        shared["consistency"] = "on"
    loose = condition.model.vectors
    model = {name: value for name, value in config["model"].items() if name not in loose}
    model |= {name: "on" for name in loose if getattr(condition.model, name)}
    scored = [[test.name, test.sequences, test.every, _shape(test.task(condition.task))] for test in sets]
    later: Tree = {"stages": [condition.stage, condition.stages[-1]]} if condition.stages else {}
    if spans_of(condition) and (parent := parent_of(condition)) is not None:
        later["teacher"] = parent.config()["model"]
    return canonical(config | {"train": shared, "model": model, "task": _shape(condition.task), "sets": scored} | later)


def _shape(task: Task) -> Tree:
    """The fields of a task that decide the shapes of its batches."""
    loose = task.vectors
    fields = {name: value for name, value in describe(task, name_of(task)).items() if name not in loose}
    return fields | {"positions": task.scored_positions()}


def pack_id(keys: Collection[str], sets: int, numerics: Options, stage: int = 0) -> str:
    """The id of a pack. More evaluation sets sort first, so that "the smallest pack id wins" prefers the row that was scored on more."""
    if not 0 <= sets <= 255:
        raise StudyError(f"{sets} evaluation sets are more than the 255 that a pack can score: split the study")
    content: Tree = {"keys": sorted(keys), "numerics": dict(numerics)}
    return f"{255 - sets:02x}-{digest(content | ({'stage': stage} if stage else {}), 16)}"


def sets_of(pack_id: str) -> int:
    """On how many evaluation sets a pack with this id is scored."""
    return 255 - int(pack_id[:2], 16)


def _limited(conditions: Sequence[Condition], targets: Mapping[str, int] | None) -> list[Condition]:
    """Conditions with the first seeds that `targets` asks for; one without a target keeps all."""
    names, targets = [condition.name for condition in conditions], targets or {}
    for name in targets:
        if name not in names:
            raise ValueError(f"a target names the condition {name!r}; conditions: {', '.join(names)}{nearest(name, names)}")
    return [replace(condition, seeds=condition.seeds[: targets.get(condition.name)]) for condition in conditions]


def _scored(committed: pa.Table | None) -> dict[str, list[frozenset[str]]]:
    """{key: the hashes of the sets of each of its rows}."""
    out: dict[str, list[frozenset[str]]] = {}
    if committed is not None:
        for row in committed.select(["key", "stage", "sets"]).to_pylist():
            out.setdefault(row["key"], []).append(frozenset(row["sets"]))
    return out


def _refuse_redefined(
    study: Study,
    conditions: Sequence[Condition],
    asked: Sequence[Mapping[str, str]],
    scored: Mapping[str, Sequence[frozenset[str]]],
    manifests: Sequence[Manifest],
) -> None:
    """StudyError where a committed set of a task now has another hash under its name, or another name for its hash."""
    committed = {set_hash for rows in scored.values() for row in rows for set_hash in row}
    trained = [(condition, sets) for condition, sets in zip(conditions, asked, strict=True) if condition.experiment is None]
    now = {canonical(condition.config()["task"]): sets for condition, sets in trained}
    for manifest in manifests:
        for condition in manifest["conditions"]:
            if "task" not in condition["config"]:
                continue
            sets = now.get(canonical(condition["config"]["task"]), {})
            for name, old in condition["sets"].items():
                if old["hash"] not in committed:
                    continue
                if sets.get(name, old["hash"]) != old["hash"]:
                    raise StudyError(
                        f"the evaluation set {name!r} of the study {study.name} is {canonical(study.set_entries()[name])}, and rows "
                        f"committed in this store were scored on {canonical(manifest['sets'][name])} under that name: give the "
                        "new set another name, or use another store"
                    )
                renamed = [new for new, digits in sets.items() if digits == old["hash"] and new != name]
                if renamed:
                    raise StudyError(
                        f"the evaluation set {renamed[0]!r} of the study {study.name} is committed in this store as {name!r}: "
                        "call it that, or use another store"
                    )


def _refuse_changed_code(
    conditions: Sequence[Condition], committed_keys: Collection[str], manifests: Sequence[Manifest]
) -> None:
    """StudyError where a condition has committed replicates that ran with other code of the person's own.

    It is allowed if an earlier plan has the condition with the present code too: then the person has said that it is meant.
    """
    planned = {canonical(condition["config"]) for manifest in manifests for condition in manifest["conditions"]}
    new = [condition for condition in conditions if condition.code is not None and canonical(condition.config()) not in planned]
    now = {canonical(_codeless(condition.config())): condition for condition in new}
    if not now:
        return
    for manifest in manifests:
        committed_conditions = {index for key, index, *_ in manifest["replicates"] if key in committed_keys}
        for index in sorted(committed_conditions):
            config = manifest["conditions"][index]["config"]
            condition = now.get(canonical(_codeless(config)))
            if condition is not None and condition.code is not None and config.get("code") != condition.code:
                before = config["code"][:12] if "code" in config else "of a version that did not record it"
                raise StudyError(
                    f"condition {condition.name} has committed replicates that ran with the code {before}, and the code is now "
                    f"{condition.code[:12]}: bring the files back, use another store or name, or pass --new-code, which runs all of its "
                    "replicates again and leaves the old ones in the store and out of the report"
                )


def _codeless(config: Options) -> Tree:
    return {name: value for name, value in config.items() if name != "code"}


def _refuse_exchanged(
    conditions: Sequence[Condition],
    asked: Sequence[Mapping[str, str]],
    replicates: Sequence[PlannedReplicate],
    scored: Mapping[str, Sequence[frozenset[str]]],
    manifests: Sequence[Manifest],
) -> None:
    """StudyError where a set of committed keys is taken away while another is added: no row would then hold both."""
    names = {
        entry["hash"]: name
        for manifest in manifests
        for condition in manifest["conditions"]
        for name, entry in condition["sets"].items()
    }
    for replicate in replicates:
        wanted = asked[replicate.condition]
        rows = scored.get(replicate.key, [])
        if rows and not any(row <= set(wanted.values()) or row >= set(wanted.values()) for row in rows):
            gone = sorted(names.get(digits, digits) for digits in rows[0] - set(wanted.values()))
            new = sorted(name for name, digits in wanted.items() if digits not in rows[0])
            raise StudyError(
                f"condition {conditions[replicate.condition].name} is committed with the evaluation set{'s'[: len(gone) > 1]} "
                f"{', '.join(gone)}, which the study no longer has, and now asks for {', '.join(new)}: keep the old beside the new, "
                "or use another store"
            )


def _size(study: Study, sizes: int | Mapping[str, int], name: str) -> int:
    if study.pack_size is not None:
        return study.pack_size
    if isinstance(sizes, int):
        return sizes
    if name not in sizes:
        raise ValueError(f"no pack size is known for {name}: give pack.size or probe it")
    return sizes[name]


def _shared_out(members: list[int], parts: Sequence[Part] | None) -> list[tuple[Part | None, list[int]]]:
    """The replicates of a signature by kind, in study order, in proportion to the rates; whole numbers by the largest remainder."""
    if not parts:
        return [(None, members)]
    exact = [len(members) * part.rate / sum(other.rate for other in parts) for part in parts]
    counts = [int(share) for share in exact]
    by_remainder = sorted(range(len(parts)), key=lambda index: counts[index] - exact[index])
    for index in by_remainder[: len(members) - sum(counts)]:
        counts[index] += 1
    ends = list(itertools.accumulate(counts))
    return [(part, members[end - count : end]) for part, count, end in zip(parts, counts, ends, strict=True) if count]


def _pack(
    replicates: Sequence[PlannedReplicate],
    members: Sequence[int],
    name: str,
    sets: int,
    numerics: Options,
    kind: str,
) -> PlannedPack:
    keys_of_pack, stage = [replicates[index].key for index in members], replicates[members[0]].stage
    return PlannedPack(pack_id(keys_of_pack, sets, numerics_on(numerics, kind), stage), stage, tuple(members), name, kind)


def _split(
    packs: list[PlannedPack],
    slots: int,
    checkpoints: frozenset[str],
    replicates: Sequence[PlannedReplicate],
    sets: int,
    numerics: Options,
) -> list[PlannedPack]:
    """Halve the largest of `packs`, which had lost members anyway, until no slot is idle; one with a checkpoint stays whole."""
    packs = list(packs)
    while len(packs) < slots:
        free = [pack for pack in packs if pack.id not in checkpoints and len(pack.replicates) > 1]
        if not free:
            break
        largest = max(free, key=lambda pack: len(pack.replicates))
        packs.remove(largest)
        half = -(-len(largest.replicates) // 2)
        for members in (largest.replicates[:half], largest.replicates[half:]):
            packs.append(_pack(replicates, members, largest.signature, sets, numerics, largest.kind))
    return packs
