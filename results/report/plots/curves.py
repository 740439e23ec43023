"""Values by training step: a line for each replicate, bands, and what is bold over them."""

import math
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import matplotlib as mpl
import matplotlib.ticker
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from results.report.plots.error_axis import error_axis, error_scale
from results.report.plots.palette import colour_of
from results.report.plots.panels import MANY_PANELS, legend, light_and_bold, titled_panels
from results.report.plots.plot_data import Rows, tell
from results.statistics.intervals import Floats, quantile

Curve = tuple[Floats, Floats]  # steps and values
MOST_BANDS = 3  # shaded bands of a panel that can be told apart


def error_curves(curves: Mapping[str, Sequence[Curve]], rows: Rows | None = None) -> Figure:
    """One panel per condition: each replicate's (step, error): raw error light, best so far bold."""
    scale = error_scale(*(error for by in curves.values() for _, error in by))
    with _panels_by_step(curves, "error rate") as (figure, panels):
        for i, (panel, (condition, by)) in enumerate(zip(panels, curves.items(), strict=True)):
            colour, many = colour_of(i), len(by) > 12
            bold = float(np.clip(4 / math.sqrt(max(len(by), 1)), 0.15, 0.9))
            light_curves(
                panel, i, [(step, scale.place(error)) for step, error in by], condition, (rows or {}).get(condition, ())
            )
            for step, error in by:
                best = scale.place(np.fmin.accumulate(error))
                (line,) = panel.plot(step, best, color=colour, lw=1.2 if many else 2, alpha=bold, drawstyle="steps-post")
                tell(line, condition)
            error_axis(panel, scale, "y")
        legend(figure, light_and_bold("raw error of one replicate", "its best so far"))
    return figure


def loss_curves(curves: Mapping[str, Sequence[Curve]], rows: Rows | None = None) -> Figure:
    """One panel per condition: each replicate's (step, training loss) light, and the median over replicates bold."""
    with _panels_by_step(curves, "training loss") as (figure, panels):
        for i, (panel, (condition, by)) in enumerate(zip(panels, curves.items(), strict=True)):
            positive = [(step, np.where(loss > 0, loss, np.nan)) for step, loss in by]
            light_curves(panel, i, positive, condition, (rows or {}).get(condition, ()))
            steps, middle = median_by_step(by)
            (median,) = panel.plot(
                steps, np.where(np.isfinite(middle) & (middle > 0), middle, np.nan), color=colour_of(i), lw=2
            )
            tell(median, condition)
            panel.set_yscale("log")
            if len(panels) > MANY_PANELS:
                panel.yaxis.set_minor_locator(mpl.ticker.NullLocator())
            panel.grid(axis="y")
        legend(figure, light_and_bold("one replicate", "median (diverged ranks worst)"))
    return figure


def _panels_by_step(conditions: Collection[str], y: str) -> AbstractContextManager[tuple[Figure, list[Axes]]]:
    return titled_panels(conditions, 4.1, 3.4, "training step", y, "y", above=0.6, columns=3)


def light_curves(panel: Axes, index: int, curves: Sequence[Curve], name: str = "", rows: Sequence[int] = ()) -> None:
    """A light line for each replicate of a condition. rows: the place of each in the study's list."""
    for place, (steps, values) in enumerate(curves):
        dot = "o" if len(steps) == 1 else None  # a line needs two points
        (line,) = panel.plot(steps, values, color=colour_of(index), lw=0.7, alpha=faint(len(curves)), marker=dot, ms=3)
        if name:
            tell(line, name, rows[place : place + 1])


def band(
    panel: Axes, x: Floats, low: Floats, high: Floats, name: str, index: int, shown: bool, alpha: float = 0.16, **style: Any
) -> None:
    """Shade the area between two lines. shown: always; else a page shows it only while a reader points at the name."""
    shaded = panel.fill_between(x, low, high, color=colour_of(index), alpha=alpha, lw=0, **style)
    shaded.set_visible(shown)
    tell(shaded, name, quiet=not shown)


def median_by_step(curves: Sequence[Curve]) -> tuple[Floats, Floats]:
    """The steps at which any of these (steps, values) has a value, and the median there; NaN ranks worst."""
    values: dict[float, list[float]] = {}
    for steps, curve in curves:
        for step, value in zip(steps, curve, strict=True):
            values.setdefault(float(step), []).append(math.inf if math.isnan(value) else float(value))
    at = sorted(values)
    return np.array(at), np.array([quantile(values[step], 0.5) for step in at])


def faint(curves: int) -> float:
    return float(np.clip(1.6 / math.sqrt(max(curves, 1)), 0.07, 0.45))
