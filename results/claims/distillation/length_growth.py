"""PD-growth: how the strings that a student needs grow with the length d of a parity (Panigrahi et al. 2025, theorems 22 and 23)."""

import itertools
from collections.abc import Sequence

import numpy as np

from results.claims import compare
from results.claims.claim import NOT_RUN, Claim, Finding, Terms, decide, settle
from results.claims.compare import above, between
from results.claims.distillation.parity import (
    LABELS,
    MIDDLE,
    ONE_SHOT,
    PROGRESSIVE,
    Arms,
    Looks,
    arms,
    looks_of,
    reached,
    said,
)
from results.claims.distillation.students import median
from results.claims.evidence import Condition, Evidence, Seeds
from results.claims.requirements import common_seeds, gate
from results.statistics.intervals import quantile_interval
from results.statistics.survival_slope import slope

RIGHT = 0.9  # accuracy; ours, as in PD-R3
LENGTHS = 3  # a power of d needs that many lengths

Powers = dict[Seeds, float]


def grows_faster(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Compare by seed the power of d by which steps to RIGHT grow: one-shot's less that of one checkpoint inside the transition.

    At every temperature of the one, against every temperature of the other.
    """
    students = arms(evidence, (LABELS, ONE_SHOT, PROGRESSIVE, MIDDLE), needs)
    seen = looks_of(evidence)
    by_length = {_length(group): group for group in students}
    if len(by_length) < LENGTHS or len(by_length) < len(students):
        settle(
            NOT_RUN, f"the claim asks for one width of students at {LENGTHS} lengths or more, and has {len(students)} students"
        )
    if len({group.teacher.settings["task.degree"] for group in students}) > 1:
        settle(NOT_RUN, "the parities differ in more than their length")
    ladder = [by_length[length] for length in sorted(by_length)]
    _gate_teachers(seen, ladder, terms.gate)
    kinds = {kind: _alike(ladder, kind) for kind in (MIDDLE, ONE_SHOT, PROGRESSIVE, LABELS)}
    powers = {kind: [_powers(seen, members) for members in series] for kind, series in kinds.items()}
    pairs, tests = list(itertools.product(powers[MIDDLE], powers[ONE_SHOT])), []
    for middle, one_shot in pairs:
        common = common_seeds([middle, one_shot], needs, f"are right at {LENGTHS} lengths")
        gaps = [one_shot[seeds] - middle[seeds] for seeds in common]
        tests.append(quantile_interval(gaps, 0.5, 1 - 0.05 / len(pairs), least=-np.inf))
    texts = [
        f"{kind}{_at(series)}: {_steps(seen, series)}, power {compare.median(list(own.values()), least=-np.inf):.2f}"
        for kind in kinds
        for series, own in zip(kinds[kind], powers[kind], strict=True)
        if own
    ]
    return decide(
        *above(tests, terms.value),
        f"one-shot's power of d exceeds that of one checkpoint by {' and '.join(between(gap) for gap in tests)}; "
        f"median steps to an accuracy of {RIGHT:g} by d: {'; '.join(texts)}",
        f"the power of d must be larger by more than {terms.value:g}, in each comparison",
    )


def _length(group: Arms) -> int:
    return int(group.teacher.settings["task.length"])


def _gate_teachers(seen: Looks, ladder: Sequence[Arms], share: float) -> None:
    """Settle the claim unless at every length enough teachers become right: theirs is the training distribution."""
    for group in ladder:
        steps = list(reached(seen, group.teacher, RIGHT).values())
        gate(int(np.isfinite(steps).sum()), len(steps), share, f"teachers at d = {_length(group)} are right", "must be")


def _alike(ladder: Sequence[Arms], kind: str) -> list[list[Condition]]:
    """The conditions of a strategy, one series over the lengths for each temperature."""
    students = [student for group in ladder for student in group.by.get(kind, [])]
    temperatures = sorted({_temperature(student) for student in students}, reverse=True)
    series = [[student for student in students if _temperature(student) == temperature] for temperature in temperatures]
    for members in series:
        if len(members) != len(ladder):
            settle(NOT_RUN, f"the {kind} students are not one at each length")
    return series


def _temperature(condition: Condition) -> float:
    return float(condition.settings.get("stage.temperature", 1.0))


def _powers(seen: Looks, members: Sequence[Condition]) -> Powers:
    """Slope of log steps on log d by seed, by maximum likelihood; seeds that are right at fewer than LENGTHS lengths are left out.

    A step is known to lie between two looks.
    """
    x = np.log([float(member.settings["task.length"]) for member in members])
    steps = [reached(seen, member, RIGHT) for member in members]
    before = [_before(seen, member) for member in members]
    common = set.intersection(*(set(by_seed) for by_seed in steps))
    powers = {}
    for seeds in sorted(common):
        high = np.array([by_seed[seeds] for by_seed in steps])
        if np.isfinite(high).sum() >= LENGTHS:
            powers[seeds] = slope(x, np.array([by_seed[seeds] for by_seed in before]), high)
    return powers


def _before(seen: Looks, condition: Condition) -> dict[Seeds, float]:
    """The last look before a student is right; its last look where it never is."""
    last_wrong = {}
    for replicate in condition.ended:
        wrong = itertools.takewhile(lambda look: look[1] < RIGHT, seen.get(replicate.key, []))
        last_wrong[replicate.seeds] = max((float(step) for step, _ in wrong), default=0.0)
    return last_wrong


def _at(series: Sequence[Condition]) -> str:
    temperature = _temperature(series[0])
    return f" at temperature {temperature:g}" if "stage.temperature" in series[0].settings else ""


def _steps(seen: Looks, series: Sequence[Condition]) -> str:
    return ", ".join(
        f"{condition.settings['task.length']}: {said(median(reached(seen, condition, RIGHT)))}" for condition in series
    )


GROWTH = Claim(
    "PD-growth",
    "The strings that a student of the last checkpoint needs grow with the length d of the parity by a higher power than those of a "
    "student of one checkpoint inside the transition and then the last.",
    "Panigrahi et al. 2025, theorem 23: at least d^min(2c, k-1) from a teacher with a loss of d^-c, c >= 1, against d^2",
    "powers of d by which it must be higher; theorem 23 has min(2c, k - 1) - 2",
    10,
    "10 replicates: a difference of 2 is shown where those of seeds have a standard deviation of 0.9 at most",
    grows_faster,
    "distillation/growth",
)
