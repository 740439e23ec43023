"""Students and teachers on grammars as claims compare them (Panigrahi et al. 2025): accuracy by strategy at each horizon, paired by seeds.

Strategies of one seed have the same teacher, initial weights and strings, so they are compared pair by pair; a student of labels has its
own and is compared unpaired. Of several one-shot conditions (temperatures, learning rates) the one with the best mean on the reported set
counts, as in the paper. That favours one-shot, so tests are corrected for the number of choices. The same holds for labels. The
progressive strategy has one condition for each horizon.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from results.claims.claim import NOT_RUN, TOO_FEW, settle
from results.claims.distillation.strategies import LABELS, PROGRESSIVE, strategy, teacher_config
from results.claims.evidence import Condition, Evidence, Seeds
from results.claims.requirements import gate, in_distribution_set, require
from results.statistics.intervals import CONFIDENCE, clopper_pearson, quantile

BySeed = Mapping[Seeds, float]
FREQUENT = 0.6  # accuracy; one token for all has at most 0.56 with any grammar, objective and level (tests/tasks/distillation/test_pcfg.py)


@dataclass(frozen=True)
class Cell:
    """The strategies of one student on one task at one horizon.

    teacher: of the students. test: the reported set. choices: how many conditions each strategy's one was chosen from.
    """

    level: int
    horizon: int
    arms: Mapping[str, Condition]
    teacher: Condition
    test: str
    choices: Mapping[str, int]

    def accuracy(self, kind: str) -> BySeed:
        """Accuracies of a strategy, by seeds."""
        return self.arms[kind].accuracy_by_seeds(self.test)

    def gain(self, first: str, second: str) -> BySeed:
        """How much more accurate the first strategy is than the second."""
        one, other = (self.accuracy(kind) for kind in (first, second))
        return {seeds: one[seeds] - other[seeds] for seeds in one if seeds in other}


def grammars(evidence: Evidence) -> list[Condition]:
    return evidence.of_task("pcfg")


def teacher_of(evidence: Evidence, student: Condition) -> Condition:
    """The condition of a student's teacher, its previous stage. Settles a claim where the study has none."""
    config = teacher_config(student.config)
    teacher = next((condition for condition in evidence.conditions if condition.config == config), None)
    if teacher is None:
        settle(NOT_RUN, f"the teacher of {student.name} is no condition of this study")
    return teacher


def cells(evidence: Evidence, wanted: Sequence[str], needs: int) -> list[Cell]:
    """Every student, task and horizon that has all of these strategies, complete; settles the claim where there is none."""
    test = in_distribution_set(evidence)
    groups: dict[tuple[Any, int], dict[str, list[Condition]]] = {}
    for condition in grammars(evidence):
        kind = strategy(condition.settings)
        if kind is not None and kind in wanted:
            own = tuple((k, str(v)) for k, v in sorted(condition.settings.items()) if k.startswith(("task.", "model.")))
            groups.setdefault((own, condition.settings["train.steps"]), {}).setdefault(kind, []).append(condition)
    complete = []
    for (_, horizon), arms in sorted(groups.items(), key=lambda item: item[0][1]):
        if any(kind not in arms for kind in wanted):
            continue
        if len(arms.get(PROGRESSIVE, [])) > 1:
            settle(NOT_RUN, f"at {horizon} steps there are several progressive conditions, and the claim is of one")
        require([member for members in arms.values() for member in members], [test], needs)
        best = {kind: most_accurate(members, test) for kind, members in arms.items()}
        student = next(arm for kind, arm in best.items() if kind != LABELS)
        choices = {kind: len(members) for kind, members in arms.items()}
        complete.append(Cell(student.settings["task.level"], horizon, best, teacher_of(evidence, student), test, choices))
    if not complete:
        settle(NOT_RUN, f"no student has all of {', '.join(wanted)} at one horizon")
    require(list({cell.teacher.name: cell.teacher for cell in complete}.values()), [test], needs)
    return complete


def most_accurate(conditions: Sequence[Condition], test: str) -> Condition:
    """The condition whose replicates are most accurate on average."""
    return max(conditions, key=lambda condition: fmean(condition.accuracy_by_seeds(test).values()))


def gate_teacher(complete: Sequence[Cell], share: float) -> None:
    """Settle a claim unless in `share` of the replicates the teacher has learned, and is more accurate than every student of labels.

    It has learned where its accuracy is above FREQUENT, which no model reaches that gives one token for all.
    """
    for teacher in {cell.teacher.name: cell.teacher for cell in complete}.values():
        values = teacher.accuracy_by_seeds(complete[0].test).values()
        learned = sum(value > FREQUENT for value in values)
        gate(learned, len(values), share, f"replicates of {teacher.name} are right on more than {FREQUENT:.0%}", "must be")
    better: dict[Seeds, bool] = {}
    for cell in complete:
        taught = cell.teacher.accuracy_by_seeds(cell.test)
        for seeds, value in cell.accuracy(LABELS).items():
            better[seeds] = better.get(seeds, True) and taught.get(seeds, 0.0) > value
    what = "teachers are more accurate than the students of labels with their seeds"
    gate(sum(better.values()), len(better), share, what, "must be, or there is nothing to distil")


def majority(values: Sequence[float], needs: int, tests: int = 1, share: float = 0.5) -> tuple[bool, bool]:
    """Whether more than `share` of the replicates have a positive value, and whether more than the rest have a negative one.

    Clopper and Pearson's intervals of 95 %; where a claim fails by any of several `tests`, 95 % are of all of them together.
    """
    if len(values) < needs:
        settle(TOO_FEW, f"{len(values)} replicates have all numbers; the claim needs {needs}")
    positive, negative = (sum(sign * value > 0 for value in values) for sign in (1, -1))
    fails = clopper_pearson(negative, len(values), 1 - (1 - CONFIDENCE) / tests).low > 1 - share
    return clopper_pearson(positive, len(values)).low > share, fails


def together(rows: Sequence[BySeed]) -> dict[Seeds, float]:
    """The mean of several numbers of each seed that has all of them."""
    common = set.intersection(*(set(row) for row in rows))
    return {seeds: fmean(row[seeds] for row in rows) for seeds in sorted(common)}


def median(row: BySeed) -> float:
    return quantile(list(row.values()), 0.5)
