"""PD-R1 and PD-R6-width: what a perceptron's output correlates with on its way to parity, and how early a wide one gets there.

Rows are those of `manyseeds probe STORE --probe monomials` of the teacher's kept steps: Panigrahi et al. 2025, section 4.2.7.1.
"""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow.compute as pc

from results.claims.claim import NOT_RUN, PRECONDITION, Claim, Finding, Terms, decide, settle
from results.claims.compare import between, higher_by_pairs, probability
from results.claims.distillation.parity import LABELS, looks_of, reached, said, strategy
from results.claims.distillation.students import median
from results.claims.evidence import Condition, Evidence, differing
from results.claims.requirements import common_seeds, first_set, gate, require, require_all
from results.rows.probe_values import by_step
from results.statistics.intervals import clopper_pearson, quantile
from results.statistics.transition import Transition, transition

PROBE = "monomials"

Contrasts = Mapping[str, Mapping[int, float]]  # |correlation| of the sets inside over outside the support, by key and step


def contrasts(evidence: Evidence, degree: int) -> Contrasts:
    """By probed replicate and step, the mean over sets within the support divided by the mean over sets that are not. Of probes with
    several options, the one with most rows counts."""
    if evidence.measured is None:
        return {}
    inside, outside = (f"degree={degree} {side}" for side in ("inside", "outside"))
    measured = by_step(evidence.measured.filter(pc.field("item").isin([inside, outside])), PROBE)
    return {
        key: {step: row[inside] / row[outside] for step, row in rows.items() if len(row) == 2 and row[outside] > 0}
        for key, rows in measured.items()
    }


def peaks(steps: Mapping[int, float], when: Transition) -> tuple[float, float, float] | None:
    """The largest contrast before, during and after a transition; None where one of them was not probed."""
    if when.begin is None or when.end is None:
        return None
    before = [value for step, value in steps.items() if step <= when.begin]
    during = [value for step, value in steps.items() if when.begin < step < when.end]
    after = [value for step, value in steps.items() if step >= when.end]
    return (max(before), max(during), max(after)) if before and during and after else None


def spikes(evidence: Evidence, terms: Terms, needs: int, degrees: Sequence[int]) -> Finding:
    """Judge whether in most replicates, at one of these degrees, the contrast is `value` or more during the transition, and at no step
    before or after it."""
    teacher = _probed(evidence, degrees[0])
    require([teacher], [first_set(evidence)], needs)
    seen = looks_of(evidence)
    rises = {replicate.key: transition(seen.get(replicate.key, ())) for replicate in teacher.ended}
    whole = {key: rise for key, rise in rises.items() if rise and rise.begin is not None and rise.end is not None}
    gate(len(whole), len(rises), terms.gate, f"replicates of {teacher.name} have a whole transition")
    holds, fails, shares, medians = [], [], [], []
    for degree in degrees:
        steps = contrasts(evidence, degree)
        largest = [peak for key, rise in whole.items() if (peak := peaks(steps.get(key, {}), rise)) is not None]
        probed = f"replicates of {teacher.name} were probed before, during and after their transition at degree {degree}"
        require_all(len(largest), len(whole), needs, probed)
        good = sum(during >= terms.value > max(before, after) for before, during, after in largest)
        share = clopper_pearson(good, len(largest), 1 - 0.05 / len(degrees))
        holds.append(share.low > 0.5)
        fails.append(share.high < 0.5)
        middle = [quantile(column, 0.5) for column in zip(*largest, strict=True)]
        shares.append(f"{degree} in {good} of {len(largest)} {between(share)}")
        medians.append(f"degree {degree}: {middle[0]:.2f}, {middle[1]:.2f} and {middle[2]:.2f}")
    which = "degree 1" if len(degrees) == 1 else f"one of degrees {', '.join(map(str, degrees))}"
    return decide(
        any(holds),
        all(fails),
        f"a spike at degree {', '.join(shares)}; largest ratio of |correlation| with sets inside the support to outside it, before, during "
        f"and after the transition (medians of {teacher.name}): {'; '.join(medians)}",
        f"at {which} more than half of the replicates must have {terms.value:g} or more during it, and less than that at every "
        "step before and after",
    )


