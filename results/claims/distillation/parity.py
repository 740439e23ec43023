"""PD-R2 and PD-R3: perceptrons that learn parities from a teacher's checkpoints, by the steps until they are right (Panigrahi et al. 2025).

Students of one seed begin alike, read the same strings and have the same teacher, so they are compared pair by pair. A student of labels
shares neither weights nor strings with them (docs/reference/stages.md) and is compared unpaired. Steps beyond the students' horizon
count as never: infinity, which comes last.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from results.claims.claim import NOT_RUN, PRECONDITION, Claim, Finding, Part, Terms, decide_all, settle
from results.claims.compare import higher_by_pairs, probability
from results.claims.distillation import strategies
from results.claims.distillation.strategies import LABELS, ONE_SHOT, PROGRESSIVE, TWO
from results.claims.distillation.students import BySeed, median, teacher_of
from results.claims.evidence import Condition, Evidence, Seeds
from results.claims.requirements import common_seeds, first_set, require, require_each
from results.rows.accuracy_curves import Look, watch
from results.statistics.intervals import Interval
from results.statistics.transition import first_step
from results.statistics.unpaired import superiority

PARITIES = ("sparse_parity", "hierarchical_parity")
BEGIN, MIDDLE, END = "begin", "middle", "end"  # of the teacher's transition: the first of two checkpoints
TRANSITION = 0.75  # accuracy in the middle of a transition
GAP = 2.0  # students of labels must transition that many times as late as their teacher: else there is nothing to distil

Looks = Mapping[str, list[Look]]  # by key


@dataclass(frozen=True)
class Arms:
    """The strategies of one student, and its teacher. Of one strategy there are several where temperatures differ."""

    name: str
    teacher: Condition
    by: dict[str, list[Condition]]


def strategy(condition: Condition) -> str | None:
    """The strategy of a student, one of six; None for anything else. Of two checkpoints, the first must be given by a rule."""
    if condition.settings.get("stage.number", 1) != 1:
        return None
    kind = strategies.strategy(condition.settings)
    if kind != TWO:
        return kind
    first = condition.settings["stage.teacher.checkpoints"][0]["at"]
    if not isinstance(first, dict):
        return None
    return MIDDLE if first["plus"] == 0 else BEGIN if first["plus"] < 0 else END


def arms(evidence: Evidence, wanted: Sequence[str], needs: int) -> list[Arms]:
    """Every student that has all of these strategies, complete; settles the claim where there is none."""
    parities = [condition for condition in evidence.conditions if condition.settings.get("task.name") in PARITIES]
    groups: dict[str, Arms] = {}
    for student in parities:
        kind = strategy(student)
        if kind is None or kind == LABELS or kind not in wanted:
            continue
        teacher = teacher_of(evidence, student)
        own = [other for other in parities if strategy(other) == LABELS and _model(other) == _model(student)]
        group = groups.setdefault(
            f"{teacher.name} {_model(student)}", Arms(f"width {student.settings['model.width']}", teacher, {LABELS: own})
        )
        group.by.setdefault(kind, []).append(student)
    complete = [group for group in groups.values() if all(group.by.get(kind) for kind in wanted)]
    if not complete:
        settle(NOT_RUN, f"no student of parity has all of {', '.join(wanted)}")
    scored = first_set(evidence)
    for group in complete:
        require([group.teacher, *(one for kind in wanted for one in group.by[kind])], [scored], needs)
    return complete


def looks_of(evidence: Evidence) -> Looks:
    """The curves of the set that is scored at most steps, by key; settles the claim where none is scored on the way."""
    looks = watch(evidence.evaluations)
    if not looks:
        settle(NOT_RUN, "no set is scored on the way: give one an `every`")
    return looks


def reached(seen: Looks, condition: Condition, accuracy: float, within: float = np.inf) -> dict[Seeds, float]:
    """The step of the first look with at least this accuracy, by seeds; infinity where there is none within `within` steps.

    Replicates that have failed, or had no checkpoint to learn from, are left out.
    """
    steps = {}
    for replicate in condition.ended:
        step = first_step(seen.get(replicate.key, ()), accuracy)
        steps[replicate.seeds] = np.inf if step is None or step > within else float(step)
    return steps


def gate_gap(seen: Looks, groups: Sequence[Arms]) -> None:
    """Settle a claim unless students of labels transition GAP times as late as their teacher, by the medians."""
    for group in groups:
        teacher = median(reached(seen, group.teacher, TRANSITION))
        for labels in group.by[LABELS]:
            own, horizon = median(reached(seen, labels, TRANSITION)), labels.settings["train.steps"]
            about = f"the median transition of {group.teacher.name} is at step {said(teacher)}, that of {labels.name} at {said(own)}"
            if np.isinf(teacher) or own < GAP * teacher or horizon < GAP * teacher:
                settle(
                    PRECONDITION,
                    f"{about} of {horizon:,}; with labels it must be {GAP:g} times as late, or there is nothing to distil",
                )


def sooner(
    evidence: Evidence,
    terms: Terms,
    needs: int,
    faster: str,
    others: Sequence[str],
    temperature: float = np.inf,
    alone: float | None = None,
) -> Finding:
    """Judge whether most students of strategy `faster` reach an accuracy of `value` sooner than those of each other strategy.

    temperature: conditions of `faster` whose teacher answers at a higher one are left out. alone: the temperature at which the paper
    teaches a student of the last checkpoint alone, which then has to be among the others.
    """
    groups = arms(evidence, (LABELS, faster, *(other for other in others if other != LABELS)), needs)
    seen = looks_of(evidence)
    gate_gap(seen, groups)
    pairs = [
        (group, first, other, kind == LABELS)
        for group in groups
        for first in group.by[faster]
        if first.settings["stage.temperature"] <= temperature
        for kind in others
        for other in group.by[kind]
    ]
    if not pairs:
        settle(NOT_RUN, f"no {faster} student has a teacher at a temperature of {temperature:g} or below")
    if alone is not None and all(
        other.settings["stage.temperature"] != alone for group in groups for other in group.by[ONE_SHOT]
    ):
        settle(
            NOT_RUN,
            f"no student of the last checkpoint alone has a teacher at a temperature of {alone:g}, as the paper's has",
        )
    parts = []
    for group, first, other, apart in pairs:
        horizon = first.settings["train.steps"]
        if other.settings["train.steps"] < horizon:
            settle(NOT_RUN, f"{other.name} has fewer steps than the {horizon:,} of {first.name}: it may be right later")
        if other.settings["train.batch"] != first.settings["train.batch"]:
            settle(NOT_RUN, f"{other.name} has other batches than {first.name}, and the claim is of equal numbers of strings")
        own, theirs = (reached(seen, condition, terms.value, horizon) for condition in (first, other))
        chance, interval = later(own, theirs, not apart, needs, 1 - 0.05 / len(pairs))
        text = f"{said(median(own))} against {said(median(theirs))} of {other.name} ({probability(chance, interval)})"
        parts.append(Part(interval.low > 0.5, interval.high < 0.5, f"{group.name}: {text}"))
    return decide_all(
        parts,
        f"median steps to an accuracy of {terms.value:g}, and the probability P that {faster} needs fewer: ",
        f"the chance must lie above 1/2 in all {len(pairs)} comparisons",
    )


def later(own: BySeed, theirs: BySeed, paired: bool, needs: int, confidence: float) -> tuple[float, Interval]:
    """The chance that the second needs more steps, ties halved, and its interval. paired: compare by seeds."""
    if not paired:
        require_each(len(own), len(theirs), needs, "have ended")
        return superiority(list(own.values()), list(theirs.values()), confidence)
    common_seeds([own, theirs], needs, "are common to two students")
    return higher_by_pairs(own, theirs, confidence)


def _model(condition: Condition) -> str:
    kept = {name: value for name, value in condition.settings.items() if name.startswith(("task.", "model."))}
    return str(sorted(kept.items(), key=str))


def said(step: float) -> str:
    return "never" if np.isinf(step) else f"{step:,.0f}"


_SOURCE = "Panigrahi et al. 2025; Liu's thesis"
R2 = Claim(
    "PD-R2",
    "Of one intermediate checkpoint before the last, that in the middle of the teacher's transition makes the student right "
    "sooner than one at its beginning, one at its end, and the last alone.",
    f"{_SOURCE}, figures 4.5 right, 4.11 and 4.12",
    "accuracy that counts as right",
    10,
    "10 replicates, six comparisons: that it is, where each holds in 99.6 % of all pairs; 20: in 94 %",
    partial(sooner, faster=MIDDLE, others=(BEGIN, END, ONE_SHOT)),
    "distillation/p2",
    of_share=True,
)
R3 = Claim(
    "PD-R3",
    "A student of the teacher's checkpoints in order needs fewer strings until it is right than one of the last checkpoint, and than one "
    "of labels.",
    f"{_SOURCE}, figures 4.4 left and middle, and 4.18; theorems 22 and 23 are on two checkpoints",
    "accuracy that counts as right",
    10,
    "10 replicates, six comparisons: that it does, where each holds in 99.6 % of all pairs; 20: in 94 %",
    partial(sooner, faster=PROGRESSIVE, others=(ONE_SHOT, LABELS)),
    "distillation/p1",
    of_share=True,
)
P8 = Claim(
    "PD-P8",
    "A transformer of one checkpoint inside its teacher's transition and then the last, at a low temperature, is right sooner than one of "
    "the last alone at any temperature that was run, among them 1, and than one of labels.",
    f"{_SOURCE}, figure 4.16, and 4.17: temperatures of 0.01 and below are alike",
    "accuracy that counts as right",
    10,
    "10 replicates, three comparisons: that it is, where each holds in 99.4 % of all pairs",
    partial(sooner, faster=MIDDLE, others=(ONE_SHOT, LABELS), temperature=0.01, alone=1.0),
    "distillation/p8",
    of_share=True,
)
