"""The claims on LEGO give each verdict where the rows deserve it; the rows are of the studies as their files plan them."""

import pytest

from results.claims.claim import NOT_REPRODUCED, NOT_RUN, PRECONDITION, REPRODUCED, SCALED, TOO_FEW
from results.claims.lego.sentences import others
from tests.results.claims.lego.judged import judged
from tests.results.claims.lego.lego_rows import attention
from tests.results.claims.planned_rows import planned


@pytest.fixture(scope="module")
def plans():
    ten = {"lego_c6": "replicates=10", "lego_s5": "replicates=10", "lego_groups": "conditions.C6.replicates=10"}
    return {
        name: planned("length_generalization", name, overrides=[override]) | {"overrides": []} for name, override in ten.items()
    }


def shares(by_length, condition="practical", other=1.0):
    """Shares of wrong sentences by length of one condition, the last named length standing for longer ones."""

    def wrong(name, length):
        if name != condition:
            return other
        return by_length[max(at for at in by_length if at <= length)]

    return wrong


GOOD = shares({5: 0.0, 80: 0.005, 160: 0.06})


def test_simply_transitive_holds_where_every_length_is_near_perfect(plans):
    found = judged(plans["lego_c6"], "L1", GOOD)
    assert found.verdict == REPRODUCED
    assert "80: 0.995 / 0.995, 160: 0.940 / 0.940" in found.finding.measured  # of sentences, not of values
    assert judged(plans["lego_c6"] | {"scale": "laptop"}, "L1", GOOD).verdict == SCALED


@pytest.mark.parametrize(
    ("by_length", "verdict"),
    [
        ({5: 0.0, 40: 0.05}, NOT_REPRODUCED),  # 0.95 at 40
        ({5: 0.0, 160: 0.2}, NOT_REPRODUCED),  # 0.8 at 160
        ({5: 0.0, 80: [0.0] * 6 + [0.3] * 4}, TOO_FEW),  # the interval of the median reaches both
        ({5: 0.02}, PRECONDITION),
        ({5: [0.02] * 6 + [0.0] * 4, 10: 0.0}, PRECONDITION),
        ({5: [0.02] * 5 + [0.0] * 5, 10: 0.0}, TOO_FEW),  # half of them learned it, which is asked
        ({5: [0.02] + [0.0] * 9, 10: 0.0}, TOO_FEW),  # nine of ten show a median with 95 %, and not one of six
        ({5: 0.0, 160: [0.0] + [0.2] * 9}, TOO_FEW),  # nor do they refute it
        ({5: 0.0, 160: [None] * 8 + [0.0] * 2}, PRECONDITION),  # a diverged replicate is right nowhere
    ],
)
def test_simply_transitive_gives_every_other_verdict(plans, by_length, verdict):
    assert judged(plans["lego_c6"], "L1", shares(by_length)).verdict == verdict


def test_simply_transitive_is_not_run_without_its_condition_or_sets(plans):
    assert judged(plans["lego_c6"], "L1", GOOD, drop=["times_32"]).verdict == NOT_RUN
    symmetry = plans["lego_s5"] | {"claims": {"L1": {"value": 0.99}}}
    assert judged(symmetry, "L1", GOOD).verdict == NOT_RUN
    only = plans["lego_c6"] | {"sets": {"times_1": plans["lego_c6"]["sets"]["times_1"]}}
    assert judged(only, "L1", GOOD).verdict == NOT_RUN


def test_answers_that_were_forced_are_no_free_runs(plans):
    """With true answers to read, a model that goes astray by itself is right throughout."""
    sets = {
        name: each | {"definition": {key: value for key, value in each["definition"].items() if key != "decode"}}
        for name, each in plans["lego_c6"]["sets"].items()
    }
    found = judged(plans["lego_c6"] | {"sets": sets}, "L1", GOOD)
    assert found.verdict == NOT_RUN
    assert "freely run" in found.finding.reason


def test_numbers_that_are_missing_are_waited_for(plans):
    few = plans["lego_c6"] | {"replicates": [each for each in plans["lego_c6"]["replicates"] if each[2] < 109]}
    assert judged(few, "L1", GOOD).verdict == TOO_FEW


