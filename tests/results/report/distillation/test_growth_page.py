"""The figure of steps by length holds the numbers of the rows, those that are never right included."""

import math

import numpy as np

from results.report.distillation.growth_page import by_length, steps_of
from results.rows.summary import Replicate
from results.rows.task_conditions import TaskConditions


def study(steps):
    """One seed a condition, right at the given step of three looks."""
    settings, members, seen = {}, {}, {}
    for (arm, length), step in steps.items():
        name = f"{arm}, task.length={length}"
        settings[name] = {"task.length": length}
        members[name] = [Replicate(name, 0, name, 0, 0, "finished", 0.1, None, {})]
        seen[name] = [(look, 0.95 if step is not None and look >= step else 0.5) for look in (100, 200, 400)]
    return TaskConditions(settings, members, {}), seen


def test_steps_are_those_of_the_looks_and_never_is_above_all():
    steps = {("one_shot", 20): 100, ("one_shot", 30): 200, ("one_shot", 40): None, ("labels", 20): 200, ("labels", 30): 400}
    arms = steps_of(*study(steps))
    assert arms == {"one_shot": {20: [100.0], 30: [200.0], 40: [math.inf]}}  # labels have two lengths alone
    (panel,) = by_length(arms).axes
    middle = next(line for line in panel.lines if len(line.get_xdata()) == 3)
    np.testing.assert_allclose(middle.get_xdata(), [20, 30, 40])
    np.testing.assert_allclose(middle.get_ydata(), [100, 200, 320])
