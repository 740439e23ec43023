import math

import numpy as np
import pytest

from results.report.family_sections import FAMILIES
from results.report.plots.error_axis import error_scale
from results.report.plots.errors_by_distance import Profile, errors_by_distance, rate_quartiles
from results.report.plots.figure_files import svg
from results.report.plots.survival_figure import LINES, MOST, baseline, choose, curve, draw, steps, survival_drawing
from results.rows.summary import Replicate, Score
from tests.results.claims.claim_rows import condition, manifest


def replicate(name: str, seed: int, error: float | None = None, status: str = "finished") -> Replicate:
    scores = {} if error is None else {"rare": Score(int(error * 1000), 1000, 100, error, 0.0, 1.0)}
    return Replicate(name, 0, f"{name}{seed}", seed, seed, status, 0.1, None, scores)


def study() -> list[Replicate]:
    """Four with a number, one diverged, one missing, one without a teacher."""
    errors = [0.0, 0.0, 0.001, 0.1]
    others = [(None, "diverged"), (None, "missing"), (None, "no_transition")]
    ended = [replicate("c0", seed, error) for seed, error in enumerate(errors)]
    return ended + [replicate("c0", 4 + i, error, status) for i, (error, status) in enumerate(others)]


def test_zeros_and_diverged_ones_are_steps_at_the_edges() -> None:
    each = curve(study(), "rare")
    scale = error_scale(each.x, [math.inf])
    places, (share, low, high) = steps(each, scale)
    assert share.tolist() == [1, 0.6, 0.4, 0.2, 0, 0]  # of the five with a number
    assert places.tolist() == pytest.approx([scale.limits()[0], scale.zero, -3, -1, scale.infinite, scale.limits()[1]])
    assert (np.diff(places) > 0).all()
    assert (low <= share).all()
    assert (share <= high).all()
    assert each.most.tolist() == pytest.approx(
        [4 / 6, 3 / 6, 2 / 6]
    )  # the missing one may err, the one without a teacher is no trial
    assert each.least.tolist() == pytest.approx([3 / 6, 2 / 6, 1 / 6])


def test_without_any_number_the_band_is_everything_and_no_curve_is_drawn() -> None:
    each = curve([replicate("c0", seed, None, "missing") for seed in range(3)], "rare")
    _, (share, low, high) = steps(each, error_scale(each.x))
    assert np.isnan(share[1])
    assert (low[1], high[1]) == (0, 1)
    assert "<svg" in svg(draw({"rare": {"c0": each}}))


def test_the_claims_baseline_comes_first_and_at_most_eight_are_shown() -> None:
    plan = manifest({"R2": {"value": 1.0}}, [condition(1, model__name="lstm")] + [condition(1 + (i == 9)) for i in range(10)])
    groups = {f"c{i}": [replicate(f"c{i}", seed, 0.01) for seed in range(1 + (i == 10))] for i in range(11)}
    assert baseline(plan, groups, FAMILIES) == "c10"  # the plain transformer with most replicates
    assert choose(groups, "c10") == ["c10", *(f"c{i}" for i in range(7))]
    caption, make = survival_drawing(plan, groups, ["rare"], FAMILIES)
    figure = make()
    assert "8 of 11 conditions are shown." in caption
    assert len({(line.get_color(), line.get_linestyle()) for line in figure.axes[0].lines if len(line.get_xdata()) > 2}) == MOST


def test_a_study_without_claims_or_with_no_plain_transformer_keeps_its_order() -> None:
    groups = {"c0": [replicate("c0", 0, 0.01)], "c1": [replicate("c1", 0, 0.0)]}
    lstms = [condition(1, model__name="lstm")] * 2
    for plan in (manifest({}, [condition(1)] * 2), manifest({"R2": {"value": 1.0}}, lstms)):
        assert baseline(plan, groups, FAMILIES) is None
        assert "conditions are shown" not in survival_drawing(plan, groups, ["rare"], FAMILIES)[0]
    assert choose(groups, None) == ["c0", "c1"]
    assert len(set(LINES)) == len(LINES)


def test_a_profile_shows_the_quartiles_over_replicates_where_there_are_reads() -> None:
    errors, count = np.array([[0, 1.0], [0, 2], [4, 0]]), np.array([[10, 10.0], [10, 10], [10, 0]])
    profile = Profile(np.array([1.0, 2.0]), np.array([2.0, 4.0]), errors, count)
    assert rate_quartiles(profile).tolist() == [pytest.approx(row) for row in ([0, 0.125], [0, 0.15], [0.2, 0.175])]
    figure = errors_by_distance({"rare": {"c0": profile}}, "distance")
    assert [line.get_linestyle() for line in figure.axes[0].lines].count("--") == 1
    assert len(figure.axes[0].collections) == 1


def test_bins_of_one_number_each_stand_on_a_linear_axis() -> None:
    """Such as levels from 0, which has no place on a logarithmic axis."""
    lo = np.arange(5.0)
    errors, count = np.ones((3, 5)), np.full((3, 5), 10.0)
    figure = errors_by_distance({"rare": {"c0": Profile(lo, lo + 1, errors, count)}}, "level")
    (panel,) = figure.axes
    assert panel.get_xscale() == "linear"
    assert {0, 1, 2, 3, 4} <= set(panel.get_xticks())
    assert lo.tolist() in [line.get_xdata().tolist() for line in panel.lines if len(line.get_xdata()) == 5]
    binned = errors_by_distance({"rare": {"c0": Profile(lo + 1, 2 * lo + 2, errors, count)}}, "distance")
    assert binned.axes[0].get_xscale() == "log"
