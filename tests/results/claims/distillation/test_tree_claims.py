"""The claims on a tree of parities give each verdict where the rows of p11 and p12, as their files plan them, deserve that."""

import pytest

from results.claims.claim import NOT_REPRODUCED, NOT_RUN, PRECONDITION, REPRODUCED, TOO_FEW
from tests.results.claims.distillation.pcfg_rows import judged, planned

STEPS = range(1, 11)


@pytest.fixture(scope="module")
def plans():
    return {name: planned(name, overrides=["replicates=10"]) for name in ("p11", "p12")}


def levels(shape):
    """Rows of the probe: shape(node, step, seed) is how many times the outside the sets inside a node are."""

    def probes(condition, step, seed):
        items = {}
        for node in (1, 2, 4):
            items |= {f"node={node} degree=2 outside": 0.01, f"node={node} degree=2 inside": 0.01 * shape(node, step, seed)}
        return {"monomials": items}

    return probes


def spikes(node, step, seed):
    """At steps 3, 5 and 7."""
    return 6.0 if step == {1: 3, 2: 5, 4: 7}[node] else 1.0


def together(node, step, seed):
    """All rise at step 4 and stay; which step is the largest is noise."""
    return 6.0 + 0.1 * (step == {1: 5, 2: 7, 4: 9}[node]) if step >= 4 else 1.0


def half(one, other, first):
    return lambda node, step, seed: (one if seed < first else other)(node, step, seed)


@pytest.mark.parametrize(
    ("shape", "verdict"),
    [
        (spikes, REPRODUCED),
        (together, NOT_REPRODUCED),
        (lambda node, step, seed: 6.0 if step == 5 else 1.0, NOT_REPRODUCED),  # all at once
        (lambda node, step, seed: spikes(node, step, seed) / 4, NOT_REPRODUCED),  # none stands out
        (half(spikes, together, 6), TOO_FEW),
    ],
)
def test_levels_are_picked_up_one_by_one(plans, shape, verdict):
    found = judged(plans["p11"], "PD-P11", lambda name, settings: 1.0, probes=levels(shape), probe_steps=lambda each: STEPS)
    assert found.verdict == verdict


def test_levels_are_asked_of_teachers_that_learned_and_were_probed(plans):
    judge = lambda accuracy, steps: judged(  # noqa: E731
        plans["p11"], "PD-P11", lambda name, settings: accuracy, probes=levels(spikes), probe_steps=steps
    )
    assert judge(0.5, lambda each: STEPS).verdict == PRECONDITION
    assert judge(1.0, lambda each: ()).verdict == NOT_RUN
    assert judge(1.0, lambda each: STEPS if each.init_seed else ()).verdict == TOO_FEW


def ends(inside=0.99, outside=0.9, single=0.89, teacher=1.0):
    """Accuracies at the end by the kind of a student; f is the checkpoint outside."""

    def accuracy(name, settings):
        checkpoints = name.partition(",")[0].split("_")
        if checkpoints == ["teacher"]:
            return teacher
        return single if len(checkpoints) == 1 else outside if "f" in checkpoints else inside

    return accuracy


@pytest.mark.parametrize(
    ("accuracy", "verdict"),
    [
        (ends(), REPRODUCED),
        (ends(outside=0.995), NOT_REPRODUCED),
        (ends(single=0.995), NOT_REPRODUCED),
        (ends(0.9, 0.9, 0.89), TOO_FEW),  # pairs are alike
        (ends(1.0, 1.0, 1.0), PRECONDITION),  # the checkpoint outside teaches as the last one does
        (ends(outside=0.9, single=0.9), PRECONDITION),
        (ends(teacher=0.5), PRECONDITION),
        (ends(inside=[0.99] * 6 + [0.8] * 4), TOO_FEW),
    ],
)
def test_pairs_inside_the_transition_end_best(plans, accuracy, verdict):
    assert judged(plans["p12"], "PD-P12", accuracy).verdict == verdict


def test_a_checkpoint_before_the_transition_is_outside_it(plans):
    """All pairs but those of a with b to e lose; with a moved ahead of the transition these have one outside and win."""

    def accuracy(name, settings):
        checkpoints = name.partition(",")[0].split("_")
        return ends(inside=0.99 if "a" in checkpoints else 0.8, outside=0.85, single=0.7)(name, settings)

    assert judged(plans["p12"], "PD-P12", accuracy).verdict == REPRODUCED
    moved = [before(each) if "a" in each["name"].split("_") else each for each in plans["p12"]["conditions"]]
    assert judged(plans["p12"] | {"conditions": moved}, "PD-P12", accuracy).verdict == NOT_REPRODUCED


def before(condition):
    """The same condition, whose first checkpoint is 500,000 steps ahead of its rule."""
    stage = condition["settings"]["stage"]
    first, *rest = stage["teacher"]["checkpoints"]
    moved = [first | {"at": first["at"] | {"plus": -500_000}}, *rest]
    return condition | {
        "settings": condition["settings"] | {"stage": stage | {"teacher": stage["teacher"] | {"checkpoints": moved}}}
    }
