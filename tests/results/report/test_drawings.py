"""What captions say of the replicates that a figure shows."""

import pytest

from results.report.drawings import _profile, draw_all
from results.report.family_sections import FAMILIES
from results.rows.summary import Replicate, Score
from results.store.schema import SCHEMAS
from tests.results.synthetic import manifest

ZERO, BOTH = "Replicates without an error stand", "diverged ones"


def _caption(plan, known):
    nothing = [SCHEMAS[table].empty_table() for table in ("replicates", "evaluations", "profiles", "curves")]
    return next(drawing.caption for drawing in draw_all(plan, known, *nothing, FAMILIES) if drawing.name == "errors")


def test_a_caption_speaks_of_the_line_of_the_baseline_only_where_it_is_drawn():
    """A baseline without a number, as where all of its replicates failed, has no median."""
    plan, scores = manifest(1, names=tuple("abcde")), {"sparse": Score(1, 1000, 100, 0.001, 0.0, 1.0)}
    known = [
        Replicate(name, 0, name, 0, 0, *(("failed", None, None, {}) if name == "a" else ("finished", None, None, scores)))
        for name in "abcde"
    ]
    assert _caption(plan, known).endswith(" Each set has its own order, by the median.")
    known[0] = Replicate("a", 0, "a", 0, 0, "finished", None, None, scores)
    assert _caption(plan, known).endswith(" by the median; the dashed line is the median of the baseline, “a”.")


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
    caption = _caption(plan, known)
    assert (columns if conditions == 1 else rows) in caption
    assert caption.count("break") == bool(clean or diverged)


def test_a_profile_has_the_replicates_in_the_studys_order_in_whichever_files_their_rows_stand():
    one, other = {(0, 1): (3, 10), (1, 2): (0, 10)}, {(0, 1): (1, 10)}
    places = {("a", 0): 4, ("b", 0): 2}
    for by in ({("a", 0): one, ("b", 0): other}, {("b", 0): other, ("a", 0): one}):
        profile = _profile(by, places)
        assert profile.rows == [2, 4]
        assert profile.errors.tolist() == [[1, 0], [3, 0]]
