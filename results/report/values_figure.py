"""The values of experiments as figures: every replicate, its quartiles, and values by step, on a linear or a log axis by rule."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from results.report.figures import STYLE, Floats, label_rows, median_by_step, name_columns, points_and_quantiles, rows_of_panels
from results.report.palette import colour_of
from results.statistics.real_values import wants_log_axis

Values = Mapping[str, Floats]  # by condition; diverged replicates are left out
Curve = tuple[Floats, Floats]  # steps and values


def values_by_condition(values: Mapping[str, Values], log: Mapping[str, bool]) -> Figure:
    """A panel a metric: a point a replicate, and their quartiles; `log`: which metrics have a log axis."""
    conditions = list(dict.fromkeys(name for by in values.values() for name in by))
    with mpl.rc_context(STYLE):
        width = min(max(0.9 * len(conditions), 2.8), 12)
        figure, panels = rows_of_panels(len(values), width, 4.2, "none", columns=1 if width > 6 else None)
        for panel, (name, by) in zip(panels, values.items(), strict=True):
            panel.set_title(name)
            for place, condition in enumerate(conditions):
                points_and_quantiles(panel, place, by.get(condition, np.empty(0)), colour_of(place))
            name_columns(panel, conditions)
            panel.grid(axis="y")
            if log[name]:
                panel.set_yscale("symlog", linthresh=_smallest(by.values())) if _has_zero(by) else panel.set_yscale("log")
        label_rows(panels, "value of a replicate")
    return figure


def curves_by_condition(curves: Mapping[str, Sequence[Curve]], label: str, log: bool) -> Figure:
    """A panel a condition: each replicate's values by step, light, and their median, bold."""
    with mpl.rc_context(STYLE):
        figure, panels = rows_of_panels(len(curves), 4.1, 3.4, "y", columns=3)
        for place, (panel, (condition, by)) in enumerate(zip(panels, curves.items(), strict=True)):
            for steps, values in by:
                panel.plot(steps, values, color=colour_of(place), lw=0.7, alpha=0.35)
            panel.plot(*median_by_step(by), color=colour_of(place), lw=2)
            panel.set_title(condition)
            panel.set_xlabel("step")
            panel.grid(axis="y")
            if log:
                panel.set_yscale("log")
        label_rows(panels, label)
    return figure


def needs_log(by: Values) -> bool:
    return wants_log_axis(*by.values())


def _has_zero(by: Values) -> bool:
    return any((values == 0).any() for values in by.values())


def _smallest(groups: Any) -> float:
    return float(min(positive.min() for values in groups if (positive := values[values > 0]).size))
