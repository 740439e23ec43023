"""The claims on a tree of parities give each verdict where the rows of p11 and p12, as their files plan them, deserve that."""

import math

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


def at_once(node, step, seed):
    """All at a single step."""
    return 6.0 if step == 5 else 1.0


def last_ones_alike(node, step, seed):
    """As `together`, and the two lower ones are largest at one step."""
    return 6.0 + 0.1 * (step == {1: 5, 2: 7, 4: 7}[node]) if step >= 4 else 1.0


def half(one, other, first):
    return lambda node, step, seed: (one if seed < first else other)(node, step, seed)


@pytest.mark.parametrize(
    ("shape", "verdict"),
    [
        (spikes, REPRODUCED),
        (together, NOT_REPRODUCED),
        (last_ones_alike, NOT_REPRODUCED),
        (at_once, TOO_FEW),  # between two kept steps they may differ
        (lambda node, step, seed: spikes(node, step, seed) / 4, NOT_REPRODUCED),  # none stands out
        (lambda node, step, seed: at_once(node, step, seed) / 4, NOT_REPRODUCED),
        (half(spikes, together, 6), TOO_FEW),
        (half(spikes, at_once, 9), REPRODUCED),
        (half(at_once, together, 1), NOT_REPRODUCED),
        (half(at_once, together, 4), TOO_FEW),
    ],
)
def test_levels_are_picked_up_one_by_one(plans, shape, verdict):
    found = judged(plans["p11"], "PD-P11", lambda name, settings: 1.0, probes=levels(shape), probe_steps=lambda each: STEPS)
    assert found.verdict == verdict


@pytest.mark.parametrize(("kept", "verdict"), [(range(1, 101), REPRODUCED), (range(10, 101, 10), TOO_FEW)])
def test_kept_steps_too_far_apart_refute_nothing(plans, kept, verdict):
    """Levels at steps 43, 48 and 53: every tenth step has the last two at 50."""
    shape = lambda node, step, seed: 6 * math.exp(-(((step - {1: 43, 2: 48, 4: 53}[node]) / 5) ** 2))  # noqa: E731
    found = judged(plans["p11"], "PD-P11", lambda name, settings: 1.0, probes=levels(shape), probe_steps=lambda each: kept)
    assert found.verdict == verdict
    assert ("in 10 more levels share a kept step" in found.finding.measured) == (verdict == TOO_FEW)


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
        (ends(1.0, 1.0, 1.0), TOO_FEW),  # all are
        (ends(outside=0.9, single=0.9), REPRODUCED),  # as in the thesis: the checkpoint outside teaches as the last one does
        (ends(teacher=0.5), PRECONDITION),
        (ends(inside=[0.99] * 6 + [0.8] * 4), TOO_FEW),
    ],
)
def test_pairs_inside_the_transition_end_best(plans, accuracy, verdict):
    assert judged(plans["p12"], "PD-P12", accuracy).verdict == verdict


def one(name, value, others):
    """Accuracies as `others`, but for the student of this name."""
    return lambda condition, settings: value if condition.partition(",")[0] == name else others(condition, settings)


@pytest.mark.parametrize(
    ("accuracy", "verdict"),
    [
        (one("c_d", 1.0, ends(inside=0.75, outside=0.80, single=0.81)), REPRODUCED),  # the thesis: there is one
        (one("c", 0.95, ends(inside=0.9, outside=0.5, single=0.5)), NOT_REPRODUCED),  # one checkpoint is enough
        (one("c_f", 0.95, ends(inside=0.9, outside=0.5, single=0.5)), NOT_REPRODUCED),
        # 9 of 10 would do for a pair that was fixed beforehand, and not for the best of ten
        (one("c_d", [1.0] * 9 + [0.5], ends(inside=0.7, outside=0.80, single=0.81)), TOO_FEW),
    ],
)
def test_the_best_pair_counts_against_the_best_of_the_others(plans, accuracy, verdict):
    assert judged(plans["p12"], "PD-P12", accuracy).verdict == verdict


