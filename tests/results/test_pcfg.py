"""Strategies by what a study says of a student, the teacher of a student, and the three phases by the published curve and by shapes."""

import math

import pyarrow as pa
import pytest

from results.claims.evidence import flatten
from results.pcfg import (
    LABELS,
    ONE_SHOT,
    PROGRESSIVE,
    TWO,
    by_step,
    first_checkpoint,
    looks,
    phases,
    strategy,
    teacher_config,
    watched,
)
from results.schema import SCHEMAS
from tests.results.pcfg_rows import planned

# the teacher of figure 4.7: minus its loss by step, as read off the figure
PAPER = [(200, -1.03), (600, -1.03), (1000, -0.52), (2000, -0.18), (8000, -0.04)]


def test_three_phases_are_visible_in_the_papers_teacher():
    found = phases(PAPER)
    assert found.visible
    # it draws their borders at 600 and 2000
    assert 600 < found.begin < 800
    assert 1600 < found.end < 2000


@pytest.mark.parametrize(
    "value",
    [
        lambda t: t,  # one steady rise
        lambda t: 1 - math.exp(-t / 0.2),  # fast from the start: there is no first phase
        lambda t: max(0.0, (t - 0.5) / 0.5),  # no slow rest
        lambda t: 0.5,
        lambda t: -t,
    ],
)
def test_other_shapes_have_no_three_phases(value):
    found = phases([(step, value(step / 20)) for step in range(1, 21)])
    assert found is None or not found.visible


def test_a_step_in_the_middle_is_found_where_it_is():
    found = phases([(step, 0.3 + 0.5 / (1 + math.exp(-(step - 300) / 30))) for step in range(50, 2001, 50)])
    assert found.visible
    # the logistic curve is at 0.1 and 0.8 of its rise at -2.2 and 1.4 widths from the middle
    assert found.begin == pytest.approx(300 - 30 * math.log(9), abs=15)
    assert found.end == pytest.approx(300 + 30 * math.log(4), abs=15)
    assert phases([(1, 0.0), (2, 1.0), (3, 1.0)]) is None


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
    assert {"one_shot", "one_shot_cold"} == found[ONE_SHOT]
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


def test_looks_are_of_one_set_in_order_and_the_watched_set_has_most():
    base = {
        "key": "a",
        "stage": 0,
        "pack": "p",
        "weights": "raw",
        "set_hash": "0",
        "metric": "read",
        "sequences": 1,
        "count": 4,
    }
    rows = [base | {"set": "on", "step": step, "errors": errors} for step, errors in ((20, 1), (10, 2), (30, None))]
    rows[2]["count"] = None
    rows += [base | {"set": "on", "step": 20, "errors": 4, "weights": "ema"}, base | {"set": "end", "step": 30, "errors": 0}]
    table = pa.Table.from_pylist(rows, SCHEMAS["evaluations"])
    assert looks(table, "on", "read") == {"a": [(10, 0.5), (20, 0.75)]}
    assert watched(table) == "on"
    assert watched(table.filter(pa.compute.field("set") == "end")) is None
