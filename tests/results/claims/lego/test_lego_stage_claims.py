"""The claims on self-training give each verdict where the rows deserve it; the rows are of the study as its file plans it."""

import pytest

from results.claims.claim import NOT_REPRODUCED, NOT_RUN, PRECONDITION, REPRODUCED, TOO_FEW
from tests.results.claims.lego.judged import judged
from tests.results.claims.planned_rows import planned

NAMES = ("warm", "warm, stage 1", "warm, stage 2", "warm, stage 3")
LENGTHS = (5, 10, 20, 40, 80, 160)


@pytest.fixture(scope="module")
def plan():
    return planned("length_generalization", "lego_self_training", overrides=["replicates=10"]) | {"overrides": []}


def reaching(*reached, cyclic=0.01, far=0.8, near=0.0, short=0.0, longer=20):
    """Each stage has a share `near` of its sentences wrong up to a length, by seed or for all, and `far` beyond it.

    cyclic: of C6 at 160, short: below. longer: where the control, trained on at 5, stops.
    """

    def wrong(name, length):
        if name == "cyclic":
            return cyclic if length == 160 else short
        if name.startswith("cold"):  # which no claim is of
            return 1.0
        ends = longer if name.startswith("longer") else reached[NAMES.index(name)]
        return [near if length <= end else far for end in (ends if isinstance(ends, list) else [ends] * 10)]

    return wrong


GOOD = reaching(10, 20, 40, 160)


def test_the_study_trains_four_stages_of_three_arms_and_one_of_the_cyclic_group(plan):
    found = [(each["name"], each["settings"].get("stage", {}).get("number", 0)) for each in plan["conditions"]]
    assert sorted(found) == [
        ("cold", 1),
        ("cold", 2),
        ("cold", 3),
        ("cyclic", 0),
        ("longer", 1),
        ("longer", 2),
        ("longer", 3),
        *(("warm", stage) for stage in range(4)),
    ]


@pytest.mark.parametrize(
    ("reached", "verdict"),
    [
        ((10, 20, 40, 160), REPRODUCED),
        ((10, 20, 80, 160), REPRODUCED),
        ((10, 40, 160, 160), REPRODUCED),  # there is nothing longer to be right on
        ((20, 20, 40, 160), NOT_REPRODUCED),  # the first stage of labels brings nothing
        ((10, 20, 40, 40), NOT_REPRODUCED),
        ((5, 10, 20, 40), NOT_REPRODUCED),  # farther each time, and never twice the training length
        ((10, 20, 40, [160] * 9 + [40]), REPRODUCED),
        ((10, 20, 40, [160] * 6 + [40] * 4), TOO_FEW),
        (([10] * 5 + [0] * 5, 20, 40, 160), REPRODUCED),  # half learned the first chains, which is asked
        ((0, 20, 40, 160), PRECONDITION),
        ((160, 160, 160, 160), PRECONDITION),  # there is nothing left to be learned
        (([160] * 4 + [10] * 6, 160, 160, 160), TOO_FEW),  # nor in four of ten, which do not count as farther
    ],
)
def test_every_stage_goes_farther(plan, reached, verdict):
    assert judged(plan, "L6", reaching(*reached)).verdict == verdict


@pytest.mark.parametrize(
    ("longer", "verdict"), [(5, REPRODUCED), (80, REPRODUCED), (160, TOO_FEW), ([160] * 5 + [20] * 5, TOO_FEW)]
)
def test_more_steps_on_short_chains_must_not_do_it(plan, longer, verdict):
    """The control is ours: it keeps the claim from being shown, and can't refute curves that are the paper's."""
    assert judged(plan, "L6", reaching(10, 20, 40, 160, longer=longer)).verdict == verdict
    assert judged(plan, "L6", reaching(10, 20, 40, 40, longer=longer)).verdict == NOT_REPRODUCED


def test_a_control_that_lost_its_chains_is_no_measure(plan):
    """Whatever the last stage reaches is beyond it."""
    assert judged(plan, "L6", reaching(10, 20, 40, 160, longer=0)).verdict == PRECONDITION
    assert judged(plan, "L6", reaching(10, 20, 40, 160, longer=[0] * 5 + [5] * 5)).verdict == REPRODUCED


@pytest.mark.parametrize("change", ["missing", "steps", "length", "lr"])
def test_without_an_equal_control_nothing_is_run(plan, change):
    conditions = []
    for each in plan["conditions"]:
        settings = each["settings"]
        if each["name"] == "longer":
            if change == "missing":
                settings = settings | {"stage": settings["stage"] | {"init": "fresh"}}
            elif change == "steps":
                settings = settings | {"train": settings["train"] | {"steps": 7}}
            elif change == "lr":
                settings = settings | {"train": settings["train"] | {"lr": 1e-9}}
            else:
                settings = settings | {"task": settings["task"] | {"length": 6}}
        conditions.append(each | {"settings": settings})
    assert judged(plan | {"conditions": conditions}, "L6", GOOD).verdict == NOT_RUN


def test_reach_is_told_between_tested_lengths(plan):
    """Stages that share a doubling differ where they cross 0.9 within it."""
    rates = dict(zip(NAMES, (0.5, 0.4, 0.3, 0.2), strict=True))
    wrong = lambda name, length: 0.0 if length <= 80 else rates.get(name, 0.5)  # noqa: E731
    found = judged(plan, "L6", wrong)
    assert found.verdict == REPRODUCED
    assert "trained on 5: 91.9 (91.9 to 91.9); trained on 10: 95.1 (95.1 to 95.1)" in found.finding.measured
    same = lambda name, length: 0.0 if length <= 80 else 0.5  # noqa: E731
    assert judged(plan, "L6", same).verdict == NOT_REPRODUCED


