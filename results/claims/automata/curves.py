"""A2: accuracy that is lost again after it was reached, also by runs that end well (Liu's thesis, figure 3.5)."""

from collections.abc import Sequence

import numpy as np

from results.claims.automata.depth import SOLVED
from results.claims.automata.groups import arms, describe
from results.claims.claim import NOT_RUN, PRECONDITION, Claim, Finding, Terms, decide, settle
from results.claims.compare import percent
from results.claims.evidence import Evidence
from results.claims.requirements import in_distribution_set, require
from results.rows.accuracy_curves import Look, watch

LOOKS = 10


def lost(curve: Sequence[Look]) -> float:
    """The largest drop of accuracy from the best look so far to a later one, once SOLVED has been reached; else 0."""
    high = most = 0.0
    for _, accuracy in curve:
        high = max(high, accuracy)
        if high >= SOLVED:
            most = max(most, high - accuracy)
    return most


def accuracy_is_lost_again(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge whether some run that has solved its automaton at the end had solved it before, and lost an accuracy of `value`."""
    conditions, name = arms(evidence), in_distribution_set(evidence)
    if not conditions:
        settle(NOT_RUN, "no condition is the plain transformer")
    require(conditions, [name], needs)
    keys = [replicate.key for condition in conditions for replicate in condition.replicates if replicate.status == "finished"]
    seen = watch(evidence.evaluations)
    curves = {key: seen[key] for key in keys if len(seen.get(key, [])) >= LOOKS}
    if not curves:
        settle(NOT_RUN, f"no set is scored {LOOKS} times or more during training")
    well = [curve for curve in curves.values() if curve[-1][1] >= SOLVED]
    if len(well) < needs:
        settle(
            PRECONDITION, f"{len(well)} of {len(curves)} runs end with {SOLVED:g} of the states right; the claim needs {needs}"
        )
    fell = sum(lost(curve) >= terms.value for curve in well)
    worst = max(map(lost, curves.values()))
    ranges = "; ".join(
        f"{describe(condition, name)}, range {float(np.ptp(condition.wrong(name))):.3f}" for condition in conditions
    )
    return decide(
        fell > 0,
        fell == 0,
        f"{percent(fell, len(well))} of the runs that end well lost {terms.value:g} or more after they had been right; the "
        f"most that any lost is {worst:.3f}; at the end {ranges}",
        f"some run that ends with {SOLVED:g} of the states right must have had as many before, and then have been "
        f"{terms.value:g} below its best so far",
    )


A2 = Claim(
    "A2",
    "Accuracy is lost again after it was reached, also in runs that end well.",
    "Liu's thesis, figure 3.5b and c, no numbers printed",
    "accuracy that counts as lost",
    10,
    "10 runs: a loss that 15 % of them have",
    accuracy_is_lost_again,
    "automata/a2",
    of_share=True,
)
