"""R4: the best checkpoint of (2, T) distillation against the teacher's L_robust at it (Panigrahi et al. 2025).

Rows are those of `manyseeds probe STORE --probe ngrams` of the teacher's kept steps, every checkpoint of the sweep among them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from results.claims.claim import NOT_RUN, PRECONDITION, TOO_FEW, Claim, Finding, Terms, decide, settle
from results.claims.distillation.phases import losses, phases
from results.claims.distillation.strategies import ONE_SHOT, TWO, first_checkpoint, strategy
from results.claims.distillation.students import Seeds, grammars, majority, reported, right, teacher_of
from results.claims.evidence import Condition, Evidence
from results.claims.requirements import require
from results.rows.probe_values import by_step
from results.statistics.intervals import quantile

PEAK = "robust n=3 tv"

Values = Mapping[str, Mapping[int, Mapping[str, float]]]  # by key, step and item


@dataclass(frozen=True)
class Sweep:
    """students: by the step of the teacher's first checkpoint, the last one included, the conditions of every T."""

    teacher: Condition
    test: str
    students: Mapping[int, Sequence[Condition]]

    def accuracy(self) -> dict[Seeds, dict[int, float]]:
        """Of the best T of each checkpoint, on the reported set as in the paper, of the seeds that have all checkpoints."""
        best = {step: max((right(each, self.test) for each in members), key=_mean) for step, members in self.students.items()}
        common = set.intersection(*(set(each) for each in best.values()))
        return {seeds: {step: each[seeds] for step, each in best.items()} for seeds in sorted(common)}


def sweep(evidence: Evidence, needs: int) -> Sweep:
    """The (2, T) sweep of a study; settles the claim where there is none, or it is not complete."""
    test = reported(evidence)
    found = [each for each in grammars(evidence) if strategy(each.settings) == TWO]
    common = {_apart(each) for each in found}
    if len(common) > 1:
        settle(NOT_RUN, "the students of the sweep differ in more than their checkpoints")
    # the last checkpoint alone counts at the best of its temperatures
    common = {_apart(each, hot=True) for each in found}
    found += [each for each in grammars(evidence) if strategy(each.settings) == ONE_SHOT and _apart(each, hot=True) in common]
    students: dict[int, list[Condition]] = {}
    for each in found:
        last = teacher_of(evidence, each).settings["train.steps"]
        step = first_checkpoint(each.settings) if strategy(each.settings) == TWO else last
        if step is not None:
            students.setdefault(step, []).append(each)
    if len(students) < 3 or all(strategy(each.settings) == TWO for each in found):
        settle(
            NOT_RUN,
            "the claim asks for (2, T) students of two checkpoints or more, given by their steps, and for a one-shot student",
        )
    teacher = teacher_of(evidence, found[0])
    require([teacher, *found], [test], needs)
    return Sweep(teacher, test, dict(sorted(students.items())))


def _apart(condition: Condition, hot: bool = False) -> str:
    """What a student is apart from its checkpoints; hot: and from their temperature."""
    left_out = ("stage.teacher.", "stage.temperature") if hot else ("stage.teacher.",)
    return str(sorted((name, str(value)) for name, value in condition.settings.items() if not name.startswith(left_out)))


def best_where_robust_peaks(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """By seed: the checkpoint of the sweep with the largest L_robust is within `value` of the best one, and better than the last alone."""
    found = sweep(evidence, needs)
    rises = gate_phases(evidence, found.teacher, terms.gate, needs)
    values = probed(evidence, [found.teacher], "ngrams", needs)
    accuracy, peaks, good, short = found.accuracy(), [], [], []
    for each in found.teacher.replicates:
        seeds = each.init_seed, each.data_seed
        if each.key not in values or seeds not in accuracy:
            continue
        robust = {step: items[PEAK] for step, items in values[each.key].items()}
        missing = [step for step in found.students if step not in robust]
        if missing:
            settle(NOT_RUN, f"the teacher has no ngrams rows at step {missing[0]}, a checkpoint of the sweep")
        chosen, mine = max(found.students, key=lambda step: robust[step]), accuracy[seeds]
        peaks.append(max(robust, key=lambda step: robust[step]))
        short.append(max(mine.values()) - mine[chosen])
        good.append(1.0 if short[-1] <= terms.value and mine[chosen] > mine[max(mine)] else -1.0)
    holds, fails = majority(good, needs)
    best = {step: quantile(np.array([each[step] for each in accuracy.values()]), 0.5) for step in found.students}
    shown = ", ".join(f"{step}: {value:.3f}" for step, value in best.items())
    return decide(
        holds,
        fails,
        f"L_robust of 3-grams peaks at steps {min(peaks)} to {max(peaks)}; the rapid phase is of steps {rises}; median accuracy by first "
        f"checkpoint {shown}; that of the peak is {quantile(np.array(short), 0.5):.4f} short of the best, median of seeds; "
        f"{sum(each > 0 for each in good)} of {len(good)} replicates hold",
        f"in more than half of all replicates the checkpoint with the largest L_robust must be within {terms.value:g} of the best one "
        "and better than the last alone",
    )


def gate_phases(evidence: Evidence, teacher: Condition, share: float, needs: int) -> str:
    """Settles a claim unless three phases are visible (`results.claims.distillation.phases`) in `share` of the teachers; says
    where the rapid one is.
    """
    if evidence.curves is None:
        settle(NOT_RUN, "there are no losses on the way, so the phases of the teacher are not known")
    curves, warmup = losses(evidence.curves), teacher.settings["train.warmup"]
    found = [phases(curves[each.key], warmup) for each in teacher.replicates if each.key in curves]
    if len(found) < needs:
        settle(TOO_FEW, f"{len(found)} teachers have a curve, and the claim needs {needs}")
    seen = [each for each in found if each is not None and each.visible]
    if len(seen) < share * len(found) or not seen:
        settle(
            PRECONDITION,
            f"the three phases are visible in {len(seen)} of {len(found)} teachers, and {share:.0%} must show them",
        )
    begin, end = (quantile(np.array([getattr(each, at) for each in seen]), 0.5) for at in ("begin", "end"))
    return f"median {begin:.0f} to {end:.0f}, visible in {len(seen)} of {len(found)}"


def probed(evidence: Evidence, conditions: Sequence[Condition], probe: str, needs: int) -> Values:
    """Rows of a probe; settles the claim unless all finished replicates of the conditions have them, and `needs` of each."""
    values = {} if evidence.measured is None else by_step(evidence.measured, probe)
    for each in conditions:
        finished = [replicate.key for replicate in each.replicates if replicate.status == "finished"]
        have = sum(key in values for key in finished)
        if not have:
            settle(
                NOT_RUN, f"{each.name} has no {probe} rows: manyseeds probe STORE --probe {probe}, with keep: all in its study"
            )
        if have < max(needs, len(finished)):
            settle(
                TOO_FEW,
                f"{have} of {len(finished)} finished replicates of {each.name} have {probe} rows, and the claim needs {needs} and all",
            )
    return values


def _mean(values: Mapping[Seeds, float]) -> float:
    return fmean(values.values())


R4 = Claim(
    "PD-R4",
    "The best checkpoint of (2, T) distillation is where the teacher's L_robust of 3-grams peaks.",
    "Panigrahi et al. 2025; thesis, figure 4.7: .925 at the peak, step 1000, against .919 at best elsewhere",
    "accuracy that the checkpoint at the peak may be short of the best one",
    6,
    "6 replicates: that most do, where 97 % of all do",
    best_where_robust_peaks,
    "distillation/p14",
)