def groups(symmetry, cyclic=None):
    """Shares of wrong sentences of both groups, by length."""
    own = {"S5": shares(symmetry, "S5"), "C6": shares(cyclic or {5: 0.0}, "C6")}
    return lambda name, length: own[name](name, length)


STOPS = {5: 0.0, 20: 0.05, 40: 0.3, 160: 0.99}


@pytest.mark.parametrize(
    ("symmetry", "cyclic", "verdict"),
    [
        (STOPS, {5: 0.0}, REPRODUCED),
        (STOPS, {5: 0.0, 160: 0.09}, REPRODUCED),
        (STOPS, {5: 0.0, 160: 0.3}, PRECONDITION),  # C6 errs less, and does not go on either
        (STOPS, {5: 0.0, 160: [0.05] * 4 + [0.3] * 6}, TOO_FEW),
        (STOPS, STOPS, TOO_FEW),  # C6 stops as well: these rows passed before C6 was looked at
        ({5: 0.0, 160: 0.5}, {5: 0.0, 160: 0.9}, NOT_REPRODUCED),  # and this is the reverse
        ({5: 0.0}, {5: 0.0}, NOT_REPRODUCED),  # right at 160 too
        ({5: 0.0, 10: 0.4}, {5: 0.0}, NOT_REPRODUCED),  # not even at 10
        ({5: 0.0, 160: [0.05] * 4 + [0.9] * 6}, {5: 0.0}, TOO_FEW),
        ({5: 0.0, 160: [0.05] + [0.9] * 9}, {5: 0.0}, TOO_FEW),  # one of four comparisons: 95 % would do for it alone
        ({5: 0.3}, {5: 0.0}, PRECONDITION),
        (STOPS, {5: 0.3}, PRECONDITION),  # each of the two has to have learned its chains of 5
    ],
)
def test_symmetry_stops_where_simply_transitive_goes_on(plans, symmetry, cyclic, verdict):
    assert judged(plans["lego_groups"], "L2", groups(symmetry, cyclic)).verdict == verdict


def test_the_groups_are_paired_where_they_share_seeds(plans):
    """By pairs C6 errs less in 10 of 10 seeds; the same numbers of other seeds hardly differ."""
    places = [3, 8, 1, 6, 0, 9, 4, 7, 2, 5]
    symmetry, cyclic = ([0.3 + (place + more) / 20 for place in places] for more in (0.4, 0.0))
    wrong = groups({5: 0.0, 160: symmetry}, {5: 0.0, 160: cyclic})
    found = judged(plans["lego_groups"], "L2", wrong)
    assert found.verdict == PRECONDITION  # of the pairs each is shown, and C6 is not right either
    assert "P = 1.00" in found.finding.measured
    assert ", pairs" in found.finding.measured
    split = [
        [key, at, *((seed + 1000 for seed in seeds) if at else seeds)] for key, at, *seeds in plans["lego_groups"]["replicates"]
    ]
    apart = judged(plans["lego_groups"] | {"replicates": split}, "L2", wrong)
    assert apart.verdict == TOO_FEW
    assert ", unpaired" in apart.finding.measured


def test_the_groups_are_compared_after_equal_trainings(plans):
    conditions = [dict(each) for each in plans["lego_groups"]["conditions"]]
    conditions[0] = conditions[0] | {
        "settings": conditions[0]["settings"] | {"train": conditions[0]["settings"]["train"] | {"steps": 9}}
    }
    found = judged(plans["lego_groups"] | {"conditions": conditions}, "L2", groups(STOPS))
    assert found.verdict == NOT_RUN
    assert "train.steps" in found.finding.reason


