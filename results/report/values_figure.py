"""The values of experiments as figures: every replicate, its quartiles, and values by step, on a linear or a log axis by rule."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from results.report.figures import INK, PAPER, STYLE, Floats, _spread, label_rows, rows_of_panels
from results.report.palette import Style, colour_of
from results.statistics.intervals import quantile
from results.statistics.real_values import wants_log_axis

Values = Mapping[str, Floats]  # by condition; diverged replicates are left out
Curve = tuple[Floats, Floats]  # steps and values


def values_by_condition(values: Mapping[str, Values], log: Mapping[str, bool]) -> Figure:
    """A panel a metric: a point a replicate, and their quartiles; `log`: which metrics have a log axis."""
    conditions = list(dict.fromkeys(name for by in values.values() for name in by))
    turned: Style = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"}
    if len(conditions) <= 4 and max(map(len, conditions), default=0) <= 12:
        turned = {}
    with mpl.rc_context(STYLE):
        width = min(max(0.9 * len(conditions), 2.8), 12)
        figure, panels = rows_of_panels(len(values), width, 4.2, "none", columns=1 if width > 6 else None)
        for panel, (name, by) in zip(panels, values.items(), strict=True):
            panel.set_title(name)
            for place, condition in enumerate(conditions):
                _strip(panel, place, by.get(condition, np.empty(0)), colour_of(place))
            panel.set_xlim(-0.6, len(conditions) - 0.4)
            panel.set_xticks(range(len(conditions)), conditions, **turned)
            panel.tick_params(axis="x", length=0)
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
            at: dict[float, list[float]] = {}
            for line_steps, values in by:
                panel.plot(line_steps, values, color=colour_of(place), lw=0.7, alpha=0.35)
                for step, value in zip(line_steps, values, strict=True):
                    at.setdefault(float(step), []).append(float(value))
            steps = sorted(at)
            panel.plot(steps, [quantile(at[step], 0.5) for step in steps], color=colour_of(place), lw=2)
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


def _strip(panel: Axes, place: int, values: Floats, colour: str) -> None:
    order = np.argsort(values, kind="stable")
    spread = np.empty(values.size)
    spread[order] = _spread(values.size, 2)
    size = 4.5 if values.size <= 60 else 2.6
    panel.plot(place + 0.3 * spread, values, "o", ms=size, mfc=colour, mec=PAPER, mew=0.3, alpha=0.75)
    if values.size:
        for q, reach in ((0.0, 0.14), (0.25, 0.22), (0.5, 0.34), (0.75, 0.22), (1.0, 0.14)):
            at = quantile(values, q)
            panel.plot([place - reach, place + reach], [at, at], color=INK, lw=2.2 if q == 0.5 else 1, solid_capstyle="butt")
