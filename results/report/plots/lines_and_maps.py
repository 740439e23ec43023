"""Heat maps of shares, and lines with bands over seeds. Plain values in, matplotlib figures out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import matplotlib as mpl
import matplotlib.ticker
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from results.report.family import Drawn
from results.report.plots.curves import MOST_BANDS, band
from results.report.plots.palette import INK, Style, colour_of, marker_of
from results.report.plots.panels import legend, titled_panels
from results.report.plots.plot_data import tell
from results.report.plots.tick_labels import plain
from results.rows.probe_values import Name, parts
from results.statistics.intervals import Floats

_MAP = "cividis"
_DARK, _LIGHT = "#101418", "#fdfdfd"  # of numbers in cells: not the page's colours, since the cells have their own
BANDS = (
    "Bold: the median over seeds; shading: from the 25 % to the 75 % quantile, with more than three lines only for the one you point at; "
    "thin: the best and the worst seed."
)


@dataclass(frozen=True)
class Bands:
    """Quantiles over the seeds at each x, all [points]: minimum, quartiles, maximum."""

    x: Floats
    least: Floats
    low: Floats
    middle: Floats
    high: Floats
    most: Floats


Panels = dict[str, dict[str, Bands]]  # by title, then by the name of a line


def bands_of(points: Iterable[tuple[float, Floats]]) -> Bands | None:
    """Bands from pairs of x and the values of the seeds there, in the order of x; None where no x has a value."""
    with_values = sorted(((x, values) for x, values in points if values.size), key=lambda point: point[0])
    if not with_values:
        return None
    rows = np.array([np.quantile(values, [0, 0.25, 0.5, 0.75, 1]) for _, values in with_values])
    return Bands(np.array([x for x, _ in with_values], dtype=np.float64), *rows.T)


def add_line(panels: Panels, panel: str, line: str, points: Iterable[tuple[float, Floats]]) -> None:
    """Add `bands_of` these points, if there are any, as a line of a panel."""
    bands = bands_of(points)
    if bands is not None:
        panels.setdefault(panel, {})[line] = bands


def common_points(rows: Sequence[Mapping[int, float]], whole: float | None = None) -> list[tuple[float, Floats]]:
    """(x, values of the seeds) at every x that all of them have; whole: x in per cent of this."""
    places = sorted(set.intersection(*(set(row) for row in rows))) if rows else []
    return [(place if whole is None else 100 * place / whole, np.array([row[place] for row in rows])) for place in places]


def heat_maps(
    tables: Mapping[str, Sequence[Sequence[float | None]]], rows: Sequence[str], columns: Sequence[str], label: str
) -> Figure:
    """Draw a panel for each table, two in a row: shares by row and column, in per cent in each cell; None is an empty cell."""
    width, height = max(0.47 * len(columns) + 1.1, 3.4), 0.3 * len(rows) + 0.9
    with titled_panels(tables, width, height, label, shared="y", columns=2) as (figure, panels):
        for panel, table in zip(panels, tables.values(), strict=True):
            values = np.array([[np.nan if cell is None else cell for cell in row] for row in table], dtype=np.float64)
            square_map(panel, values)
            for (i, j), value in np.ndenumerate(values):
                if np.isfinite(value):
                    ink = _DARK if value > 0.55 else _LIGHT
                    text = "100" if value >= 0.99995 else f"{100 * value:.1f}"
                    panel.text(j + 0.5, i + 0.5, text, ha="center", va="center", fontsize=7, color=ink)
            panel.set_xticks(np.arange(len(columns)) + 0.5, columns)
            panel.set_yticks(np.arange(len(rows)) + 0.5, rows)
    return figure


def attention_squares(values: Mapping[Name, float], probe: str, most: int) -> dict[tuple[int, int], Floats]:
    """The weights [query, key] that a probe wrote of each layer and head, of at most so many tokens; NaN where a query can't see."""
    weights: dict[tuple[int, int], dict[tuple[int, ...], float]] = {}
    for (name, layer, head, item), value in values.items():
        at = tuple(map(int, parts(item, "{n},{n}")))
        if name == probe and layer is not None and head is not None and at and max(at) < most:
            weights.setdefault((layer, head), {})[at] = value
    squares = {}
    for place, by_token in weights.items():
        size = 1 + max(map(max, by_token))
        squares[place] = np.full((size, size), np.nan)
        squares[place][tuple(zip(*by_token, strict=True))] = list(by_token.values())
    return squares


