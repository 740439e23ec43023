"""N5: the gradient is small on plateaus and large at the jumps between them (Varre et al. 2025, section I.3 and figures 6 and 7).

Rows are those of `evaluate.watch` with a sample: "sample gradient", its norm on fixed strings of the replicate's own. The batch's own
gradient is mostly noise.
"""

import numpy as np

from results.claims.claim import NOT_RUN, Claim, Finding, Part, Terms, decide_all, settle
from results.claims.compare import between
from results.claims.evidence import Evidence
from results.claims.ngrams.courses import Course, conditions, courses
from results.claims.requirements import gate
from results.rows.looks import Series, series
from results.statistics.intervals import quantile_interval

EDGES = (0.1, 0.9)  # shares of the way down between which the loss is in a jump


def peaks_at_jumps(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Test the median norm in the jump, as a multiple of that on the plateau, of replicates that left the last plateau but one."""
    compared = conditions(evidence, needs)
    norms = {key: own["sample gradient"] for key, own in series(evidence.watched, ("sample gradient",)).items()}
    parts = []
    for condition in compared:
        if any(replicate.key not in norms for replicate in condition.replicates):
            settle(NOT_RUN, f"{condition.name} has no gradients on a sample: set evaluate.watch.sequences")
        own = courses(evidence, condition)
        by_replicate = [
            ratio(course, norms[replicate.key]) for course, replicate in zip(own, condition.replicates, strict=True)
        ]
        ratios = [times for times in by_replicate if times is not None]
        what = f"replicates of {condition.name} leave the last plateau but one with looks before and within the jump"
        gate(len(ratios), len(own), terms.gate, what, "must: train for longer, or look more often")
        interval = quantile_interval(ratios, 0.5, 1 - 0.05 / len(compared))
        text = f"{condition.name}: {np.median(ratios):.2f} times {between(interval)} in {len(ratios)} of {len(own)}"
        parts.append(Part(interval.low > terms.value, interval.high < terms.value, text))
    return decide_all(
        parts,
        "norm within the jump beside that on the plateau before it, medians: ",
        f"the interval of the median over replicates must lie above {terms.value:g} in every condition, and refutes below",
    )


def ratio(course: Course, norm: Series) -> float | None:
    """The median norm within the last jump, divided by that on the plateau before it.

    None where the replicate has not left the plateau before the last stage, or has no look on it or within the jump.
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
    if not jump.any() or not flat.any():
        return None
    return float(np.median(norm.values[jump]) / np.median(norm.values[flat]))


N5 = Claim(
    "N5",
    "The gradient is small on the plateaus and peaks at the jumps between them.",
    "Varre et al. 2025, section I.3, figure 6",
    "multiple of the plateau's gradient norm that must be exceeded (1.25 is ours; the paper's figures show 1.6 and more)",
    25,
    "25 replicates: a median multiple above 1.25 is shown where 77 % of all replicates are above it",
    peaks_at_jumps,
    "ngrams/figure6",
)