def test_symmetry_says_how_far_it_goes(plans):
    """The length at which 0.9 is crossed, in training lengths, on a line over the log of the length."""
    found = judged(plans["lego_groups"], "L2", groups({5: 0.0, 40: [0.05] * 5 + [0.3] * 5, 80: 0.6}))
    assert "S5 keeps 0.9 up to 6.78 times the training length (5.04 to 8.52)" in found.finding.measured
    assert "C6 keeps 0.9 up to at least 32 times the training length (at least 32 to at least 32)" in found.finding.measured
    half = judged(plans["lego_groups"], "L2", groups(STOPS, {5: 0.0, 80: [0.0] * 5 + [0.6] * 5}))
    assert "C6 keeps 0.9 up to at least 20.5 times the training length (8.98 to at least 32)" in half.finding.measured
    assert judged(plans["lego_groups"], "L2", groups(STOPS), drop=["times_2"]).verdict == NOT_RUN
    assert judged(plans["lego_s5"] | {"claims": {"L2": {"value": 0.9}}}, "L2", shares(STOPS)).verdict == NOT_RUN


def every(**options):
    return lambda condition, seed: attention(**mirrored(condition, options))


def mirrored(condition, options):
    """The slopes are those of permutations; of simply transitive actions it is the other band that falls."""
    falls = options.get("falls", (-0.01, -0.001))
    return options | {"falls": falls[::-1] if condition.startswith("cyclic") else falls}


def seeds(first, **options):
    """`first` seeds as by default, the others with these options."""
    return lambda condition, seed: attention(**mirrored(condition, {} if seed < first else options))


LEARNED = shares({5: 0.0}, "no_residual", other=0.0)
CASES = [
    ("L3", REPRODUCED, every()),
    ("L3", NOT_REPRODUCED, every(epsilon=0.2)),
    ("L3", NOT_REPRODUCED, every(share=0.97)),  # nothing on the answer itself
    ("L3", NOT_REPRODUCED, every(share=0.03)),
    ("L3", TOO_FEW, seeds(5, epsilon=0.2)),
    ("L3", TOO_FEW, seeds(1, epsilon=0.2)),  # nine of ten refute one comparison, and not one of four
    ("L4", REPRODUCED, every()),
    ("L4", REPRODUCED, every(growth=1.4)),
    ("L4", NOT_REPRODUCED, every(growth=1.6)),
    ("L4", NOT_REPRODUCED, every(growth=0.5)),
    ("L4", NOT_REPRODUCED, every(epsilon=0.0)),  # no factor leads from 0
    ("L4", NOT_RUN, every(lengths=(5,))),  # one length grows by a factor of 1
    ("L4", NOT_RUN, every(lengths=(5, 6), growth=0.8)),  # odds that stay, within the tolerance of 1.5
    ("L4", NOT_REPRODUCED, every(lengths=(5, 10), growth=4 / 9)),  # odds that stay
    ("L4", TOO_FEW, seeds(5, growth=2.0)),
    ("L4", TOO_FEW, seeds(1, growth=2.0)),  # nor one of three
    ("L4", TOO_FEW, seeds(5, growth=0.6)),
    ("L5", REPRODUCED, every()),
    ("L5", NOT_REPRODUCED, every(falls=(0.01, 0.001))),  # it rises
    ("L5", NOT_REPRODUCED, every(falls=(-0.01, -0.009))),  # both fall
    ("L5", TOO_FEW, seeds(6, falls=(0.0, 0.0))),
    ("L5", TOO_FEW, every(falls=(-0.001, 0.0))),  # a fall by 5 % of the mean, in all: neither shown nor refuted
    ("L5", NOT_RUN, every(lengths=(5, 10))),
]


@pytest.mark.parametrize(("claim", "verdict", "probes"), CASES)
def test_attention_gives_the_verdict_that_its_rows_deserve(plans, claim, verdict, probes):
    assert judged(plans["lego_s5"], claim, LEARNED, probes).verdict == verdict


def test_for_simply_transitive_actions_the_other_band_falls(plans):
    assert judged(plans["lego_c6"], "L5", LEARNED, every()).verdict == NOT_REPRODUCED
    alike = lambda condition, seed: attention()  # noqa: E731
    assert judged(plans["lego_s5"], "L5", LEARNED, alike).verdict == NOT_REPRODUCED  # in both groups the same band falls


