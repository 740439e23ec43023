"""R4: the best checkpoint of (2, T) distillation against the teacher's L_robust at it (Panigrahi et al. 2025).

Rows are those of `manyseeds probe STORE --probe ngrams` of the teacher's kept steps, every checkpoint of the sweep among them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from results.claims.claim import NOT_RUN, TOO_FEW, Claim, Finding, Part, Terms, decide_all, settle
from results.claims.compare import between
from results.claims.distillation.ideal import beside
from results.claims.distillation.phases import phases
from results.claims.distillation.strategies import ONE_SHOT, TWO, first_checkpoint, strategy
from results.claims.distillation.students import grammars, most_accurate, teacher_of
from results.claims.evidence import Condition, Evidence, Seeds
from results.claims.requirements import gate, in_distribution_set, require, settle_unless_probed
from results.grouping import grouped
from results.rows.looks import series
from results.rows.summary import of_replicates
from results.statistics.intervals import CONFIDENCE, quantile, quantile_interval

PEAK = "robust n=3 tv"

Values = Mapping[str, Mapping[int, Mapping[str, float]]]  # by key, step and item


@dataclass(frozen=True)
class Sweep:
    """A sweep of (2, T) students. students: the conditions of every T, by the step of the first checkpoint, the last one included."""

    teacher: Condition
    test: str
    students: Mapping[int, Sequence[Condition]]

    def accuracy(self) -> dict[Seeds, dict[int, float]]:
        """Accuracy at the best T by seeds and checkpoint, on the reported set as in the paper, of seeds with all checkpoints."""
        best = {step: most_accurate(members, self.test).accuracy_by_seeds(self.test) for step, members in self.students.items()}
        common = set.intersection(*(set(by_seed) for by_seed in best.values()))
        return {seeds: {step: by_seed[seeds] for step, by_seed in best.items()} for seeds in sorted(common)}


def sweep(evidence: Evidence, needs: int) -> Sweep:
    """The (2, T) sweep of a study; settles the claim where there is none, or it is not complete."""
    test = in_distribution_set(evidence)
    compared = [condition for condition in grammars(evidence) if strategy(condition.settings) == TWO]
    common = {_apart(student) for student in compared}
    if len(common) > 1:
        settle(NOT_RUN, "the students of the sweep differ in more than their checkpoints")
    # the last checkpoint alone counts at the best of its temperatures
    common = {_apart(student, hot=True) for student in compared}
    one_shot = [condition for condition in grammars(evidence) if strategy(condition.settings) == ONE_SHOT]
    compared += [condition for condition in one_shot if _apart(condition, hot=True) in common]
    students = grouped((step, student) for student in compared if (step := _first_step(evidence, student)) is not None)
    if len(students) < 3 or all(strategy(student.settings) == TWO for student in compared):
        settle(
            NOT_RUN,
            "the claim asks for (2, T) students of two checkpoints or more, given by their steps, and for a one-shot student",
        )
    teacher = teacher_of(evidence, compared[0])
    require([teacher, *compared], [test], needs)
    return Sweep(teacher, test, dict(sorted(students.items())))


def _first_step(evidence: Evidence, student: Condition) -> int | None:
    """The teacher's step that a student begins with: of a one-shot student the last one."""
    if strategy(student.settings) == TWO:
        return first_checkpoint(student.settings)
    return teacher_of(evidence, student).settings["train.steps"]


def _apart(condition: Condition, hot: bool = False) -> str:
    """A student's settings without its checkpoints, as text; hot: without their temperature too."""
    left_out = ("stage.teacher.", "stage.temperature") if hot else ("stage.teacher.",)
    return str(sorted((name, str(value)) for name, value in condition.settings.items() if not name.startswith(left_out)))


