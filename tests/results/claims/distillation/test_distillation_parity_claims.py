"""The claims on distilled parities give each verdict where the rows of a study, as its file plans it, deserve that."""

from collections.abc import Sequence
from typing import Any

import pytest

from results.claims import verdicts
from results.claims.claim import NOT_REPRODUCED, NOT_RUN, PRECONDITION, REPRODUCED, SCALED, TOO_FEW
from tests.results.claims.distillation.parity_rows import (
    DIVERGED,
    FAILED,
    LOST,
    MISSING,
    NEVER,
    Contrast,
    M,
    Times,
    judged,
    planned,
    rows,
)


@pytest.fixture(scope="module")
def plans():
    return {name: planned(name) for name in ("p1", "p2", "p4")}


def like(**changes: Any) -> Times:
    """The thesis' figures: the teacher at 10M, students of its checkpoints with it, labels late, the rest never; steps or lists of them."""
    usual = {"teacher": 10 * M, "progressive": 10.2 * M, "middle": M, "labels": 19 * M}

    def times(name: str, seed: int) -> Any:
        bare = name.partition(",")[0].removesuffix("_wider")
        found = changes.get(name.partition(",")[0], changes.get(bare, usual.get(bare, NEVER)))
        found = found[seed] if isinstance(found, list) else found
        return int(found) if isinstance(found, float) else found

    return times


def test_the_figures_reproduce_the_claims(plans):
    labels = [19 * M] * 2 + [NEVER] * 8  # figure 4.4: most never within 20M
    for study, claim in (("p1", "PD-R3"), ("p2", "PD-R2")):
        assert judged(plans[study], claim, like(labels=labels)).verdict == REPRODUCED
    shown = judged(plans["p1"], "PD-R3", like(labels=labels)).finding.measured
    assert "width 100: 10,200,000 against never of one_shot, stage 1 (P = 1.00" in shown
    assert "width 1000: 10,200,000 against never of labels_wider" in shown
    laptop = planned("p1", "laptop", ["replicates=10"])
    small = like(teacher=140_000, progressive=160_000, labels=700_000, one_shot=[NEVER] * 5 + [900_000] * 5)
    assert judged(laptop, "PD-R3", lambda name, seed: small(name, seed)).verdict == SCALED


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"one_shot": 15 * M}, REPRODUCED),  # right, and later
        ({"one_shot": 5 * M}, NOT_REPRODUCED),
        ({"one_shot_cold": 5 * M}, NOT_REPRODUCED),  # one temperature is enough
        ({"one_shot_wider": 5 * M}, NOT_REPRODUCED),  # and one width
        ({"progressive": NEVER, "labels": 20 * M}, NOT_REPRODUCED),  # labels are right
        ({"progressive": NEVER, "labels": NEVER}, TOO_FEW),  # all of a pair are equal
        ({"one_shot": [5 * M] * 4 + [NEVER] * 6}, TOO_FEW),
        ({"labels": 19 * M, "teacher": 9.5 * M}, REPRODUCED),
        ({"labels": 19 * M - 1, "teacher": 9.5 * M}, PRECONDITION),
        ({"labels_wider": 12 * M}, PRECONDITION),
        ({"teacher": NEVER}, PRECONDITION),
        ({"teacher": 11 * M, "labels": NEVER}, PRECONDITION),  # never within 20M is not twice 11M
        ({"one_shot": [DIVERGED] * 10}, REPRODUCED),
        ({"progressive": [DIVERGED] * 10}, NOT_REPRODUCED),
        ({"progressive": [10 * M] * 9 + [FAILED]}, TOO_FEW),
        ({"progressive": [10 * M] * 9 + [MISSING]}, TOO_FEW),
    ],
)
def test_students_in_order_need_fewer_strings(plans, changes, verdict):
    base = {"labels": 20 * M}
    assert judged(plans["p1"], "PD-R3", like(**base | changes)).verdict == verdict


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, REPRODUCED),
        ({"middle": 1.9 * M, "end": 2 * M}, REPRODUCED),
        ({"begin": 0.5 * M}, NOT_REPRODUCED),
        ({"end_wider": 0.5 * M}, NOT_REPRODUCED),
        ({"one_shot": 0.5 * M}, NOT_REPRODUCED),
        ({"middle": NEVER}, TOO_FEW),  # nobody is right within 2M
        ({"middle": NEVER, "end": M}, NOT_REPRODUCED),
        ({"begin": [0.5 * M] * 5 + [NEVER] * 5}, TOO_FEW),
        ({"labels": 15 * M}, PRECONDITION),
        ({"middle": [LOST] * 10}, TOO_FEW),
        ({"begin": [LOST] + [NEVER] * 9}, TOO_FEW),  # nine pairs are left
    ],
)
def test_only_the_checkpoint_within_the_transition_helps(plans, changes, verdict):
    assert judged(plans["p2"], "PD-R2", like(**{"labels": 20 * M} | changes)).verdict == verdict


@pytest.mark.parametrize(("study", "claim", "other"), [("p1", "PD-R3", "one_shot"), ("p2", "PD-R2", "end")])
def test_steps_of_larger_batches_are_not_compared(plans, study, claim, other):
    """With batches of twice the strings, a student that is later in strings would be sooner in steps."""
    conditions = [dict(each) for each in plans[study]["conditions"]]
    (changed,) = (each for each in conditions if each["name"] == other)
    train = changed["settings"]["train"]
    changed["settings"] = changed["settings"] | {"train": train | {"batch": 2 * train["batch"]}}
    found = judged(plans[study] | {"conditions": conditions}, claim, like(labels=NEVER))
    assert found.verdict == NOT_RUN
    assert "has other batches than" in found.finding.reason


