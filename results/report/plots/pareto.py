"""One error against another: every replicate's rates on two sets, and the Pareto front of them."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from results.report.plots.error_axis import error_axis, error_scale, jitter
from results.report.plots.palette import COLOURS, INK, MARKERS, PAPER, Style, colour_of, marker_of
from results.report.plots.panels import legend, titled_panels
from results.report.plots.plot_data import Rows, tell
from results.rows.plural import counted
from results.statistics.intervals import Floats

# by condition, the error rates of its replicates across and up; infinity is diverged
Pairs = Mapping[str, tuple[Floats, Floats]]
LOOKS = len(COLOURS) * len(MARKERS)  # conditions that a legend can tell apart
COUNTED = 12  # conditions, up to which the legend counts their replicates


def front(x: Floats, y: Floats) -> Floats:
    """The Pareto front of error rates, [points, 2] by rising x: no replicate is at least as good in both and better in one.

    Diverged replicates (infinity) are never on it; equal points appear once.
    """
    finite = np.isfinite(x) & np.isfinite(y)
    pairs = np.unique(np.stack([x[finite], y[finite]], axis=1), axis=0)  # sorted by x, then y
    if not len(pairs):
        return pairs
    best_before = np.concatenate([[np.inf], np.minimum.accumulate(pairs[:, 1])[:-1]])
    return pairs[pairs[:, 1] < best_before]


def caption(errors: Pairs, x_set: str, y_set: str) -> str:
    rates = _all(errors)
    clean, best = int((rates == 0).all(axis=0).sum()), front(*rates)
    parts = [
        f"Each point is one of {rates.shape[1]:,} replicates: its error rate on “{y_set}” against that on “{x_set}”, at the last step."
    ]
    if ((rates == 0) | np.isinf(rates)).any():
        parts.append(
            "Replicates without an error stand in a band beside the axes, diverged ones in a band at the far edges; the place inside a "
            "band has no meaning."
        )
    if clean:
        parts.append(f"The Pareto front is the corner: {counted(clean, 'replicate')} without an error on either set.")
    elif len(best):
        parts.append(
            f"Circles on a stepped line mark the Pareto front, {counted(len(best), 'pair')} of rates: no other replicate is better on one "
            "set without being worse on the other."
        )
    return " ".join(parts)


def draw(errors: Pairs, x_set: str, y_set: str, rows: Rows) -> Figure:
    """Every replicate's error on one set against another, by condition; zeros and diverged in bands along both axes.

    rows: by condition, the place of each replicate in the study's list.
    """
    x, y = _all(errors)
    horizontal, vertical = error_scale(x), error_scale(y)
    # points of a category spread across its band, each axis by its own sequence
    places = np.stack([horizontal.place(x) + jitter(x, horizontal, 2), vertical.place(y) + jitter(y, vertical, 3)])
    named = len(errors) <= LOOKS
    size = 6 if len(x) <= 300 else 5 if len(x) <= 2000 else 4
    across, up = f"error rate, {x_set}", f"error rate, {y_set}"
    with titled_panels([""], 5.3, 5.2, across, up, above=0.1 * len(errors) * named) as (figure, (panel,)):
        handles: dict[str, Line2D] = {}
        ends = np.cumsum([len(rates) for rates, _ in errors.values()])
        for i, (condition, points) in enumerate(zip(errors, np.split(places, ends[:-1], axis=1), strict=True)):
            clean = int((np.maximum(*errors[condition]) == 0).sum())
            label = f"{condition}: {points.shape[1]}, {clean} at zero on both" if len(errors) <= COUNTED else condition
            # the fewer a condition has in the crowded corner, the further in front it is
            style: Style = {
                "ms": size,
                "mfc": colour_of(i),
                "mec": PAPER,
                "mew": 0.4,
                "alpha": 0.8,
                "zorder": 3 + 1 / (1 + clean),
            }
            (handles[label],) = panel.plot(*points, marker=marker_of(i), ls="none", **style)
            tell(handles[label], condition, rows[condition])
        best_x, best_y = front(x, y).T
        circles: Style = {"marker": "o", "ms": 9, "mfc": "none", "mec": INK, "mew": 1.4}
        panel.plot(
            horizontal.place(best_x), vertical.place(best_y), color=INK, lw=1.4, drawstyle="steps-post", zorder=5, **circles
        )
        error_axis(panel, horizontal, "x")
        error_axis(panel, vertical, "y")
        if named:
            legend(figure, handles)
    return figure


def _all(errors: Pairs) -> Floats:
    """The rates of all conditions, [2, replicates]."""
    return np.concatenate([np.stack(pair) for pair in errors.values()], axis=1)