def square_map(panel: Axes, values: Floats) -> None:
    """Shares [rows, columns] as coloured squares, the first row at the top; NaN is an empty one."""
    panel.pcolormesh(np.ma.masked_invalid(values), cmap=_MAP, vmin=0, vmax=1, edgecolors="none")
    panel.set_ylim(len(values), 0)
    panel.tick_params(length=0)


def draw_bands(panel: Axes, bands: Bands, name: str, index: int, shaded: bool, edges: Style, style: Style) -> Line2D:
    """Draw a line with its bands in colour number `index`, and return the line.

    shaded: whether the quartiles are shown at once. edges: style of the best and the worst seed. style: of the median.
    """
    colour = colour_of(index)
    band(panel, bands.x, bands.low, bands.high, name, index, shaded)
    for edge in (bands.least, bands.most):
        (line,) = panel.plot(bands.x, edge, color=colour, **edges)
        tell(line, name)
    (middle,) = panel.plot(bands.x, bands.middle, color=colour, lw=2, **style)
    tell(middle, name)
    return middle


def lines(
    panels: Mapping[str, Mapping[str, Bands]],
    label: str,
    log: bool = False,
    marked: Sequence[float] = (),
    value: str = "accuracy",
    shared: Literal["y", "none"] = "y",
) -> Figure:
    """Draw a panel for each key with a line for each of its names: median bold, quartiles shaded, best and worst thin.

    marked: places of dashed vertical lines. shared: "y" for one vertical axis; with "none" each panel has its own, named by its title.
    """
    names = list(dict.fromkeys(name for by in panels.values() for name in by))
    with titled_panels(panels, 4.4, 3.6, label, value, shared, above=0.2 + 0.1 * len(names)) as (figure, axes):
        handles: dict[str, Line2D] = {}
        for panel, by in zip(axes, panels.values(), strict=True):
            for name, bands in by.items():
                style: Style = {"marker": marker_of(names.index(name)), "ms": 3.5} if len(bands.x) <= 40 else {}
                edges: Style = {"lw": 0.7, "alpha": 0.6}
                handles[name] = draw_bands(panel, bands, name, names.index(name), len(by) <= MOST_BANDS, edges, style)
            for x in marked:
                panel.axvline(x, color=INK, lw=0.8, ls="--", alpha=0.5)
            if log:
                panel.set_xscale("log")
                panel.xaxis.set_major_formatter(lambda x, _: plain(x))
            panel.grid(axis="y")
        legend(figure, handles)
    return figure


def drawn_lines(name: str, title: str, caption: str, panels: Panels, label: str, **options: Any) -> list[Drawn]:
    """The figure of `lines` in the form that sections return; [] where no panel has a line."""
    return [(name, title, caption, lines(panels, label, **options))] if panels else []


def steps(
    panels: Mapping[str, Mapping[str, Sequence[int | None]]],
    xs: Sequence[float],
    levels: Sequence[int],
    label: str,
    value: str,
) -> Figure:
    """Draw a panel for each key with a line for each name, the level reached at each x. None lies above a broken line, past the highest."""
    names = list(dict.fromkeys(name for by in panels.values() for name in by))
    place = {level: i for i, level in enumerate(levels)}
    with titled_panels(panels, 4.4, 3.6, label, value, "y", above=0.2 + 0.1 * len(names)) as (figure, axes):
        handles: dict[str, Line2D] = {}
        for panel, by in zip(axes, panels.values(), strict=True):
            for name, row in by.items():
                i = names.index(name)
                shift = 0.06 * (i - (len(names) - 1) / 2)  # equal lines stay apart
                at = [shift + (len(levels) if level is None else place[level]) for level in row]
                (handles[name],) = panel.plot(xs, at, color=colour_of(i), marker=marker_of(i), lw=1.6)
                tell(handles[name], name)
            panel.axhline(len(levels) - 0.5, color=INK, lw=0.8, ls="--", alpha=0.5)
            panel.set_xscale("log", base=2)
            panel.xaxis.set_major_formatter(lambda x, _: plain(x))
            panel.xaxis.set_major_locator(mpl.ticker.FixedLocator(list(xs)))
            panel.set_yticks(range(len(levels) + 1), [*map(str, levels), "more"])
        legend(figure, handles)
    return figure