@pytest.mark.parametrize(
    ("last", "cyclic", "verdict"),
    [
        (0.01, 0.01, REPRODUCED),
        (0.05, 0.01, REPRODUCED),
        (0.01, 0.08, REPRODUCED),  # better than the other is within it
        (0.50, 0.50, PRECONDITION),  # as bad as the other
        (0.10, 0.01, NOT_REPRODUCED),
        (0.80, 0.01, NOT_REPRODUCED),
        (0.01, [0.01] * 9 + [None], REPRODUCED),
    ],
)
def test_the_last_stage_is_compared_with_the_cyclic_group(plan, last, cyclic, verdict):
    wrong = reaching(10, 20, 40, 80, far=last, cyclic=cyclic)
    assert judged(plan, "L7", wrong).verdict == verdict


def test_a_last_stage_that_did_not_learn_its_own_chains_is_no_measure(plan):
    for reached, verdict in ((20, PRECONDITION), ([40] * 4 + [20] * 6, PRECONDITION), ([40] * 5 + [20] * 5, NOT_REPRODUCED)):
        assert judged(plan, "L7", reaching(10, 20, 40, reached)).verdict == verdict


def test_a_cyclic_group_that_did_not_learn_its_own_length_is_no_measure(plan):
    for short, verdict in (([0.0] * 5 + [0.2] * 5, REPRODUCED), ([0.0] * 4 + [0.2] * 6, PRECONDITION)):
        assert judged(plan, "L7", reaching(10, 20, 40, 80, far=0.01, short=short)).verdict == verdict


def test_seeds_are_paired_with_the_cyclic_group(plan):
    """Some of the seeds are bad in both: by seed there is no difference, and with others of them there would be one."""
    halves = [0.0] * 6 + [0.6] * 4
    same = lambda name, length: halves if length == 160 and name in (NAMES[-1], "cyclic") else 0.0  # noqa: E731
    assert judged(plan, "L7", same).verdict == REPRODUCED
    other = lambda name, length: halves[::-1] if length == 160 and name == "cyclic" else same(name, length)  # noqa: E731
    assert judged(plan, "L7", other).verdict == TOO_FEW


@pytest.mark.parametrize(
    ("reached", "verdict"),
    [
        ((10, 20, 40, 40), REPRODUCED),  # of the last stage nothing is asked
        ((10, 20, 20, 160), NOT_REPRODUCED),
        ((5, 20, 40, 160), NOT_REPRODUCED),
        (([10] * 6 + [5] * 4, 20, 40, 160), TOO_FEW),
    ],
)
def test_labels_are_looked_at_where_the_next_stage_is_trained(plan, reached, verdict):
    assert judged(plan, "L8", reaching(*reached)).verdict == verdict


def test_labels_may_be_wrong_in_one_of_a_hundred(plan):
    assert judged(plan, "L8", reaching(10, 20, 40, 160, near=0.01)).verdict == REPRODUCED
    within = lambda name, length: 0.0 if name == "warm" and length == 5 else 0.02  # noqa: E731
    assert judged(plan, "L8", within).verdict == NOT_REPRODUCED


@pytest.mark.parametrize("claim", ["L6", "L7", "L8"])
def test_without_the_chain_or_its_sets_nothing_is_run(plan, claim):
    keep = [index for index, each in enumerate(plan["conditions"]) if "stage" not in each["settings"]]
    alone = plan | {
        "conditions": [plan["conditions"][index] for index in keep],
        "replicates": [[key, keep.index(at), *seeds] for key, at, *seeds in plan["replicates"] if at in keep],
    }
    assert judged(alone, claim, GOOD).verdict == NOT_RUN
    assert judged(plan, claim, GOOD, drop=["times_4"]).verdict == NOT_RUN


def test_the_comparison_is_of_the_longest_sentences_that_the_claim_names(plan):
    assert judged(plan, "L7", GOOD, drop=["times_32"]).verdict == NOT_RUN


@pytest.mark.parametrize("claim", ["L6", "L7", "L8"])
def test_five_replicates_are_too_few(plan, claim):
    firsts = {each[2] for each in plan["replicates"][:5]}
    few = plan | {"replicates": [each for each in plan["replicates"] if each[2] in firsts]}
    assert judged(few, claim, GOOD).verdict == TOO_FEW


@pytest.mark.parametrize(
    ("counted", "verdict"),
    [
        (lambda stage, seed: 0.995, REPRODUCED),
        (lambda stage, seed: 0.995 if stage < 3 else 0.98, NOT_REPRODUCED),
        (lambda stage, seed: 0.98 if stage == 1 and seed < 4 else 0.995, TOO_FEW),
        (lambda stage, seed: 0.995 if stage == 1 else None, TOO_FEW),  # not all stages counted theirs
    ],
)
def test_the_labels_of_the_pool_itself_count(plan, counted, verdict):
    """Whatever the fixed chains say, which are right here and were all that was known before."""
    found = judged(plan, "L8", reaching(160, 160, 160, 160), labels=counted)
    assert found.verdict == verdict
    if verdict == REPRODUCED:
        assert "share of the chains trained on labelled right" in found.finding.measured
    assert "fixed chains" in judged(plan, "L8", reaching(160, 160, 160, 160)).finding.measured
