"""Which checkpoint of its teacher a student learns from at each step; no weights are touched here.

    teacher: {checkpoints: [{at: {accuracy: 0.75, every: 1000}, steps: 10000}, {at: last}]}

Panigrahi et al. 2025, section 4.2 of the thesis: (C, D)-progressive (definition 21), (N, T)-progressive (definition 22), and equal
splits of the student's horizon or of κ times the teacher's.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from harness.study.config import nearest
from harness.study.limits import MOST_SEQUENCES
from results.errors import StudyError
from results.rows.plural import counted


@dataclass(frozen=True)
class SelectionRule:
    """A rule that selects a checkpoint: `plus` steps on from the first of the steps `every`, 2·every, … with at least this accuracy.

    accuracy: share of scored positions that the teacher answers right on `sequences` strings of its own task; they are drawn for this
    alone, so no reported set is looked at. plus: a multiple of `every`, negative for an earlier checkpoint.
    """

    accuracy: float = 0.75
    every: int = 0
    plus: int = 0
    sequences: int = 1000

    def __post_init__(self) -> None:
        if not 0 < self.accuracy <= 1:
            raise StudyError(f"at.accuracy = {self.accuracy:g} must be a share above 0, at most 1")
        if self.every < 1:
            raise StudyError("at.every is missing: the distance in steps of the teacher's checkpoints that are looked at")
        if self.plus % self.every:
            raise StudyError(f"at.plus = {self.plus} must be a multiple of at.every = {self.every}: no other steps are kept")
        if not 1 <= self.sequences <= MOST_SEQUENCES:
            raise StudyError(f"at.sequences = {self.sequences} must be from 1 to {MOST_SEQUENCES:,}")

    def grid(self, horizon: int) -> range:
        """The steps at which a teacher of `horizon` steps is looked at."""
        return range(self.every, horizon + 1, self.every)

    def steps_in_words(self, horizon: int) -> str:
        """These steps, such as 2, 4 or 5, 10, … 60."""
        steps = [str(step) for step in self.grid(horizon)]
        return ", ".join(steps if len(steps) < 4 else [*steps[:2], f"… {steps[-1]}"])


@dataclass(frozen=True)
class Checkpoint:
    """One checkpoint of a teacher. at: its step, its `last`, or a rule; steps: how long a student stays with it, null to the end."""

    at: int | str | SelectionRule = "last"
    steps: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.at, str) and self.at != "last":
            raise StudyError(
                f"at = {self.at!r} must be a step, last, or a rule such as {{accuracy: 0.75, every: 1000}}"
                f"{nearest(self.at, ('last',))}"
            )
        if isinstance(self.at, int) and self.at < 0:
            raise StudyError(f"at = {self.at} must be a step of the teacher, 0 or more")
        if self.steps is not None and self.steps < 1:
            raise StudyError(f"steps = {self.steps} must be at least 1")


@dataclass(frozen=True)
class Teacher:
    """The teacher of a stage and its checkpoints; by default each student's own teacher, at its last step.

    seed: init and data seed of the one replicate that teaches all, null for each student's own. checkpoints: one after another. shots: N
    checkpoints, at 1/N, 2/N, … 1 of the teacher's steps. Each of these teaches for `steps` of the student's steps; or for 1/N of `kappa`
    times the teacher's steps, as far as the student gets; or, without either, for 1/N of the student's steps. The last one stays to the
    end.
    """

    seed: int | None = None
    checkpoints: tuple[Checkpoint, ...] = ()
    shots: int = 1
    steps: int | None = None
    kappa: float | None = None

    def __post_init__(self) -> None:
        if self.seed is not None and not 0 <= self.seed < 2**63:
            raise StudyError(f"teacher.seed = {self.seed} must be a whole number from 0 to 2^63 - 1")
        if self.shots < 1:
            raise StudyError(f"teacher.shots = {self.shots} must be at least 1, the number of checkpoints")
        if self.steps is not None and self.steps < 1:
            raise StudyError(f"teacher.steps = {self.steps} must be at least 1")
        if self.kappa is not None and not 0 < self.kappa <= 1:
            raise StudyError(f"teacher.kappa = {self.kappa:g} must be above 0, at most 1")
        if self.checkpoints and (self.shots, self.steps, self.kappa) != (1, None, None):
            raise StudyError("teacher.checkpoints names the checkpoints one by one: leave out shots, steps and kappa")
        if self.steps is not None and self.kappa is not None:
            raise StudyError("teacher.steps and teacher.kappa both say how long a checkpoint stays: leave one of them out")
        if self.shots == 1 and (self.steps, self.kappa) != (None, None):
            raise StudyError("teacher.steps and teacher.kappa apply only to several checkpoints: write teacher.shots")
        for checkpoint in self.checkpoints[:-1]:
            if checkpoint.steps is None:
                raise StudyError("teacher.checkpoints: each but the last needs its steps, such as {at: 10000, steps: 500}")
        if self.checkpoints and self.checkpoints[-1].steps is not None:
            raise StudyError("teacher.checkpoints: the last stays to the student's end, so leave out its steps")


@dataclass(frozen=True)
class Span:
    """From its step `begin` on, counted from 1, a student learns from the teacher's step `at`, or from the one that a rule selects."""

    begin: int
    at: int | SelectionRule


