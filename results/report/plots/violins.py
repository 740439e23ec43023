"""The figure of a sweep: one row per condition, ordered by how far its median error is from the baseline's.

Each evaluation set has an order of its own. Replicates without an error and diverged ones have bands of their own, with counts.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from results.report.page_template import format_rate
from results.report.plots.error_axis import Errors, ErrorScale, error_axis, error_scale, positive, with_quantiles
from results.report.plots.errors_by_condition import density
from results.report.plots.palette import COLOURS, INK, PAPER, Style
from results.report.plots.panels import shortened, titled_panels
from results.report.plots.plot_data import tell
from results.statistics.intervals import Floats, quantile

MAX_CONDITIONS, MAX_DOTS = 60, 6  # most conditions drawn for a set; most dots in one band of a condition
WIDEST_ROW = 44  # characters of the name of a row
Points = dict[Any, list[Floats]]  # coordinates [2, points], by what they look like
MARKS = ((0.0, 0.16), (0.25, 0.26), (0.5, 0.4), (0.75, 0.26), (1.0, 0.16))  # quantile and half height of its mark


def effect_order(errors: Errors, baseline: str) -> list[str]:
    """Conditions by median error, best first; those without a replicate that has a number are left out.

    The median of a fixed baseline divides all of them, so this is also the order of the ratios to it; equal ones stay in the
    study's order. Raises ValueError where `baseline` is none of the conditions.
    """
    if baseline not in errors:
        raise ValueError(f"the baseline {baseline!r} is none of the conditions: use one of {', '.join(list(errors)[:5])}")
    return sorted((name for name in errors if errors[name].size), key=lambda name: quantile(errors[name], 0.5))


def largest(errors: Errors, baseline: str, most: int = MAX_CONDITIONS) -> list[str]:
    """At most `most` conditions in the order of `effect_order`: the baseline and those whose median is furthest from its own.

    The distance is in places of the axis, where zero and diverged lie beyond the decades, so no zero becomes a small number.
    """
    order = effect_order(errors, baseline)
    if len(order) <= most:
        return order
    scale = error_scale(*map(with_quantiles, errors.values()))
    middle = scale.place([quantile(errors[name], 0.5) for name in order])
    centre = middle[order.index(baseline)] if baseline in order else float(np.median(middle))
    distance = np.where(np.array(order) == baseline, np.inf, np.abs(middle - centre))
    kept = {order[i] for i in np.argsort(-distance, kind="stable")[:most]}
    return [name for name in order if name in kept]


def sweep(errors: Mapping[str, Errors], baseline: str, most: int = MAX_CONDITIONS) -> Figure:
    """One panel per evaluation set, one row per condition: violin of the positive log errors, {min, 25 %, median, 75 %, max}, counts.

    `errors` is by set, then by condition: error rates of the replicates, infinity for a diverged one. The baseline has a rule
    at its median and a bold name. Raises ValueError where `baseline` is none of a set's conditions.
    """
    chosen = {name: largest(by, baseline, most) for name, by in errors.items()}
    scale = error_scale(*(with_quantiles(by[condition]) for name, by in errors.items() for condition in chosen[name]))
    rows = max(map(len, chosen.values()), default=1)
    with titled_panels(errors, 5.2, 0.23 * rows + 1.3, "error rate", columns=2) as (figure, panels):
        for panel, (name, by) in zip(panels, errors.items(), strict=True):
            marks: Points = {}
            dots: Points = {}
            for row, condition in enumerate(chosen[name]):
                _row(panel, scale, row, by[condition], COLOURS[1] if condition == baseline else COLOURS[0], marks, dots)
            for width, points in marks.items():
                panel.plot(*np.concatenate(points, axis=1), color=INK, lw=width, solid_capstyle="butt")
            for colour, points in dots.items():
                panel.plot(*np.concatenate(points, axis=1), "o", ms=2.2, mfc=colour, mec="none")
            error_axis(panel, scale, "x", counts=0.07)
            medians = [scale.place(quantile(by[condition], 0.5)) for condition in chosen[name]]
            (pointed,) = panel.plot(medians, range(len(medians)), ls="none")
            tell(pointed, "", texts=[_said(condition, by[condition]) for condition in chosen[name]])
            if by[baseline].size:
                middle = float(scale.place(quantile(by[baseline], 0.5)))
                panel.axvline(middle, color=COLOURS[1], lw=0.9, ls=(0, (4, 3)))
            panel.set_ylim(len(chosen[name]) - 0.4, -0.6)
            panel.set_yticks(range(len(chosen[name])), [shortened(each, WIDEST_ROW) for each in chosen[name]], fontsize=8.5)
            for condition, label in zip(chosen[name], panel.get_yticklabels(), strict=True):
                label.set_fontweight("bold" if condition == baseline else "normal")
            panel.tick_params(axis="y", length=0)
    return figure


def _said(condition: str, errors: Floats) -> str:
    """The text that a page shows for a row that a reader points at."""
    least, _, median, _, most = (format_rate(quantile(errors, q)) for q, _ in MARKS)
    return (
        f"{condition}: median {median}, from {least} to {most}; {int((errors == 0).sum())} of {errors.size} replicates without an error, "
        f"{int(np.isinf(errors).sum())} diverged"
    )


def _row(panel: Axes, scale: ErrorScale, at: int, errors: Floats, colour: str, marks: Points, dots: Points) -> None:
    """Draw a row, and add its marks by their width and its dots by their colour: those of one kind are drawn at once, as one path."""
    logs = np.log10(positive(errors))
    if (violin := density(logs, 32)) is not None:
        places, shares = violin
        panel.fill_between(places, at - 0.4 * shares, at + 0.4 * shares, color=colour, alpha=0.28, lw=0)
    elif logs.size:
        panel.plot(logs, np.full(logs.size, at), "o", ms=3, mfc=colour, mec=PAPER, mew=0.3)
    places = scale.place([quantile(errors, q) for q, _ in MARKS])
    for width, chosen in ((0.9, (0, 1, 3, 4)), (2.0, (2,))):
        x = np.repeat(places[list(chosen)], 3)
        y = np.ravel([(at - MARKS[i][1], at + MARKS[i][1], np.nan) for i in chosen])
        marks.setdefault(width, []).append(np.array([x, y]))
    for members, place in ((errors == 0, scale.zero), (np.isinf(errors), scale.infinite)):
        if count := int(members.sum()):
            drawn = min(count, MAX_DOTS)
            spread = 0.05 * scale.span * (np.arange(drawn) / max(MAX_DOTS - 1, 1) - 0.5)
            dots.setdefault(colour, []).append(np.array([place + spread, np.full(drawn, at + 0.22)]))
            side = -1 if place == scale.zero else 1  # beside the marks, at the far end of the band
            style: Style = {"ha": "right" if side < 0 else "left", "va": "center", "fontsize": 7}
            panel.annotate(str(count), (place + side * 0.045 * scale.span, at), **style)
