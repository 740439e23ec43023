"""The values of experiments as figures: every replicate, its quartiles, and values by step, on a linear or a log axis by rule."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from results.report.page_template import format_real
from results.report.plots.curves import Curve, light_curves, median_by_step
from results.report.plots.error_axis import error_axis, error_scale, jitter, with_quantiles
from results.report.plots.errors_by_condition import points_and_quantiles
from results.report.plots.palette import colour_of
from results.report.plots.panels import name_columns, titled_panels
from results.report.plots.plot_data import tell
from results.statistics.intervals import Floats

Values = Mapping[str, Floats]  # by condition; diverged replicates are left out
# by condition, of each of its replicates: the place in the study's list, the seed
Places = Mapping[str, Sequence[tuple[int, int]]]


def values_by_condition(values: Mapping[str, Values], log: Mapping[str, bool], places: Mapping[str, Places]) -> Figure:
    """Draw a panel for each metric, with a point for each replicate and their quartiles. log: which metrics have a log axis; zeros
    lie below its break. places: by metric, of the replicates that `values` has."""
    conditions = list(dict.fromkeys(name for by in values.values() for name in by))
    width = min(max(0.9 * len(conditions), 2.8), 12)
    columns = 1 if width > 6 else None
    with titled_panels(values, width, 4.2, y="value of a replicate", columns=columns) as (figure, panels):
        for panel, (name, by) in zip(panels, values.items(), strict=True):
            scale = error_scale(*map(with_quantiles, by.values())) if log[name] else None
            for column, condition in enumerate(conditions):
                values_of, colour, before = by.get(condition, np.empty(0)), colour_of(column), set(panel.get_children())
                if scale is None:
                    points = points_and_quantiles(panel, column, values_of, colour)
                else:
                    shift = 0.55 * jitter(values_of, scale, 3)
                    points = points_and_quantiles(panel, column, values_of, colour, scale.place, shift)
                for artist in set(panel.get_children()) - before:
                    tell(artist, condition)
                whose = places[name].get(condition, ())
                said = [
                    f"{condition}: seed {seed}, {name} {format_real(float(value))}"
                    for (_, seed), value in zip(whose, values_of, strict=True)
                ]
                tell(points, condition, [place for place, _ in whose], texts=said)
            name_columns(panel, conditions)
            if scale is None:
                panel.grid(axis="y")
            else:
                error_axis(panel, scale, "y")
    return figure


def curves_by_condition(curves: Mapping[str, Sequence[Curve]], label: str, log: bool) -> Figure:
    """One panel per condition: each replicate's values by step, light, and their median, bold."""
    with titled_panels(curves, 4.1, 3.4, "step", label, "y", columns=3) as (figure, panels):
        for place, (panel, (condition, by)) in enumerate(zip(panels, curves.items(), strict=True)):
            light_curves(panel, place, by, condition)
            (median,) = panel.plot(*median_by_step(by), color=colour_of(place), lw=2)
            tell(median, condition)
            panel.grid(axis="y")
            if log:
                panel.set_yscale("log")
    return figure
