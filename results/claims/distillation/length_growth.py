"""PD-growth: how the strings that a student needs grow with the length d of a parity (Panigrahi et al. 2025, theorems 22 and 23)."""

from collections.abc import Sequence

import numpy as np

from results.claims.claim import NOT_RUN, PRECONDITION, TOO_FEW, Claim, Finding, Terms, decide, settle
from results.claims.compare import between
from results.claims.distillation.parity import (
    LABELS,
    MIDDLE,
    ONE_SHOT,
    PROGRESSIVE,
    Arms,
    Looks,
    Seeds,
    arms,
    looks_of,
    median,
    reached,
    said,
)
from results.claims.evidence import Condition, Evidence
from results.statistics.intervals import quantile, quantile_interval
from results.statistics.survival_slope import slope

RIGHT = 0.9  # accuracy; ours, as in PD-R3
LENGTHS = 3  # a power of d needs that many lengths

Powers = dict[Seeds, float]


def grows_faster(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """By seed, the power of d by which one-shot's steps to RIGHT grow, less that of a student of one checkpoint inside the transition."""
    found = arms(evidence, (LABELS, ONE_SHOT, PROGRESSIVE, MIDDLE), needs)
    seen = looks_of(evidence)
    by_length = {_length(group): group for group in found}
    if len(by_length) < LENGTHS or len(by_length) < len(found):
        settle(NOT_RUN, f"the claim asks for one width of students at {LENGTHS} lengths or more, and has {len(found)} students")
    degrees = {group.teacher.settings["task.degree"] for group in found}
    if len(degrees) > 1:
        settle(NOT_RUN, "the parities differ in more than their length")
    ladder = [by_length[length] for length in sorted(by_length)]
    _gate(seen, ladder, terms.gate)
    kinds = {kind: _alike(ladder, kind) for kind in (MIDDLE, ONE_SHOT, PROGRESSIVE, LABELS)}
    powers = {kind: [_powers(seen, members) for members in series] for kind, series in kinds.items()}
    (middle,), tests = powers[MIDDLE][:1], []
    for one_shot in powers[ONE_SHOT]:
        common = sorted(middle.keys() & one_shot.keys())
        if len(common) < needs:
            settle(TOO_FEW, f"{len(common)} seeds are right at {LENGTHS} lengths, and the claim needs {needs}")
        gaps = [one_shot[seeds] - middle[seeds] for seeds in common]
        tests.append(quantile_interval(gaps, 0.5, 1 - 0.05 / len(powers[ONE_SHOT]), least=-np.inf))
    texts = [
        f"{kind}{_at(series)}: {_steps(seen, series)}, power {quantile(np.array(list(own.values())), 0.5):.2f} "
        f"{between(quantile_interval(list(own.values()), 0.5, least=-np.inf))}"
        for kind in kinds
        for series, own in zip(kinds[kind], powers[kind], strict=True)
        if own
    ]
    return decide(
        all(each.low > terms.value for each in tests),
        any(each.high < terms.value for each in tests),
        f"one-shot's power of d exceeds that of one checkpoint by {' and '.join(between(each) for each in tests)}, the theorem's by "
        f"{degrees.pop() - 3} or more; median steps to an accuracy of {RIGHT:g} by d: {'; '.join(texts)}",
        f"the power of d must be larger by more than {terms.value:g}, in each comparison",
    )


def _length(group: Arms) -> int:
    return int(group.teacher.settings["task.length"])


def _gate(seen: Looks, ladder: Sequence[Arms], share: float) -> None:
    """Settles the claim unless at every length enough teachers become right: theirs is the training distribution."""
    for group in ladder:
        steps = list(reached(seen, group.teacher, RIGHT).values())
        right = int(np.isfinite(steps).sum())
        if right < share * len(steps):
            settle(PRECONDITION, f"at d = {_length(group)} {right} of {len(steps)} teachers are right, and {share:.0%} must be")


def _alike(ladder: Sequence[Arms], kind: str) -> list[list[Condition]]:
    """The conditions of a strategy, one series over the lengths for each temperature."""
    temperatures = sorted({_temperature(each) for group in ladder for each in group.by.get(kind, [])}, reverse=True)
    series = [[each for group in ladder for each in group.by.get(kind, []) if _temperature(each) == at] for at in temperatures]
    for members in series:
        if len(members) != len(ladder):
            settle(NOT_RUN, f"the {kind} students are not one at each length")
    return series


def _temperature(condition: Condition) -> float:
    return float(condition.settings.get("stage.temperature", 1.0))


def _powers(seen: Looks, members: Sequence[Condition]) -> Powers:
    """By seed the slope of log steps on log d, by maximum likelihood; without seeds of which fewer than LENGTHS are right.

    A step is known to lie between two looks.
    """
    x = np.log([float(each.settings["task.length"]) for each in members])
    steps = [reached(seen, each, RIGHT) for each in members]
    before = [_before(seen, each) for each in members]
    common = set.intersection(*(set(each) for each in steps))
    found = {}
    for seeds in sorted(common):
        high = np.array([each[seeds] for each in steps])
        if np.isfinite(high).sum() >= LENGTHS:
            found[seeds] = slope(x, np.array([each[seeds] for each in before]), high)
    return found


def _before(seen: Looks, condition: Condition) -> dict[Seeds, float]:
    """The last look before a student is right; its last look where it never is."""
    found = {}
    for each in condition.replicates:
        if each.status in ("finished", "diverged"):
            early: list[int] = []
            for step, accuracy in seen.get(each.key, []):
                if accuracy >= RIGHT:
                    break
                early.append(step)
            found[each.init_seed, each.data_seed] = float(early[-1]) if early else 0.0
    return found


def _at(series: Sequence[Condition]) -> str:
    temperature = _temperature(series[0])
    return f" at temperature {temperature:g}" if "stage.temperature" in series[0].settings else ""


def _steps(seen: Looks, series: Sequence[Condition]) -> str:
    return ", ".join(f"{each.settings['task.length']}: {said(median(reached(seen, each, RIGHT)))}" for each in series)


GROWTH = Claim(
    "PD-growth",
    "The strings that a student of the last checkpoint needs grow with the length d of the parity by a higher power than those of a "
    "student of one checkpoint inside the transition and then the last.",
    "Panigrahi et al. 2025, theorems 22 and 23: at least d^(k-1) against d^2 at most",
    "powers of d by which it must be higher; theorem 23 has k - 3",
    10,
    "10 replicates: a difference of 2 is shown where those of seeds have a standard deviation of 0.9 at most",
    grows_faster,
    "distillation/growth",
)
