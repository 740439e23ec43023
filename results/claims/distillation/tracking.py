"""PD-track: a student of the checkpoints in order is right when its teacher is (Panigrahi et al. 2025, figures 4.4 left and 4.18)."""

import numpy as np

from results.claims.claim import NOT_RUN, TOO_FEW, Claim, Finding, Part, Terms, decide_all, settle
from results.claims.compare import between
from results.claims.distillation.parity import LABELS, PROGRESSIVE, arms, gate_gap, looks_of, reached, said
from results.claims.distillation.students import median
from results.claims.evidence import Evidence
from results.claims.requirements import gate
from results.statistics.intervals import quantile_interval

RIGHT = 0.9  # accuracy; ours, as in PD-R3


def student_tracks_teacher(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """By seed, the student's steps to RIGHT over its teacher's: the median must lie within a factor of `value` of 1.

    Settles the claim where labels alone are as fast (`gate_gap`), and where a student's checkpoints do not come at its teacher's own pace.
    """
    groups = arms(evidence, (LABELS, PROGRESSIVE), needs)
    seen = looks_of(evidence)
    gate_gap(seen, groups)
    pairs = [(group, student) for group in groups for student in group.by[PROGRESSIVE]]
    parts = []
    for group, student in pairs:
        steps = group.teacher.settings["train.steps"]
        kappa = student.settings["stage.teacher.kappa"]
        pace = steps if kappa is None else kappa * steps
        if (kappa is None and student.settings["train.steps"] != steps) or pace != steps:
            settle(
                NOT_RUN, f"{student.name} has its checkpoints at another pace than {group.teacher.name} had: kappa must be 1"
            )
        own, teacher = (reached(seen, condition, RIGHT) for condition in (student, group.teacher))
        common = sorted(own.keys() & teacher.keys())
        learned = [seeds for seeds in common if np.isfinite(teacher[seeds])]
        gate(len(learned), len(common), terms.gate, f"teachers reach {RIGHT:g}")
        if len(learned) < needs:
            settle(TOO_FEW, f"{len(learned)} teachers reach {RIGHT:g}; the claim needs {needs}")
        interval = quantile_interval([own[seeds] / teacher[seeds] for seeds in learned], 0.5, 1 - 0.05 / len(pairs))
        inside = interval.low >= 1 / terms.value and interval.high <= terms.value
        outside = interval.high < 1 / terms.value or interval.low > terms.value
        text = f"{said(median(own))} steps, {between(interval)} times the {said(median(teacher))} of its teacher"
        parts.append(Part(inside, outside, f"{group.name}: {text}"))
    return decide_all(
        parts,
        f"median steps to an accuracy of {RIGHT:g}, and the median ratio: ",
        f"the interval of the ratio must lie within {1 / terms.value:.2g} to {terms.value:g} (a criterion of ours)",
    )


TRACK = Claim(
    "PD-track",
    "A student of the checkpoints in order, at the pace at which its teacher made them, is right when its teacher is.",
    "Panigrahi et al. 2025; Liu's thesis, figure 4.4 left, both at about 11 million steps; figure 4.18",
    "factor by which the student may be off its teacher",
    10,
    "10 replicates: a median of which the interval is bounded on both sides",
    student_tracks_teacher,
    "distillation/p1",
    of_factor=True,
)
