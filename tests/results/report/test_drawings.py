"""What captions say of the replicates that a figure shows."""

import pytest

from results.report.drawings import draw_all
from results.report.family_sections import FAMILIES
from results.rows.summary import Replicate, Score
from results.store.schema import SCHEMAS
from tests.results.synthetic import manifest

ZERO, BOTH = "Replicates without an error stand", "diverged ones"


@pytest.mark.parametrize("conditions", [1, 5])  # columns, and the rows of a sweep
@pytest.mark.parametrize(
    ("clean", "diverged", "columns", "rows"),
    [
        (0, 0, "logarithmic axis.", "logarithmic axis. Each set"),
        (1, 0, f"{ZERO} below a break of the axis.", f"{ZERO} left of a break of the axis. Each set"),
        (
            0,
            1,
            "Diverged replicates stand above a break of the axis.",
            "Diverged replicates stand right of a break of the axis.",
        ),
        (
            1,
            1,
            f"{ZERO} below a break of the axis, {BOTH} above one.",
            f"{ZERO} left of a break of the axis, {BOTH} right of one.",
        ),
    ],
)
def test_a_caption_speaks_of_the_breaks_that_its_axis_has(conditions, clean, diverged, columns, rows):
    plan = manifest(4, names=tuple(f"condition {i}" for i in range(conditions)))
    known = []
    for number, (key, condition, init_seed, data_seed) in enumerate(plan["replicates"]):
        rate = 0.0 if clean and number == 0 else 0.01
        scores = {name: Score(int(rate * 1000), 1000, 100, rate, 0.0, 1.0) for name in ("sparse", "dense")}
        ended = ("diverged", {}) if diverged and number == 1 else ("finished", scores)
        known.append(
            Replicate(plan["conditions"][condition]["name"], 0, key, init_seed, data_seed, ended[0], 0.1, None, ended[1])
        )
    nothing = [SCHEMAS[table].empty_table() for table in ("replicates", "evaluations", "profiles", "curves")]
    caption = next(drawing.caption for drawing in draw_all(plan, known, *nothing, FAMILIES) if drawing.name == "errors")
    assert (columns if conditions == 1 else rows) in caption
    assert caption.count("break") == bool(clean or diverged)
