"""Every replicate's error by condition, with their density and their quartiles."""

import math
from collections.abc import Callable, Mapping

import numpy as np
import scipy
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from results.report.plots.error_axis import (
    Errors,
    ErrorScale,
    error_axis,
    error_scale,
    evenly,
    jitter,
    positive,
    with_quantiles,
)
from results.report.plots.palette import INK, PAPER, colour_of
from results.report.plots.panels import name_columns, titled_panels
from results.report.plots.plot_data import Rows, tell
from results.statistics.intervals import Floats, quantile


def errors_by_condition(errors: Mapping[str, Errors], rows: Mapping[str, Rows] | None = None) -> Figure:
    """One panel per evaluation set: violin of the positive log errors, every replicate, {min, 25 %, median, 75 %, max}.

    `errors` and `rows` are by set, then by condition. The widest violin of a panel is that of the condition with most positive errors.
    """
    scale = error_scale(*(with_quantiles(values) for by in errors.values() for values in by.values()))
    conditions = list(dict.fromkeys(name for by in errors.values() for name in by))
    with titled_panels(errors, max(1.25 * len(conditions), 2.6), 4.6, y="error rate", shared="y") as (figure, panels):
        for panel, (name, by) in zip(panels, errors.items(), strict=True):
            most = max((positive(values).size for values in by.values()), default=0)
            for i, condition in enumerate(conditions):
                before = set(panel.get_children())
                _strip(panel, scale, i, by.get(condition, np.empty(0)), colour_of(i), most)
                for artist in set(panel.get_children()) - before:
                    points = isinstance(artist, Line2D) and artist.get_marker() == "o"
                    tell(artist, condition, (rows or {}).get(name, {}).get(condition, ()) if points else ())
            name_columns(panel, conditions)
            error_axis(panel, scale, "y")
    return figure


def _strip(panel: Axes, scale: ErrorScale, at: int, errors: Floats, colour: str, most: int) -> None:
    """One condition's violin, points and quantile marks around x = `at`; `most` positive errors are a full-width violin."""
    logs = np.log10(positive(errors))
    if (violin := density(logs, 160)) is not None:
        places, shares = violin
        half = 0.4 * shares * math.sqrt(logs.size / most)
        panel.fill_betweenx(places, at - half, at + half, color=colour, alpha=0.2, lw=0)
    points_and_quantiles(panel, at, errors, colour, scale.place, 0.55 * jitter(errors, scale, 3))
    for chosen, place, above in ((errors == 0, scale.zero, -1), (np.isinf(errors), scale.infinite, 1)):
        if count := int(chosen.sum()):
            panel.annotate(
                f"{count} of {errors.size}",
                (at, place),
                (0, 15 * above),
                textcoords="offset points",
                ha="center",
                va="center",
                fontsize=8.5,
            )


def points_and_quantiles(
    panel: Axes,
    at: int,
    values: Floats,
    colour: str,
    place: Callable[[ArrayLike], Floats] = np.asarray,
    shift: Floats | float = 0.0,
) -> Line2D:
    """One point per replicate, spread around x = `at`, and marks at minimum, quartiles and maximum. `place`: coordinates of values, to
    which those of the points add `shift`. Returns the points."""
    places = place(values)
    spread = np.empty(values.size)
    spread[np.argsort(places, kind="stable")] = evenly(values.size, 2)
    size = 4.5 if values.size <= 60 else 2.6
    (points,) = panel.plot(at + 0.3 * spread, places + shift, "o", ms=size, mfc=colour, mec=PAPER, mew=0.3, alpha=0.75)
    if values.size:
        for q, reach in ((0.0, 0.14), (0.25, 0.22), (0.5, 0.34), (0.75, 0.22), (1.0, 0.14)):
            y = float(place(quantile(values, q)))
            panel.plot([at - reach, at + reach], [y, y], color=INK, lw=2.2 if q == 0.5 else 1, solid_capstyle="butt")
    return points


def density(values: Floats, points: int) -> tuple[Floats, Floats] | None:
    """Points from the smallest value to the largest, and the density there as a share of its maximum; None for too few values."""
    if values.size < 5 or np.ptp(values) == 0:
        return None
    places = np.linspace(values.min(), values.max(), points)
    at_places = scipy.stats.gaussian_kde(values)(places)
    return places, at_places / at_places.max()
