"""The studies P5 to P9, transformers on parity: points as on the card, every scale plans and names what it reduces, teachers are shared."""

import functools
import re
from collections import Counter

import pytest

from harness.planning.plan import plan
from harness.study.config import keep_steps
from harness.study.identity import canonical
from harness.study.load import load
from harness.study.stages import link_of
from launch.families import find_study

SCALES = ("paper", "gpu-hour", "laptop")
# conditions by the number of their replicates
POINTS = {"p5": {10: 5}, "p6": {5: 11}, "p7": {4: 1}, "p8": {10: 11}, "p9": {2: 1}}


@functools.cache
def _study(name, scale="paper"):
    return load(find_study("progressive_distillation", name), [f"scale={scale}"])


@pytest.mark.parametrize("name", POINTS)
def test_the_points_are_the_cards(name):
    study = _study(name)
    assert Counter(len(condition.seeds) for condition in study.conditions) == POINTS[name]
    assert study.reductions == ()
    for each in study.conditions:
        assert (each.task.length, each.task.degree, each.task.coordinates) == (100, 6, tuple(range(6)))
        assert (each.model.layers, each.model.causal, each.train.steps, each.train.batch) == (2, True, 250_000, 32)
        assert each.train.lr == (1e-4 if each.model.width == 32 and name in ("p5", "p8") else 3e-4)
        if name != "p6":
            assert each.model.width == 8 * each.model.heads


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", POINTS)
def test_every_study_can_be_planned_at_every_scale(name, scale):
    study = _study(name, scale)
    planned = plan(study, None, 16, numerics={})
    assert sum(len(pack.replicates) for pack in planned.packs) == len(planned.replicates)
    assert len({each.key for each in planned.replicates}) == len(planned.replicates)
    declared = {re.match(r"[^:]+", each)[0] for each in study.reductions}
    assert not declared if scale == "paper" else declared >= {"task.length", "task.degree", "train.steps"}
    assert {each.train.warmup / each.train.steps for each in study.conditions} <= {0.06, 0.05}


@pytest.mark.parametrize("scale", SCALES)
def test_students_are_smaller_than_their_teacher_and_learn_from_it_alone(scale):
    for name in ("p5", "p8"):
        study = _study(name, scale)
        by = {(each.name, each.stage): each for each in study.conditions}
        students = {name: each for (name, stage), each in by.items() if stage}
        teacher = by["teacher", 0]
        assert set(students) >= {"one_shot", "one_shot_cold", "progressive"}
        for each in students.values():
            assert each.model == by["labels", 0].model
            assert each.model.width < teacher.model.width
            assert link_of(each).labels == "teacher"
        assert (link_of(students["one_shot"]).temperature, link_of(students["progressive"]).temperature) == (1, 1e-4)


def test_the_checkpoints_are_the_cards():
    students = {each.name: link_of(each) for each in _study("p5").conditions if each.stage}
    assert (students["progressive"].teacher.shots, 250_000 // 25) == (25, 10_000)
    shots = {each.name: link_of(each) for each in _study("p8").conditions if each.name.startswith("two_shot")}
    assert sorted(each.temperature for each in shots.values()) == [0, 1e-4, 1e-3, 0.01, 0.1, 1]
    for each in shots.values():
        first, last = each.teacher.checkpoints
        assert (first.at.accuracy, first.at.every, last.at) == (0.75, 10_000, "last")
    for name, first in (("p7", 10_000), ("p9", 0)):
        kept = keep_steps(_study(name).keep)
        assert kept == tuple(range(first, 250_000, 10_000))


@pytest.mark.parametrize("scale", SCALES)
def test_teachers_are_the_same_replicates_in_all_studies(scale):
    """So that one store trains them once: a key is the configuration and the seeds."""
    first = {name: canonical(_study(name, scale).conditions[0].config()) for name in ("p5", "p7", "p8")}
    assert len(set(first.values())) == 1
    if scale == "paper":
        configs = [canonical(each.config()) for each in _study("p6").conditions]
        assert first["p5"] in configs
