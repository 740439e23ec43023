"""A figure as data, which a page draws again so that a reader can point at it: `plot_data` reads it off a matplotlib figure.

A section draws with matplotlib alone and describes an artist by `tell` (its condition, the replicate of each point). The page shows this
where a reader points, and hides the artist where a reader clicks on the condition's name. scripts/figures.js draws it with uPlot.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import Collection, PathCollection, PolyCollection, QuadMesh
from matplotlib.colors import to_hex, to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Annotation, Text
from numpy.typing import NDArray

from results.report.plots.palette import COLOURS, INK, PAPER

Spec = dict[str, Any]
Rows = Mapping[str, Sequence[int]]  # by condition, the place of each of its replicates in the study's list
_FINE = 4000  # distinct places along an axis
_PALETTE = {colour.lower(): i for i, colour in enumerate(COLOURS, 1)} | {INK: "ink", PAPER: "paper"}
_DASHES = {"--": [6, 4], ":": [2, 3], "-.": [6, 3, 2, 3]}


@dataclass(frozen=True)
class Told:
    """The description of an artist.

    name: such as its condition. rows: each point's replicate as a place in the study's list, or one for all. quiet: drawn only while a
    reader points at the name. texts: of each point, where the page can't make them from its replicate.
    """

    name: str
    rows: Sequence[int] = ()
    quiet: bool = False
    texts: Sequence[str] = ()


@dataclass(frozen=True)
class NotDrawable(Exception):
    """The figure holds an artist that a page can't draw."""

    what: str


# attributes of artists and axes, so that they stay with a figure that is sent to another process
_TOLD, _LOGS, _TITLE = "_told", "_log_coordinates", "_whole_title"


def tell(artist: Artist, name: str, rows: Sequence[int] = (), quiet: bool = False, texts: Sequence[str] = ()) -> None:
    """Attach a description (`Told`) to an artist."""
    vars(artist)[_TOLD] = Told(name, rows, quiet, texts)


def log_coordinates(panel: Axes, direction: str) -> None:
    """Mark the coordinates along an axis of a panel, "x" or "y", as logarithms to base 10."""
    vars(panel).setdefault(_LOGS, set()).add(direction)


def name_panel(panel: Axes, title: str) -> None:
    """Attach the whole title of a panel, which the figure's files may show shortened."""
    vars(panel)[_TITLE] = title


def plot_data(figure: Figure) -> Spec:
    """{"panels": …, "columns": most of a row} for JSON. Raises NotDrawable where the figure holds what scripts/figures.js does not draw."""
    panels: list[tuple[Axes, Spec]] = []
    for axes in figure.axes:
        if not axes.axison:
            continue
        twin = next(
            (panel for panel in panels if panel[0].get_subplotspec() == axes.get_subplotspec() and axes.get_subplotspec()), None
        )
        if twin is None:
            panels.append((axes, _panel(axes)))
        else:
            _add_twin(twin[1], axes)
    grids = [spec.get_gridspec().ncols for axes, _ in panels if (spec := axes.get_subplotspec()) is not None]
    return {"panels": [panel for _, panel in panels], "columns": max(grids, default=1)}


def _panel(axes: Axes) -> Spec:
    size = axes.get_window_extent()
    return {
        "title": vars(axes).get(_TITLE) or axes.get_title(loc="left") or axes.get_title(),
        "x": _axis(axes, "x"),
        "y": _axis(axes, "y"),
        "shape": [round(size.width / axes.figure.dpi, 2), round(size.height / axes.figure.dpi, 2)],  # inches
        "marks": _marks(axes),
    }


def _axis(axes: Axes, direction: str) -> Spec:
    axis, (low, high) = (axes.xaxis, axes.get_xlim()) if direction == "x" else (axes.yaxis, axes.get_ylim())
    limits = _logged(axis, np.array([low, high]))
    step = abs(limits[1] - limits[0]) / _FINE
    ticks = [
        [_short(place, step), label]
        for places, formatter in (
            (axis.get_majorticklocs(), axis.get_major_formatter()),
            (axis.get_minorticklocs(), axis.get_minor_formatter()),
        )
        if len(shown := [place for place in places if min(low, high) <= place <= max(low, high)])
        for place, label in zip(_logged(axis, np.array(shown)), formatter.format_ticks(shown), strict=True)
        if label
    ]
    numeric = axis.get_scale() == "log" or direction in vars(axes).get(_LOGS, ())
    named = not isinstance(axis.get_major_formatter(), mpl.ticker.ScalarFormatter) and not numeric
    return {
        "label": axis.get_label_text(),
        "from": float(limits[0]),
        "to": float(limits[1]),
        "ticks": ticks,
        "grid": any(line.get_visible() for line in axis.get_gridlines()),
        "kind": "log" if numeric else "names" if named else "linear",
        **({"bands": 1} if direction in vars(axes).get(_LOGS, ()) else {}),  # beyond its breaks
    }