def wider_is_earlier(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge whether the widest is right before the narrowest in most pairs of seeds, and no width later than the next narrower one."""
    parities = evidence.of_task("sparse_parity")
    perceptrons = [
        condition for condition in parities if strategy(condition) == LABELS and condition.settings["model.name"] == "mlp"
    ]
    alike = [[condition, *_beside(condition, perceptrons)] for condition in perceptrons]
    alike.sort(key=len)
    ladder = sorted(alike[-1] if alike else [], key=lambda condition: condition.settings["model.width"])
    if len(ladder) < 3:
        settle(NOT_RUN, "the claim asks for perceptrons of three widths or more that differ in nothing else")
    require(ladder, [first_set(evidence)], needs)
    seen = looks_of(evidence)
    steps = [reached(seen, condition, terms.value) for condition in ladder]
    if np.isinf(min(median(by_seed) for by_seed in steps)):
        settle(PRECONDITION, f"at no width the median replicate reaches an accuracy of {terms.value:g}")
    order = [(0, len(ladder) - 1), *((at, at + 1) for at in range(len(ladder) - 1))]
    chances = []
    for narrow, wide in order:
        common_seeds([steps[narrow], steps[wide]], needs, f"are common to {ladder[narrow].name} and {ladder[wide].name}")
        chances.append(higher_by_pairs(steps[wide], steps[narrow], 1 - 0.05 / len(order)))
    shown = ", ".join(
        f"{condition.settings['model.width']:,}: {said(median(own))}" for condition, own in zip(ladder, steps, strict=True)
    )
    ends, interval = chances[0]
    return decide(
        interval.low > 0.5,
        any(neighbours.high < 0.5 for _, neighbours in chances),
        f"median steps to an accuracy of {terms.value:g} by width {shown}; the widest before the narrowest: {probability(ends, interval)}",
        "that chance must lie above 1/2, and for no neighbours below it",
    )


def _probed(evidence: Evidence, degree: int) -> Condition:
    """The first stage with most probed steps."""
    ratios = contrasts(evidence, degree)
    firsts = [condition for condition in evidence.conditions if strategy(condition) == LABELS]
    most = {condition.name: sum(len(ratios.get(one.key, {})) for one in condition.replicates) for condition in firsts}
    teacher = max(firsts, key=lambda condition: most[condition.name], default=None)
    if teacher is None or not most[teacher.name]:
        settle(NOT_RUN, "no perceptron has monomials rows of its checkpoints: manyseeds probe STORE --probe monomials")
    return teacher


def _beside(one: Condition, others: Sequence[Condition]) -> list[Condition]:
    return [other for other in others if differing(one, other) == {"model.width"}]


_SOURCE = "Panigrahi et al. 2025; Liu's thesis"
R1 = Claim(
    "PD-R1",
    "During its transition a perceptron's output correlates with single coordinates of the support; before and after it does not.",
    f"{_SOURCE}, figure 4.5 middle: 0.09 for the six of the support against 0.002",
    "times that the correlation inside must be that outside",
    10,
    "10 replicates: that most do, where 92 % of all do",
    partial(spikes, degrees=(1,)),
    "distillation/p2",
)
R1_LOW = Claim(
    "PD-R1-low",
    "During its transition a perceptron's output correlates with low-degree monomials of the support; before and after it does not.",
    f"{_SOURCE}, figures 4.5 middle and 4.12, degrees 2 and 3 beside 1",
    "times that the correlation inside must be that outside",
    10,
    "10 replicates: that most do at one degree, where 98 % of all do; 20: where 85 % do",
    partial(spikes, degrees=(1, 2, 3)),
    "distillation/p3",
)
R6_WIDTH = Claim(
    "PD-R6-width",
    "A wider perceptron learns parity earlier.",
    f"{_SOURCE}, figure 4.10 left, five runs a width, no numbers printed",
    "accuracy that counts as learned",
    10,
    "10 replicates: that the widest is before the narrowest, where it is in 98 % of pairs",
    wider_is_earlier,
    "distillation/p4",
    of_share=True,
)