# all single ones and all pairs with one outside, and of the pairs inside only one
FEWER = "[teacher,a,b,c,d,e,a_f,b_f,c_f,d_f,e_f,c_d]"


def of_fewer(accuracy, *left_out):
    only = ",".join(name for name in FEWER.strip("[]").split(",") if name not in left_out)
    return judged(planned("p12", overrides=[f"only=[{only}]"]), "PD-P12", accuracy)


@pytest.mark.parametrize(
    ("accuracy", "verdict"), [(ends(), REPRODUCED), (ends(single=0.995), TOO_FEW), (one("a", 1.0, ends()), TOO_FEW)]
)
def test_one_pair_can_show_that_there_is_one_and_not_that_there_is_none(accuracy, verdict):
    found = of_fewer(accuracy)
    assert found.verdict == verdict
    assert "nothing can refute it" in found.finding.reason


def test_a_pair_needs_students_of_each_of_its_checkpoints_alone():
    plan = planned("p12", overrides=[f"only={FEWER}"])
    later = [moved(each, {"c": {"accuracy": 0.7}}) if each["name"] == "c_d" else each for each in plan["conditions"]]
    found = judged(plan | {"conditions": later}, "PD-P12", ends())
    assert found.verdict == NOT_RUN
    assert "a checkpoint of c_d" in found.finding.reason


def test_a_rival_that_was_left_out_may_have_been_the_best():
    """Both would refute the claim if they were there."""
    found = of_fewer(one("a", 1.0, ends()), "a", "a_f")
    assert found.verdict == NOT_RUN
    assert "of 4; the claim needs 5" in found.finding.reason
    found = of_fewer(one("a_f", 1.0, ends()), "a_f")
    assert found.verdict == NOT_RUN
    assert "the checkpoint of a, stage 1 and one outside" in found.finding.reason


def test_pairs_with_one_outside_may_be_left_out_where_all_others_are_single_ones():
    assert of_fewer(ends(outside=0.9, single=0.9), "a_f", "b_f", "e_f").verdict == REPRODUCED
    assert of_fewer(one("d_f", 0.91, ends(outside=0.9, single=0.9)), "a_f", "b_f", "e_f").verdict == NOT_RUN


def test_pairs_that_are_single_ones_are_told(plans):
    found = judged(plans["p12"], "PD-P12", ends(outside=0.9, single=0.9))
    assert "0.990 of the best pair" in found.finding.measured
    assert "end exactly as single ones" in found.finding.measured
    assert "exactly" not in judged(plans["p12"], "PD-P12", ends()).finding.measured


def test_a_checkpoint_before_the_transition_is_outside_it():
    """All pairs but those of a lose; with a moved ahead of the transition, and f into it, these have one outside and win."""
    plan = planned("p12", overrides=["replicates=11"])

    def accuracy(name, settings):
        checkpoints = name.partition(",")[0].split("_")
        return ends(inside=0.99 if "a" in checkpoints else 0.8, outside=0.85, single=0.7)(name, settings)

    assert judged(plan, "PD-P12", accuracy).verdict == REPRODUCED
    conditions = [moved(each, {"a": {"plus": -500_000}, "f": {"accuracy": 0.99, "plus": 0}}) for each in plan["conditions"]]
    assert judged(plan | {"conditions": conditions}, "PD-P12", accuracy).verdict == NOT_REPRODUCED


def moved(condition, changes):
    """The same condition with other rules for the checkpoints of these names."""
    names = condition["name"].split("_")
    if not set(names) & changes.keys():
        return condition
    stage = condition["settings"]["stage"]
    *those, last = stage["teacher"]["checkpoints"]
    rules = [each | {"at": each["at"] | changes.get(name, {})} for name, each in zip(names, those, strict=True)]
    teacher = stage["teacher"] | {"checkpoints": [*rules, last]}
    return condition | {"settings": condition["settings"] | {"stage": stage | {"teacher": teacher}}}
