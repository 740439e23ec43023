"""The figures of steps by length and by heads hold the numbers of the rows, those that are never right included."""

import math

import numpy as np

from results.claims.evidence import Condition
from results.report.distillation import heads_page
from results.report.distillation.growth_page import by_size, steps_of
from results.rows.summary import Replicate, replicates_of
from results.store.manifest import newest_manifest
from results.store.tables import committed, open_store, read
from tests.rounding import rounded


def study(steps):
    """One seed per condition, right at the given step of three looks."""
    conditions, seen = [], {}
    for (arm, length), step in steps.items():
        name = f"{arm}, task.length={length}"
        replicate = Replicate(name, 0, name, 0, 0, "finished", 0.1, None, {})
        conditions.append(Condition(name, {"task.length": length}, (replicate,)))
        seen[name] = [(look, 0.95 if step is not None and look >= step else 0.5) for look in (100, 200, 400)]
    return conditions, seen


def test_steps_are_those_of_the_looks_and_never_is_above_all():
    steps = {("one_shot", 20): 100, ("one_shot", 30): 200, ("one_shot", 40): None, ("labels", 20): 200, ("labels", 30): 400}
    arms = steps_of(*study(steps))
    assert arms == {"one_shot": {20: [100.0], 30: [200.0], 40: [math.inf]}}  # labels have two lengths alone
    (panel,) = by_size(arms, "length", 0.9).axes
    middle = next(line for line in panel.lines if len(line.get_xdata()) == 3)
    assert middle.get_xdata().tolist() == rounded([20, 30, 40])
    assert middle.get_ydata().tolist() == rounded([100, 200, 320])


def test_steps_by_heads_are_those_of_the_first_look_at_three_quarters():
    """The committed study of heads: an axis holds the dimensions of a head, the width, or both."""
    store = open_store("docs/studies/distillation", "p6")
    manifest, finished = newest_manifest(store)[1], committed(store)
    known = replicates_of(manifest, finished, read(store, "evaluations"), read(store, "failures"))
    ((name, _, _, figure),) = heads_page.drawings(store, manifest, known, finished)
    assert name == "steps-by-heads"
    steps = {}
    for row in read(store, "evaluations").to_pylist():
        if row["set"] == "online" and 1 - row["errors"] / row["count"] >= 0.75:
            steps[row["key"]] = min(row["step"], steps.get(row["key"], math.inf))
    of_condition = {}
    for each in known:
        of_condition.setdefault(each.condition, []).append(steps.get(each.key, math.inf))
    lines = {line.get_label(): line for line in figure.axes[0].lines if len(line.get_xdata()) == 3}
    medians = [np.median(of_condition[f"model.heads={heads}, model.width={8 * heads}"]) for heads in (2, 4, 8)]
    assert next(iter(lines.values())).get_ydata() == rounded(medians)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["8 dimensions a head", "width 64", "32 dimensions a head and width 64, heads averaged"]