def _logged(axis: Any, values: NDArray[np.float64]) -> NDArray[np.float64]:
    if axis.get_scale() != "log":
        return values
    return np.log10(values, out=np.full(values.shape, np.nan), where=values > 0)


def _marks(axes: Axes) -> list[Spec]:
    artists = [
        artist
        for artist in axes.get_children()
        if isinstance(artist, Line2D | Collection | Rectangle | Text | mpl.image.AxesImage)
    ]
    drawn = []
    for artist in sorted(artists, key=lambda artist: artist.get_zorder()):
        if artist is axes.patch or (
            isinstance(artist, Text) and not isinstance(artist, Annotation) and artist not in axes.texts
        ):
            continue
        told: Told | None = vars(artist).get(_TOLD)
        if not artist.get_visible() and not (told is not None and told.quiet):
            continue
        mark = _mark(axes, artist)
        if mark is not None:
            label = str(artist.get_label())
            if told is not None:
                mark |= {"name": told.name} if told.name else {}
                mark |= {"rows": list(told.rows)} if told.rows else {}
                mark |= {"texts": list(told.texts)} if told.texts else {}
                mark |= {"quiet": 1} if told.quiet else {}
            elif not label.startswith("_"):
                mark["name"] = label
            drawn.append(mark)
    return drawn


def _mark(axes: Axes, artist: Artist) -> Spec | None:
    if isinstance(artist, Line2D):
        return _line(axes, artist)
    if isinstance(artist, Rectangle):
        return _rectangle(axes, artist)
    if isinstance(artist, Text):
        return _text(axes, artist)
    if isinstance(artist, QuadMesh):
        return _cells(artist)
    if isinstance(artist, PolyCollection):
        colour, alpha = _colour(artist.get_facecolor()[0])
        return {"area": [_points(axes, path.vertices) for path in artist.get_paths()], "c": colour, "a": alpha}
    if isinstance(artist, PathCollection):
        face, edge = artist.get_facecolor(), artist.get_edgecolor()
        colour, alpha = _colour((face if len(face) else edge)[0])
        size = float(np.sqrt(artist.get_sizes()[0]))
        return {**_points(axes, np.asarray(artist.get_offsets())), "m": "o", "r": size / 2, "c": colour, "a": alpha, "w": 0}
    raise NotDrawable(type(artist).__name__)


def _line(axes: Axes, line: Line2D) -> Spec | None:
    x_data, y_data = line.get_transform().contains_branch_seperately(axes.transData)
    colour, alpha = _colour(line.get_color())
    alpha = round(alpha if line.get_alpha() is None else float(line.get_alpha() or 0), 2)
    width = 0.0 if line.get_linestyle() in ("None", "none", "") else round(float(line.get_linewidth()), 2)
    look: Spec = {"c": colour, "a": alpha, "w": width} | (
        {"d": _DASHES[str(line.get_linestyle())]} if line.get_linestyle() in _DASHES else {}
    )
    x, y = np.asarray(line.get_xdata(), dtype=np.float64), np.asarray(line.get_ydata(), dtype=np.float64)
    if not (x_data and y_data):
        place, direction = (x, "x") if x_data else (y, "y")
        if not (x_data or y_data) or not place.size:
            return None
        at = float(_logged(axes.xaxis if x_data else axes.yaxis, place[:1])[0])
        return {"break" if width == 0 else "rule": direction, "at": at, **look}
    marker = line.get_marker()
    if marker not in (None, "None", "none", "", " "):
        look |= {"m": marker if isinstance(marker, str) else "o", "r": round(float(line.get_markersize()) / 2, 2)}
        face = line.get_markerfacecolor()
        if isinstance(face, str) and face == "none":
            look |= {"hollow": 1, "c": _colour(line.get_markeredgecolor())[0]}
        else:
            look["c"] = _colour(face)[0] if width == 0 else colour
        every = line.get_markevery()
        if every is not None:
            look["every"] = list(every) if isinstance(every, tuple) else [0, every if isinstance(every, int) else 1]
    if "steps" in line.get_drawstyle():
        look["s"] = 1
    return {**_points(axes, np.column_stack([x, y])), **look}