@pytest.mark.parametrize("group", ["A5", "D10", {"table": [[0, 1], [1, 0]]}])
def test_groups_of_neither_kind_say_nothing_of_the_bands(plans, group):
    """A5 on five points is transitive, and not simply so: its answer need not fall, and its predicate may."""
    conditions = [dict(each) for each in plans["lego_s5"]["conditions"]]
    for at, each in enumerate(conditions):
        if each["name"].startswith("cyclic"):
            conditions[at] = each | {"settings": each["settings"] | {"task": each["settings"]["task"] | {"group": group}}}
    alike = lambda condition, seed: attention()  # noqa: E731
    found = judged(plans["lego_s5"] | {"conditions": conditions}, "L5", LEARNED, alike)
    assert found.verdict == NOT_RUN
    assert "cyclic" not in found.finding.measured


def test_one_kind_of_groups_alone_shows_half_of_the_sentence(plans):
    found = judged(plans["lego_c6"], "L5", LEARNED, every(falls=(-0.001, -0.01)))
    assert found.verdict == NOT_RUN
    assert "only one kind was tested" in found.finding.reason
    assert "10 of 10" in found.finding.measured


@pytest.mark.parametrize("claim", ["L3", "L4", "L5"])
def test_attention_is_asked_of_models_that_learned_and_were_probed(plans, claim):
    study = plans["lego_s5"]
    assert judged(study, claim, shares({5: 0.2}, other=0.2), every()).verdict == PRECONDITION
    assert judged(study, claim, LEARNED).verdict == NOT_RUN  # nothing was probed
    one_less = judged(study, claim, LEARNED, lambda condition, seed: attention() if seed < 9 else None)
    assert one_less.verdict == TOO_FEW
    ordinary = [i for i, each in enumerate(study["conditions"]) if each["name"] == "transformer"]
    alone = study | {"replicates": [each for each in study["replicates"] if each[1] in ordinary]}
    alone |= {
        "conditions": [study["conditions"][i] for i in ordinary],
        "replicates": [[k, 0, *s] for k, _, *s in alone["replicates"]],
    }
    assert judged(alone, claim, LEARNED, every()).verdict == NOT_RUN


def test_an_arm_that_did_not_learn_is_left_out_and_named(plans):
    wrong = shares({5: 0.0}, "practical", other=0.5)
    found = judged(plans["lego_s5"], "L4", wrong, lambda condition, seed: attention() if condition == "practical" else None)
    assert found.verdict == REPRODUCED
    assert "left out: 0 of 10 replicates of no_residual answer 99% of the sentences of times_1" in found.finding.measured


def of_heads(*heads, **mean):
    """Rows of heads of these options beside those of the mean."""

    def probes(condition, seed):
        own = {
            (*place[:2], head, place[3]): value
            for head, options in enumerate(heads)
            for place, value in attention(**options).items()
            if place[2] == 0
        }
        return attention(**mean) | own

    return probes


def test_the_law_of_dilution_is_of_each_head(plans):
    """Odds of a mean of heads that follow the law grow more slowly than it, and as fast where no head follows it."""
    one, other = attention(epsilon=0.001), attention(epsilon=0.9)
    held = {
        length: 1 - (one[place] + other[place]) / 2
        for length in (5, 160)
        if (place := ("concentration", 0, 0, f"L={length} epsilon"))
    }
    growth = (1 / held[160] - 1) / (1 / held[5] - 1) / (others(160) / others(5))
    assert growth < 0.1
    lawful = of_heads({"epsilon": 0.001}, {"epsilon": 0.9}, epsilon=1 - held[5], growth=growth)
    assert judged(plans["lego_s5"], "L4", LEARNED, lawful).verdict == REPRODUCED
    lawless = of_heads({"growth": 0.5}, {"growth": 0.5}, growth=1.0)
    assert judged(plans["lego_s5"], "L4", LEARNED, lawless).verdict == NOT_REPRODUCED


def test_dilution_says_where_the_exact_law_is_excluded(plans):
    """Within the tolerance, and yet not the law of the proofs' model."""
    for growth, of in ((1.0, 0), (0.97, 0), (1.4, 3), (0.8, 3)):
        found = judged(plans["lego_s5"], "L4", LEARNED, seeds(0, growth=growth))
        assert found.verdict == REPRODUCED
        assert f"1, the exact law, lies outside the interval of {of} of 3 models" in found.finding.measured
