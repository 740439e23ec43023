"""Figures in the style of reports: panels with titles, columns with names, legends."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import matplotlib as mpl
import matplotlib.ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from results.report.plots.palette import INK, PAPER, Style, colour_of, marker_of
from results.report.plots.plot_data import name_panel
from results.report.plots.tick_labels import plain_linear_labels, plain_log_labels

# panels of a figure, above which only the first row and column get room for axes, and axes have no minor ticks
MANY_PANELS = 12
WIDEST_NAME = 28  # characters of the name of a column
STYLE: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana"],  # each text of an SVG names them all
    "font.size": 10,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titley": 1.0,  # where it fits; finding that out would take a quarter of a figure's time
    "axes.spines.top": False,
    "axes.spines.right": False,
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color", "grid.color"), INK),
    "figure.facecolor": PAPER,
    "axes.facecolor": "none",
    "grid.alpha": 0.13,
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "text.parse_math": False,  # a "$" in a name is a dollar
    "svg.fonttype": "none",
    "svg.hashsalt": "manyseeds",
}


@contextmanager
def titled_panels(
    titles: Collection[str],
    width: float,
    height: float,
    x: str = "",
    y: str = "",
    shared: Literal["y", "none"] = "none",
    above: float = 0.0,
    columns: int | None = None,
) -> Iterator[tuple[Figure, list[Axes]]]:
    """A figure in the style of reports with a panel of `width` × `height` inches for each title, to be drawn into. They stand in rows of at
    most `columns`: by default 3, and 2 × 2 for 4, to be legible on a page.

    x, y: names of the axes, the vertical one's at the left end of every row. above: room in inches for a legend.
    """
    count = len(titles)
    columns = min(max(count, 1), columns or (2 if count == 4 else 3))
    rows = -(-max(count, 1) // columns)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width * columns + 0.9, height * rows + above), layout="constrained")
        axes = list(figure.subplots(rows, columns, sharey=shared == "y", squeeze=False).flat)
        for panel, title in zip(axes, titles, strict=False):
            panel.set_title(_fitting(title, width, 0.9 / columns))
            name_panel(panel, title)
            panel.set_xlabel(x)
        for panel in axes[:count:columns]:
            panel.set_ylabel(y)
        for unused in axes[count:]:
            unused.set_axis_off()
        yield figure, axes[:count]
        plain_log_labels(figure)
        plain_linear_labels(figure)


def name_columns(panel: Axes, conditions: Sequence[str]) -> None:
    """Conditions as the names of columns, turned where they would not fit side by side; long ones are shortened."""
    conditions = [shortened(name, WIDEST_NAME) for name in conditions]
    fit = len(conditions) <= 4 and max(map(len, conditions), default=0) <= 12
    turned: Style = {} if fit else {"rotation": 35, "ha": "right", "rotation_mode": "anchor"}
    panel.set_xlim(-0.6, len(conditions) - 0.4)
    panel.set_xticks(range(len(conditions)), conditions, **turned)
    panel.tick_params(axis="x", length=0)


def share_axis(panel: Axes) -> None:
    """Make the vertical axis one of shares from 0 to 1, labelled in per cent."""
    panel.set_ylim(-0.02, 1.02)
    panel.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "25 %", "50 %", "75 %", "100 %"])


def legend(figure: Figure, handles: Mapping[str, Line2D]) -> None:
    if len(handles) > 1:
        # a character takes about 6 points, and 40 go to the line or marker and its margins
        names = [_visible(shortened(name, int((figure.get_figwidth() * 72 - 40) / 6))) for name in handles]
        columns = min(max(1, int(figure.get_figwidth() * 72 / (6 * max(map(len, names)) + 40))), 4)
        # a row takes 0.2 inches; a figure has room for two entries a row
        figure.set_figheight(figure.get_figheight() + max(0.0, 0.2 * -(-len(names) // columns) - 0.1 * len(names)))
        figure.legend(list(handles.values()), names, loc="outside upper left", ncols=columns, handletextpad=0.5)


def mark(index: int) -> Line2D:
    """A legend entry with the colour and the marker of condition number `index`."""
    return Line2D([], [], color=colour_of(index), marker=marker_of(index), ls="none", ms=8)


def light_and_bold(light: str, bold: str) -> dict[str, Line2D]:
    return {light: Line2D([], [], color=INK, lw=0.8, alpha=0.4), bold: Line2D([], [], color=INK, lw=2)}


def shortened(name: str, most: int) -> str:
    """The name in at most so many characters: a longer one goes without the sections of its options, then without its middle."""
    if len(name) > most:
        name = re.sub(r"\b(task|model|train|experiment)\.", "", name)
    return name if len(name) <= most else f"{name[: most // 2]}…{name[len(name) - (most - 1) // 2 :]}"


def _fitting(title: str, width: float, beside: float) -> str:
    """The title of a panel of this width in inches, shortened where it would reach over the room beside it too."""
    if len(title) * 12 <= 72 * width:  # no letter is wider
        return title
    bold = mpl.font_manager.FontProperties(family="DejaVu Sans", weight="bold", size=STYLE["axes.titlesize"])
    points = float(mpl.textpath.TextPath((0, 0), title.replace("$", "S"), prop=bold).get_extents().width)
    return title if points <= 72 * (width + beside) - 8 else shortened(title, int(len(title) * (72 * width - 8) / points))


def _visible(name: str) -> str:
    """Put a zero-width space before a leading underscore: matplotlib leaves labels that start with one out of the legend."""
    return f"\u200b{name}" if name.startswith("_") else name