def _rectangle(axes: Axes, patch: Rectangle) -> Spec:
    x_data, y_data = patch.get_data_transform().contains_branch_seperately(axes.transData)
    colour, alpha = _colour(patch.get_facecolor())
    (x, y), width, height = patch.get_xy(), patch.get_width(), patch.get_height()
    corners = np.array([[x, y], [x + width, y], [x + width, y + height], [x, y + height]], dtype=np.float64)
    if x_data and y_data:
        return {"area": [_points(axes, corners)], "c": colour, "a": alpha}
    ends = corners[[0, 2], 0 if x_data else 1]
    return {
        "span": "x" if x_data else "y",
        "ends": _logged(axes.xaxis if x_data else axes.yaxis, ends).tolist(),
        "c": colour,
        "a": alpha,
    }


def _text(axes: Axes, text: Text) -> Spec | None:
    if not text.get_text():
        return None
    place = text.xy if isinstance(text, Annotation) else text.get_position()
    shift = text.xyann if isinstance(text, Annotation) and text.anncoords == "offset points" else (0, 0)
    colour, _ = _colour(text.get_color())
    points = _points(axes, np.array([place], dtype=np.float64))
    look = {
        "c": colour,
        "size": round(float(text.get_fontsize()), 1),
        "h": text.get_horizontalalignment(),
        "v": text.get_verticalalignment(),
        "shift": list(shift),
    }
    return {"text": text.get_text(), "x": points["x"][0], "y": points["y"][0], **look}


def _cells(mesh: QuadMesh) -> Spec:
    shape = np.asarray(mesh.get_coordinates()).shape
    values: NDArray[np.float64] = np.ma.filled(np.ma.asarray(mesh.get_array(), dtype=np.float64), np.nan)  # type: ignore[arg-type]
    values = values.reshape(shape[0] - 1, shape[1] - 1)
    cells = [
        [column, row, to_hex(tuple(np.asarray(mesh.cmap(mesh.norm(np.array(value)))).tolist())), _short(float(value), 1e-4)]
        for (row, column), value in np.ndenumerate(values)
        if np.isfinite(value)
    ]
    return {"cells": cells}


def _points(axes: Axes, vertices: Any) -> Spec:
    columns = np.asarray(vertices, dtype=np.float64)
    entries = {}
    for name, axis, values, limits in (
        ("x", axes.xaxis, columns[:, 0], axes.get_xlim()),
        ("y", axes.yaxis, columns[:, 1], axes.get_ylim()),
    ):
        ends = _logged(axis, np.array(limits))
        step = abs(float(ends[1] - ends[0])) / _FINE
        entries[name] = [_short(value, step) for value in _logged(axis, values).tolist()]
    return entries


def _add_twin(panel: Spec, axes: Axes) -> None:
    """Add the marks of a second vertical axis, moved to the first one's coordinates, and its ticks on the right."""
    right, left = _axis(axes, "y"), panel["y"]
    scale = (left["to"] - left["from"]) / (right["to"] - right["from"])

    def moved(value: float | None) -> float | None:
        return None if value is None else left["from"] + (value - right["from"]) * scale

    for mark in _marks(axes):
        if "y" in mark and isinstance(mark["y"], list):
            panel["marks"].append(mark | {"y": [moved(value) for value in mark["y"]], "right": 1})
    panel["right"] = right | {"ticks": [[moved(place), label] for place, label in right["ticks"]]}


def _colour(colour: Any) -> tuple[int | str, float]:
    """A number of the page's palette, "ink", "paper" or a colour, and the opacity."""
    *_, alpha = to_rgba(colour)
    name = to_hex(colour)
    return _PALETTE.get(name, name), round(float(alpha), 3)


def _short(value: float, step: float) -> float | None:
    """A number rounded to the digits that can be seen."""
    if not np.isfinite(value):
        return None
    digits = max(0, int(np.ceil(-np.log10(step)))) if step > 0 else 6
    short = round(float(value), digits)
    return int(short) if short == int(short) else short
