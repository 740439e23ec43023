"""The studies of distillation on grammars hold what the card says, can be planned at every scale, and are what their claims ask for."""

import functools
from dataclasses import replace

import pytest

from harness.planning.plan import plan
from harness.study.load import load
from harness.study.stages import parent_of, spans_of
from launch.families import find_study
from results.claims.claim import REPRODUCED, SCALED
from results.report.distillation.pcfg_thesis import SWEEP
from tests.results.claims.distillation.pcfg_rows import judged, planned

FILES = {  # conditions at the paper's scale
    "p13": 20,
    "p14": 47,
    "p15": 5,
    "p16_heads": 3,
    "p16_kappa": 33,
    "p16_temperature": 33,
    "p16_masks": 27,
    "p16_grammars": 53,
    "gpt2": 75,
    "gpt2_grammars": 39,
}
SCALES = ("paper", "gpu-hour", "laptop")


@functools.cache
def study(name, scale="paper"):
    return load(find_study("progressive_distillation", name), [f"scale={scale}"])


def condition(name, named):
    return next(each for each in study(name).conditions if each.name == named)


def learnt_from(each):
    """(first step of the student, step of the teacher) of every checkpoint."""
    return [(span.begin, span.at) for span in spans_of(each)]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", FILES)
def test_every_study_is_valid_at_every_scale(name, scale):
    found = study(name, scale)
    assert {len(each.seeds) for each in found.conditions} == {12 if name in ("p13", "p14", "p15") else 6}
    assert bool(found.reductions) == (scale != "paper")


@pytest.mark.parametrize("name", FILES)
def test_every_study_can_be_planned(name):
    found = study(name, "laptop")
    few = tuple(replace(each, seeds=each.seeds[:1]) for each in found.conditions)
    planned = plan(replace(found, conditions=few), None, 16, numerics={})
    assert len({each.key for each in planned.replicates}) == len(planned.replicates) == len(found.conditions)


@pytest.mark.parametrize("name", FILES)
def test_models_and_training_are_the_cards(name):
    found = study(name)
    assert len(found.conditions) == FILES[name]
    for each in found.conditions:
        model, train = each.model, each.train
        assert (model.layers, model.width) == (4, 8 * model.heads)
        assert model.embedding_dropout == model.attention_dropout == model.residual_dropout == 0.1
        assert model.causal == (each.task.objective == "next")
        assert (train.batch, train.optimizer, train.betas, train.weight_decay) == (512, "adam", (0.9, 0.95), 0.0)
        # every horizon is a cosine run of its own
        assert (train.schedule, train.final_lr, train.warmup) == ("cosine", 0.0, round(0.06 * train.steps))
        teacher = parent_of(each)
        if teacher is not None:
            assert (teacher.model.heads, teacher.train.steps, teacher.task) == (32, 8000, each.task)


def test_p13_is_three_strategies_at_four_horizons():
    for place, steps in (("quarter", 2000), ("half", 4000), ("whole", 8000), ("double", 16000)):
        for arm in ("labels", "one_shot", "one_shot_cold", "progressive"):
            each = condition("p13", f"{arm}_{place}")
            assert (each.model.heads, each.train.steps) == (8, steps)
        assert learnt_from(condition("p13", f"one_shot_{place}")) == [(1, 8000)]
        # a student of 2000 steps sees the checkpoints 1000 and 2000 alone, and one of 16000 stays with the last
        expected = [(1000 * shot + 1, 1000 * (shot + 1)) for shot in range(min(8, steps // 1000))]
        assert learnt_from(condition("p13", f"progressive_{place}")) == expected


def test_p14_sweeps_the_figures_checkpoints_for_four_times():
    found = {}
    for each in study("p14").conditions:
        if parent_of(each) is not None:
            assert each.train.steps == 4000
            first, *later = learnt_from(each)
            found.setdefault(first[1], set()).update(begin - 1 for begin, at in later if at == 8000)
    assert list(found) == list(SWEEP)
    assert found.pop(8000) == set()
    assert set(map(tuple, map(sorted, found.values()))) == {(500, 1000, 1500, 2000)}


def test_kappa_is_a_half_in_the_appendix_and_for_gpt2():
    assert learnt_from(condition("p16_kappa", "kappa_half_16_half")) == [
        (500 * shot + 1, 1000 * (shot + 1)) for shot in range(8)
    ]
    assert learnt_from(condition("p16_kappa", "split_8_half")) == [(500 * shot + 1, 1000 * (shot + 1)) for shot in range(8)]
    assert learnt_from(condition("p16_kappa", "kappa_one_8_half")) == [
        (1000 * shot + 1, 1000 * (shot + 1)) for shot in range(4)
    ]
    gpt2 = condition("gpt2", "progressive_16_quarter, task.level=4")
    assert (gpt2.task.grammar, gpt2.task.objective, gpt2.task.level) == ("cfg3f", "next", 4)
    # C1 is at T0 / 20, and each of the 20 stays for 200 steps, as far as the student gets
    assert learnt_from(gpt2) == [(200 * shot + 1, 400 * (shot + 1)) for shot in range(10)]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", ["p13", "gpt2"])
def test_the_claims_find_their_students_at_every_scale(name, scale):
    manifest = planned(name, scale)

    def accuracy(label, settings):
        """The larger the horizon and the level, the smaller the gain."""
        if label.startswith("teacher"):
            return 0.99
        gain = 0.1 / (1 + settings["train.steps"] / 1000) * settings["task.level"]
        return 0.6 + gain * label.startswith("progressive") + 0.01 * (not label.startswith("labels"))

    wanted = REPRODUCED if scale == "paper" else SCALED
    for claim in manifest["claims"]:
        if claim != "PD-R5":
            assert judged(manifest, claim, accuracy).verdict == wanted
