import numpy as np
import pytest

from results.report.plots import figure_files
from results.report.plots.error_axis import error_scale
from results.report.plots.violins import effect_order, largest, sweep


def some(conditions: int = 426, replicates: int = 25) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    found = {f"c{i:03d}": 10 ** rng.normal(-3 + 2 * (i % 7) / 7, 0.5, replicates) for i in range(conditions)}
    for values in found.values():
        values[:2], values[2] = 0.0, np.inf
    return found


def test_conditions_are_in_the_order_of_their_median_and_diverged_ranks_worst() -> None:
    errors = {"base": np.array([0.1]), "worst": np.array([np.inf]), "zero": np.array([0.0]), "none": np.empty(0)}
    assert effect_order(errors, "base") == ["zero", "base", "worst"]
    with pytest.raises(ValueError, match="'gone' is none of the conditions"):
        effect_order(errors, "gone")


def test_the_largest_effects_are_kept_and_the_baseline_with_them() -> None:
    errors = {"base": np.array([1e-3]), "near": np.array([2e-3]), "far": np.array([0.5]), "zero": np.array([0.0])}
    assert largest(errors, "base", 3) == ["zero", "base", "far"]
    assert largest(errors, "base", 4) == ["zero", "base", "near", "far"]


def test_a_sweep_of_426_conditions_stays_small_and_draws_60_in_each_panel() -> None:
    errors = some()
    figure = sweep({"sparse": errors, "dense": errors}, "c000")
    assert [len(panel.get_yticks()) for panel in figure.axes] == [60, 60]
    assert "c000" in [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert len(figure_files.svg(figure)) < 600_000


def test_zeros_and_diverged_replicates_are_counted_in_bands_of_their_own() -> None:
    errors = {"base": np.array([0.0, 0.0, 0.0, 0.01, np.inf, np.inf]), "clean": np.zeros(4)}
    (panel,) = sweep({"sparse": errors}, "base").axes
    scale = error_scale(*errors.values(), [0.005])  # the median of base
    zeros, diverged = scale.zero - 0.045 * scale.span, scale.infinite + 0.045 * scale.span  # beside the marks of quantiles
    counts = {(round(text.xy[0], 9), text.get_text()) for text in panel.texts}
    assert counts == {(round(zeros, 9), "3"), (round(diverged, 9), "2"), (round(zeros, 9), "4")}
    (marks,) = [line for line in panel.lines if line.get_linewidth() == 2.0]
    left, right = panel.get_xlim()
    assert scale.low <= np.log10(0.005)  # no mark of a quantile lies in the band of zeros
    assert left < zeros < np.nanmin(marks.get_xdata()) <= np.nanmax(marks.get_xdata()) < diverged < right
    assert scale.zero < scale.low
    assert scale.infinite > scale.high