def spans(teacher: Teacher, horizon: int, steps: int) -> tuple[Span, ...]:
    """The spans of a student of `steps` steps with a teacher of `horizon`, in order, the first at step 1.

    ValueError for a step beyond the teacher's horizon and for a checkpoint that the student never gets to.
    """
    if teacher.checkpoints:
        plan, begin = [], 1
        for checkpoint in teacher.checkpoints:
            _refuse_beyond(checkpoint.at, horizon)
            plan.append(Span(begin, horizon if isinstance(checkpoint.at, str) else checkpoint.at))
            begin += checkpoint.steps or 0
        if plan[-1].begin > steps:
            raise StudyError(
                f"teacher.checkpoints: the last begins at step {plan[-1].begin} of a student of {steps} steps: raise train.steps or "
                "shorten those before it"
            )
        return tuple(plan)
    count = teacher.shots
    if count > min(horizon, steps):
        raise StudyError(f"teacher.shots = {count} is more than the {min(horizon, steps)} steps of the shorter training")
    if teacher.steps is not None:
        if (count - 1) * teacher.steps >= steps:
            raise StudyError(
                f"teacher: {counted(count - 1, 'checkpoint')} for {teacher.steps} steps each leave{'s' * (count == 2)} no step "
                f"for the last of a student of {steps} steps"
            )
        length = Fraction(teacher.steps)
    elif teacher.kappa is not None:
        length = Fraction(repr(teacher.kappa)) * horizon / count
    else:
        length = Fraction(steps, count)
    shots = [Span(int(index * length) + 1, (index + 1) * horizon // count) for index in range(count)]
    # a checkpoint that begins where the next one does never teaches
    distinct = [span for span, later in pairwise(shots) if span.begin < later.begin]
    return tuple(span for span in [*distinct, shots[-1]] if span.begin <= steps)


def _refuse_beyond(at: int | str | SelectionRule, horizon: int) -> None:
    if isinstance(at, int) and at > horizon:
        raise StudyError(f"teacher.checkpoints: at = {at} is beyond the teacher's {horizon} steps")
    if isinstance(at, SelectionRule) and at.every > horizon:
        raise StudyError(f"teacher.checkpoints: at.every = {at.every} is beyond the teacher's {horizon} steps")
    if isinstance(at, SelectionRule) and abs(at.plus) >= len(at.grid(horizon)) * at.every:
        raise StudyError(
            f"teacher.checkpoints: at.plus = {at.plus} leads out of the teacher's {horizon} steps from any of the steps "
            f"{at.steps_in_words(horizon)}"
        )


def kept(plan: Sequence[Span], horizon: int) -> frozenset[int]:
    """The steps whose weights the spans may ask for, with the last one, which tells whether the teacher diverged."""
    steps = {horizon}
    for span in plan:
        steps.update(span.at.grid(horizon) if isinstance(span.at, SelectionRule) else (span.at,))
    return frozenset(steps)


def at(plan: Sequence[Span], step: int) -> int:
    """The number of the span that a student's `step`, counted from 1, lies in."""
    return bisect_right([span.begin for span in plan], step) - 1
