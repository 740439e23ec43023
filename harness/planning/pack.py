"""What is trained in lockstep: replicates whose tensors have the same shapes, and the evaluation sets that score each."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from harness.planning.plan import Plan, PlannedPack, numerics_on, pack_id, shape
from harness.study.config import Condition, Metric, Study, Watch, keep_steps, refuse_unfit_model
from harness.study.experiment import Experiment
from harness.study.identity import canonical
from harness.study.stages import taken_from
from results.errors import StudyError
from results.plain_values import Options
from tasks.task import Task


@dataclass(frozen=True)
class Replicate:
    """A replicate to be trained, later a row of `replicates`, and the evaluation sets that score it."""

    key: str
    condition: Condition
    init_seed: int
    data_seed: int
    sets: tuple["ScoredSet", ...]
    parent: str | None = None  # the key of the stage before


@dataclass(frozen=True)
class ScoredSet:
    """An evaluation set: `sequences` strings of `task`, drawn from the set's own hash, scored every `every` steps and at the end."""

    name: str
    task: Task
    sequences: int
    every: int | None
    hash: str

    def due(self, step: int, steps: int) -> bool:
        return step == steps or (self.every is not None and step % self.every == 0)


@dataclass(frozen=True)
class Pack:
    """Replicates of equal shapes; the conditions may differ in the fields that are vectors over R, and their evaluation sets with them.

    numerics: the planned ones, which the id follows from; keep: whether weights are written; keep_steps: after which steps beside the
    last; attempt counts from 1; kind: of the slot it was sized for, "" where all are of one kind, and of experiments; watch: what is
    measured on the way.
    """

    id: str
    signature: str
    replicates: tuple[Replicate, ...]
    curve_every: int
    numerics: Options
    keep: bool = False
    stage: int = 0
    attempt: int = 1
    keep_steps: tuple[int, ...] = ()
    kind: str = ""
    watch: Watch | None = None
    metrics: Mapping[str, Metric] = field(default_factory=dict)  # of experiments: what is known of them beforehand

    @property
    def experiment(self) -> Experiment | None:
        """What the pack does where it trains nothing; its replicates share it."""
        return self.replicates[0].condition.experiment

    @property
    def steps(self) -> int:
        """Training steps; for an experiment the number of replicates, or 1 where all are measured at once."""
        if self.experiment is None or self.experiment.packed:
            return self.replicates[0].condition.steps
        return len(self.replicates)

    @property
    def shape(self) -> str:
        return shape(self.signature, self.kind)

    @property
    def sets(self) -> list[tuple[ScoredSet, ...]]:
        """The evaluation sets in the study's order, each as a tuple with one per replicate; these differ in their distribution alone."""
        return list(zip(*(replicate.sets for replicate in self.replicates), strict=True))

    def part(self, replicates: tuple[Replicate, ...]) -> "Pack":
        """A pack of some of these replicates, with an id of its own."""
        keys, sets = [replicate.key for replicate in replicates], len(replicates[0].sets)
        return replace(self, id=pack_id(keys, sets, self.numerics, self.stage), replicates=replicates, attempt=1)


def resolve(plan: Plan, numerics: Options, attempts: Mapping[str, int]) -> list[Pack]:
    """The packs of a plan with their conditions and sets. attempts: failed attempts so far, by pack id."""
    study = plan.study
    sets = [scored_sets(study, condition) for condition in study.conditions]
    parents = {replicate.parent for replicate in plan.replicates}
    taken = taken_from(study.conditions)
    packs = []
    for planned in plan.packs:
        members = [plan.replicates[index] for index in planned.replicates]
        replicates = tuple(
            Replicate(m.key, study.conditions[m.condition], m.init_seed, m.data_seed, sets[m.condition], m.parent)
            for m in members
        )
        packs.append(
            Pack(
                planned.id,
                planned.signature,
                replicates,
                study.curve_every,
                numerics_on(numerics, planned.kind),
                study.keep != "none" or any(member.key in parents for member in members),
                planned.stage,
                attempts.get(planned.id, 0) + 1,
                kept_steps(plan, planned, taken),
                planned.kind,
                study.watch,
                study.metrics,
            )
        )
    return packs


def kept_steps(plan: Plan, pack: PlannedPack, taken: Mapping[str, Collection[int]]) -> tuple[int, ...]:
    """The steps after which the weights of a pack are kept beside its last: what `keep` names, and what later stages ask for.

    taken: `stages.taken_from` of the study's conditions.
    """
    conditions = {plan.replicates[index].condition for index in pack.replicates}
    asked = {step for number in conditions for step in taken.get(canonical(plan.study.conditions[number].config()), ())}
    return tuple(sorted(asked.union(keep_steps(plan.study.keep))))


def scored_sets(study: Study, condition: Condition) -> tuple[ScoredSet, ...]:
    """The evaluation sets that a condition's replicates are scored on. ValueError where its model can't be scored on one."""
    for scored in study.sets:
        try:
            refuse_unfit_model(scored.task(condition.task), condition.model)
        except StudyError as error:
            raise StudyError(f"evaluate.sets.{scored.name} of condition {condition.label}: {error}") from error
    return tuple(
        ScoredSet(
            scored.name,
            scored.task(condition.task),
            scored.sequences,
            scored.every,
            scored.hash(condition.task, study.evaluate_seed),
        )
        for scored in study.sets
    )
