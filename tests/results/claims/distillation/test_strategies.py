"""Strategies by what a study says of a student, the teacher of a student, and the three phases by the published curve and by shapes."""

import math

import numpy as np
import pyarrow as pa
import pytest

from results.claims.distillation.phases import phases
from results.claims.distillation.strategies import (
    LABELS,
    ONE_SHOT,
    PROGRESSIVE,
    TWO,
    first_checkpoint,
    strategy,
    teacher_config,
)
from results.rows.options import flatten
from results.rows.probe_values import by_step
from results.store.schema import SCHEMAS
from tests.results.claims.distillation.pcfg_rows import planned

# the teacher of figure 4.7: its loss by step, as read off the figure, by straight lines in between
PAPER = [
    (step, float(np.interp(step, (200, 600, 1000, 2000, 8000), (1.03, 1.03, 0.52, 0.18, 0.04))))
    for step in range(200, 8001, 50)
]


def test_three_phases_are_visible_in_the_papers_teacher():
    found = phases(PAPER, 480)
    assert found.visible
    assert (found.begin, found.end) == (600, 1000)  # the figure draws the borders at 600 and 2000


@pytest.mark.parametrize(
    "loss",
    [
        lambda t: 1 - t,
        lambda t: math.exp(-t / 0.2),  # fast from the start: there is no first phase
        lambda t: min(1.0, 2 - 2 * t),  # no slow rest
        lambda t: 1 / (1 + 20 * t),
        lambda t: 0.5,
        lambda t: t,
    ],
)
def test_other_shapes_have_no_three_phases(loss):
    found = phases([(step, loss(step / 1000)) for step in range(10, 1001, 10)], 60)
    assert found is None or not found.visible


def test_a_rapid_phase_is_found_where_it_is_behind_frequencies_that_are_learned_first():
    def loss(step):
        return 1.5 * math.exp(-step / 20) + 0.8 / (1 + math.exp((step - 300) / 20)) + 0.2 * (1 - step / 2000)

    found = phases([(step, loss(step)) for step in range(20, 2001, 20)], 120)
    assert found.visible
    assert (found.begin, found.end) == (240, 340)
    assert phases([(step, loss(step)) for step in (1980, 2000, 1900)], 120) is None
    broken = phases([(step, loss(step) if step < 1500 else math.nan) for step in range(20, 2001, 20)], 120)
    assert broken.begin == pytest.approx(250, abs=20)  # a stretch is a twentieth of what was trained


def test_strategies_and_teachers_of_the_studies_are_recognised():
    found = {}
    for name in ("p13", "p14"):
        manifest = planned(name)
        teacher = next(each for each in manifest["conditions"] if each["name"] == "teacher")
        for each in manifest["conditions"]:
            settings = flatten(each["settings"])
            kind = strategy(settings)
            found.setdefault(kind, set()).add(each["name"].rsplit("_", 1)[0] if name == "p13" else each["name"])
            if "stage.number" in settings:
                assert teacher_config(each["config"]) == teacher["config"]
            else:
                assert teacher_config(each["config"]) is None
            if kind == TWO and name == "p14":
                assert first_checkpoint(settings) in range(200, 8001, 200)
    assert found[PROGRESSIVE] == {"progressive"}
    assert found[ONE_SHOT] == {"one_shot", "one_shot_cold", "one_shot_hot"}
    assert {"labels", "teacher"} == found[LABELS]
    assert len(found[TWO]) == 44


def test_a_checkpoint_by_a_rule_has_no_step():
    rule = {"at": {"accuracy": 0.7, "every": 100}, "steps": 100}
    settings = {"stage.number": 1, "stage.labels": "teacher", "stage.teacher.checkpoints": [rule, {"at": "last"}]}
    assert strategy(settings) == TWO
    assert first_checkpoint(settings) is None
    assert strategy(settings | {"stage.labels": "previous"}) is None
    assert strategy(settings | {"stage.teacher.checkpoints": [{"at": "last"}]}) == ONE_SHOT


def test_values_of_a_probe_are_of_the_options_with_most_rows():
    base = {"stage": 0, "pack": "p", "key": "a", "item": "x", "value": 1.0}
    rows = [base | {"step": 1, "probe": "ngrams"}, base | {"step": 1, "probe": "ngrams-every-4", "value": 2.0}]
    rows += [base | {"step": 2, "probe": "ngrams-every-4", "value": 3.0}, base | {"step": 9, "probe": "other"}]
    table = pa.Table.from_pylist(rows, SCHEMAS["probes"])
    assert by_step(table, "ngrams") == {"a": {1: {"x": 2.0}, 2: {"x": 3.0}}}
    assert by_step(table, "nonterminals") == {}
