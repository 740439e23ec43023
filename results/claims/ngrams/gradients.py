"""N5: the gradient is small on the plateau before the last jump and peaks at that jump (Varre et al. 2025, figure 6).

Rows are those of `evaluate.watch` with a sample: "sample gradient", its norm on fixed strings of the replicate's own. The
batch's own gradient is mostly noise. The paper's figure shows one peak, at the last jump; the plateau before the first is short.
"""

from typing import NamedTuple

import numpy as np

from results.claims.claim import NOT_RUN, Claim, Finding, Part, Terms, decide_all, settle
from results.claims.compare import median
from results.claims.evidence import Evidence
from results.claims.ngrams.courses import Course, conditions, courses
from results.claims.requirements import gate
from results.rows.looks import Series, series
from results.statistics.bootstrap import divide

EDGES = (0.1, 0.9)  # shares of the way down between which the loss is in a jump


class Peak(NamedTuple):
    """The median norm within a jump as a multiple of that on the plateau before it (rise), and of that after it (fall)."""

    rise: float
    fall: float


def peaks_at_the_last_jump(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Test whether the norm in the last jump is `value` times that on the plateau before it, and above that after it.

    Replicates count that have left the last plateau but one.
    """
    compared = conditions(evidence, needs)
    norms = {key: own["sample gradient"] for key, own in series(evidence.watched, ("sample gradient",)).items()}
    parts = []
    for condition in compared:
        if any(replicate.key not in norms for replicate in condition.replicates):
            settle(NOT_RUN, f"{condition.name} has no gradients on a sample: set evaluate.watch.sequences")
        own = courses(evidence, condition)
        by_replicate = [peak(course, norms[replicate.key]) for course, replicate in zip(own, condition.replicates, strict=True)]
        peaks = [one for one in by_replicate if one is not None]
        what = f"replicates of {condition.name} leave the last plateau but one with looks before, within and after the jump"
        gate(len(peaks), len(own), max(terms.gate, 1 / len(own)), what, "must: train for longer, or look more often")
        confidence = 1 - 0.05 / (2 * len(compared))
        rise, fall = (median(times, confidence) for times in zip(*peaks, strict=True))
        text = f"{condition.name}: {rise:.2f} times that before, {fall:.2f} times that after, in {len(peaks)} of {len(own)}"
        holds = rise.interval.low > terms.value and fall.interval.low > 1
        parts.append(Part(holds, rise.interval.high < terms.value or fall.interval.high < 1, text))
    return decide_all(
        parts,
        "norm within the jump beside those on the plateaus, medians: ",
        f"the interval of the median over replicates must lie above {terms.value:g} for the plateau before, and above 1 for the one after, "
        "in every condition; one below refutes",
    )


def peak(course: Course, norm: Series) -> Peak | None:
    """How the norm within the last jump compares with the norms before and after it.

    None where the replicate has not left the plateau before the last stage, or has no look on it, within the jump or after it.
    """
    k = course.order - 1
    here, there, left = course.plateau(k), course.plateau(k + 1), course.escape(k)
    if here is None or there is None or left is None:
        return None
    down = (here - course.loss) / (here - there)
    # the last look above the upper edge before it has left, and the first one below the lower edge
    before = course.steps[(down < EDGES[0]) & (course.steps < left)]
    after = course.steps[(down > EDGES[1]) & (course.steps > left)]
    if not len(before) or not len(after):
        return None
    jump = (norm.steps >= before[-1]) & (norm.steps <= after[0])
    flat = (norm.steps > (course.begins(k) + before[-1]) / 2) & (norm.steps < before[-1])
    last = norm.steps > after[0]
    if not jump.any() or not flat.any() or not last.any():
        return None
    return Peak(*(times(np.median(norm.values[jump]), np.median(norm.values[looks])) for looks in (flat, last)))


def times(norm: float, other: float) -> float:
    """How many times one norm is another; 1 where they are equal, 0 included."""
    return 1.0 if norm == other else float(divide(norm, other))


N5 = Claim(
    "N5",
    "The gradient is small on the plateau before the last jump and peaks at that jump (the paper: at every jump).",
    "Varre et al. 2025, section I.3, figure 6",
    "multiple of the plateau's gradient norm that must be exceeded; 1.6 and more in the paper's figures",
    25,
    "25 replicates: a median multiple above 1.25 is shown where 77 % of all replicates are above it",
    peaks_at_the_last_jump,
    "ngrams/figure6",
)