def best_where_robust_peaks(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Compare by seed the checkpoint with the largest L_robust with each of the others, and the last alone, in turn.

    It may be short of another by `value` at most, and must be better than the last alone by more than that: where all checkpoints
    are as good, none is the best. It is not compared with the best student of each seed: noise decides which student that is.
    """
    checkpoints = sweep(evidence, needs)
    rises = gate_phases(evidence, checkpoints.teacher, terms.gate, needs)
    values = probed(evidence, [checkpoints.teacher], "ngrams", needs)
    accuracy, peaks = checkpoints.accuracy(), []
    gains: dict[int, list[float]] = {step: [] for step in checkpoints.students}
    for replicate in checkpoints.teacher.replicates:
        if replicate.key not in values or replicate.seeds not in accuracy:
            continue
        robust = {step: items[PEAK] for step, items in values[replicate.key].items()}
        missing = [step for step in checkpoints.students if step not in robust]
        if missing:
            settle(NOT_RUN, f"the teacher has no ngrams rows at step {missing[0]}, a checkpoint of the sweep")
        chosen, by_checkpoint = max(checkpoints.students, key=lambda step: robust[step]), accuracy[replicate.seeds]
        peaks.append(max(robust, key=lambda step: robust[step]))
        for step, other in by_checkpoint.items():
            gains[step].append(by_checkpoint[chosen] - other)
    if len(peaks) < needs:
        settle(TOO_FEW, f"{len(peaks)} replicates have all numbers; the claim needs {needs}")
    compared = [_gain(step, gains[step], step == max(gains), terms.value, len(gains)) for step in gains]
    best = {step: quantile([by_step[step] for by_step in accuracy.values()], 0.5) for step in checkpoints.students}
    shown = ", ".join(f"{step}: {value:.3f}" for step, value in best.items())
    return decide_all(
        compared,
        f"L_robust of 3-grams peaks at steps {min(peaks)} to {max(peaks)}; the rapid phase is at steps {rises}; median accuracy by first "
        f"checkpoint {shown}; the one at the peak gains, in the median seed, ",
        f"the checkpoint with the largest L_robust may be short of another by {terms.value:g} at most, and must be better than the "
        "last alone by more than that; refuted at 5 % over all comparisons together",
        beside(checkpoints.teacher.settings),
    )


def _gain(step: int, gains: Sequence[float], last: bool, value: float, tests: int) -> Part:
    """Test how much more accurate students of the peak's checkpoint are than those of another.

    last: whether that is the last one alone. All must hold, so each is tested at 5 %; any refutes the claim, so that is tested at 5 %
    over all `tests`.
    """
    usual, strict = (quantile_interval(gains, 0.5, 1 - (1 - CONFIDENCE) / among, least=-np.inf) for among in (1, tests))
    holds = usual.low > value if last else usual.low >= -value
    fails = strict.high <= 0 if last else strict.high < -value
    text = f"{quantile(gains, 0.5):+.4f} {between(strict if fails else usual)} over {'the last alone' if last else step}"
    return Part(holds, fails, text)


def gate_phases(evidence: Evidence, teacher: Condition, share: float, needs: int) -> str:
    """Settle a claim unless three phases are visible (`results.claims.distillation.phases`) in `share` of the teachers; says
    where the rapid one is.
    """
    if evidence.curves is None:
        settle(NOT_RUN, "there are no losses on the way, so the phases of the teacher are not known")
    losses, warmup = series(evidence.curves, ("loss",)), teacher.settings["train.warmup"]
    curves = [by_metric["loss"] for by_metric in of_replicates(teacher.replicates, losses)]
    trainings = [phases(zip(curve.steps, curve.values, strict=True), warmup) for curve in curves]
    if len(trainings) < needs:
        settle(TOO_FEW, f"{len(trainings)} teachers have a curve; the claim needs {needs}")
    seen = [phase for phase in trainings if phase is not None and phase.visible]
    gate(len(seen), len(trainings), max(share, 1 / len(trainings)), "teachers show the three phases")
    begin, end = quantile([phase.begin for phase in seen], 0.5), quantile([phase.end for phase in seen], 0.5)
    return f"median {begin:.0f} to {end:.0f}, visible in {len(seen)} of {len(trainings)}"


def probed(evidence: Evidence, conditions: Sequence[Condition], probe: str, needs: int) -> Values:
    """Rows of a probe; settles the claim unless all finished replicates of the conditions have them, and `needs` of each."""
    values = evidence.measured_by_step(probe)
    for condition in conditions:
        settle_unless_probed(condition, probe, sum(replicate.key in values for replicate in condition.finished), needs)
    return values


R4 = Claim(
    "PD-R4",
    "The best checkpoint of (2, T) distillation is where the teacher's L_robust of 3-grams peaks.",
    "Panigrahi et al. 2025; thesis, figure 4.7: .925 at the peak, step 1000, against .919 at best elsewhere",
    "accuracy that the checkpoint at the peak may be short of another",
    10,
    "10 replicates: that it is, where it is best by 0.04 and single students of a checkpoint have a standard deviation of 0.015",
    best_where_robust_peaks,
    "distillation/p14",
    of_share=True,
)