def test_seeds_are_paired(plans):
    """Every student of a middle checkpoint is sooner than its own of the end; of other seeds half would be."""
    middle, end = [k * 100_000 + 250_000 for k in range(10)], [k * 100_000 + 300_000 for k in range(10)]
    assert judged(plans["p2"], "PD-R2", like(labels=NEVER, middle=middle, end=end)).verdict == REPRODUCED
    assert judged(plans["p2"], "PD-R2", like(labels=NEVER, middle=middle, end=end[::-1])).verdict == TOO_FEW


@pytest.mark.parametrize(("study", "claim"), [("p1", "PD-R3"), ("p2", "PD-R2"), ("p2", "PD-R1"), ("p4", "PD-R6-width")])
def test_without_its_conditions_or_looks_nothing_is_run(plans, study, claim):
    manifest = plans[study]
    kept = [0]
    alone = manifest | {
        "conditions": [manifest["conditions"][index] for index in kept],
        "replicates": [each for each in manifest["replicates"] if each[1] in kept],
    }
    assert judged(alone, claim, like()).verdict == NOT_RUN
    cut = manifest | {"claims": {claim: manifest["claims"][claim]}}
    known, _ = rows(cut, like())
    (found,) = verdicts(cut, known)
    assert found.verdict == NOT_RUN


def spike(degrees: Sequence[int], high: float = 5.0, before: float = 1.0, after: float = 1.0) -> Contrast:
    """Of these degrees, at the transition and 0.1M later."""

    def contrast(degree: int, seed: int, place: int) -> float:
        flat = before if place < 0 else after
        return high if degree in degrees and place in (0, 1) else flat

    return contrast


@pytest.mark.parametrize(
    ("contrast", "single", "low"),
    [
        (spike([1]), REPRODUCED, REPRODUCED),
        (spike([2]), NOT_REPRODUCED, REPRODUCED),  # figure 4.12
        (spike([2, 3]), NOT_REPRODUCED, REPRODUCED),
        (spike([]), NOT_REPRODUCED, NOT_REPRODUCED),
        (spike([1], high=1.9), NOT_REPRODUCED, NOT_REPRODUCED),
        (spike([1, 2, 3], before=6.0), NOT_REPRODUCED, NOT_REPRODUCED),
        (spike([1, 2, 3], after=6.0), NOT_REPRODUCED, NOT_REPRODUCED),
        (spike([1, 2, 3], before=1.9, after=1.9), REPRODUCED, REPRODUCED),
        (spike([1, 2, 3], before=3.0), NOT_REPRODUCED, NOT_REPRODUCED),  # more at the transition, and it stood out before
        (spike([1, 2, 3], after=3.0), NOT_REPRODUCED, NOT_REPRODUCED),
        (lambda degree, seed, place: spike([1])(degree, seed, place) if seed < 6 else 1.0, TOO_FEW, TOO_FEW),
        (lambda degree, seed, place: spike([1])(degree, seed, place) if seed < 1 else 1.0, NOT_REPRODUCED, TOO_FEW),
    ],
)
def test_correlations_spike_during_the_transition(plans, contrast, single, low):
    assert judged(plans["p2"], "PD-R1", like(), contrast).verdict == single
    assert judged(plans["p2"], "PD-R1-low", like(), contrast).verdict == low


def test_a_curriculum_needs_transitions_and_probes_around_them(plans):
    def verdict(contrast=None, places=range(-5, 9), **changes):
        contrast = contrast or spike([1])
        return judged(plans["p2"], "PD-R1", like(**changes), contrast, places=places).verdict

    assert verdict() == REPRODUCED
    assert verdict(teacher=[10 * M] * 4 + [NEVER] * 6) == PRECONDITION
    assert verdict(teacher=[10 * M] * 6 + [NEVER] * 4) == TOO_FEW  # six are no ten
    assert verdict(teacher=[10 * M] * 9 + [MISSING]) == TOO_FEW
    assert verdict(places=range(0, 9)) == TOO_FEW  # not probed before
    assert verdict(places=range(-5, 3)) == TOO_FEW  # nor after
    assert judged(plans["p2"], "PD-R1", like()).verdict == NOT_RUN
    shown = judged(plans["p2"], "PD-R1", like(), spike([1])).finding.measured
    assert shown.startswith("a spike at degree 1 in 10 of 10 ["), "what decides comes first"
    assert shown.endswith("(medians of teacher): degree 1: 1.00, 5.00 and 1.00")


@pytest.mark.parametrize(
    ("steps", "verdict"),
    [
        ((NEVER, 15 * M, 12 * M, 10 * M), REPRODUCED),
        ((15 * M, 15 * M, 12 * M, 12 * M), REPRODUCED),  # neighbours may be equal
        ((15 * M, 12 * M, 14 * M, 10 * M), NOT_REPRODUCED),  # and not the other way round
        ((10 * M, 10 * M, 10 * M, 12 * M), NOT_REPRODUCED),
        ((10 * M, 10 * M, 10 * M, 10 * M), TOO_FEW),
        ((NEVER, NEVER, NEVER, NEVER), PRECONDITION),
        ((NEVER, 15 * M, 12 * M, [10 * M] * 9 + [FAILED]), TOO_FEW),
        ((NEVER, 15 * M, 12 * M, [DIVERGED] * 10), NOT_REPRODUCED),
    ],
)
def test_wider_perceptrons_are_earlier(plans, steps, verdict):
    names = [each["name"] for each in plans["p4"]["conditions"]]
    wanted = dict(zip(names, steps, strict=True))

    def times(name, seed):
        found = wanted[name]
        return found[seed] if isinstance(found, list) else found

    assert judged(plans["p4"], "PD-R6-width", times).verdict == verdict
