"""The report's figures: every replicate, on log axes where zero is a category of its own and never a small number.

Each function takes plain values and returns a matplotlib Figure; `results.report.figure_files` turns it into bytes that are the same
for the same values. Colours are Okabe and Ito's, legible on dark and light; text and axes of inlined figures take the page's colour.
"""

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import matplotlib as mpl
import matplotlib.ticker
import numpy as np
import scipy
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from results.report.page_template import superscript
from results.report.palette import INK, PAPER, Style, colour_of, marker_of
from results.report.plot_data import log_coordinates, name_panel, tell
from results.statistics.intervals import Floats, quantile

Errors = Mapping[str, Floats]  # error rates of a condition's replicates; infinity is diverged
Curve = tuple[Floats, Floats]  # steps and values
Rows = Mapping[str, Sequence[int]]  # by condition, the place of each of its replicates in the study's list

NO_ERROR = 0.05  # chance of no error in a bin whose rate is the upper bound drawn for it, if its reads were independent
MANY_PANELS = (
    12  # panels of a figure, above which only the first row and column get room for axes, and axes have no minor ticks
)
MOST_BANDS = 3  # shaded bands of a panel that can be told apart
LARGEST_SINGLE = 32  # distance up to which a linear axis is legible
NONE = 0.7  # place of the distance 0 on a logarithmic axis
WIDEST_NAME = 28  # characters of the name of a column
MAX_LINES = 300  # light lines of single replicates over distance; more are left out, the pooled rate stays
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


@dataclass(frozen=True)
class ErrorScale:
    """Places on an error axis: log10 of the rate, with room below for zeros and above for diverged replicates.

    `low` and `high` are whole decades; the categories lie beyond a break in the axis.
    """

    low: int
    high: int
    zeros: bool
    diverged: bool

    @property
    def zero(self) -> float:
        return self.low - 0.16 * self.span

    @property
    def infinite(self) -> float:
        return self.high + 0.14 * self.span

    @property
    def span(self) -> float:
        return max(self.high - self.low, 2)

    def place(self, errors: ArrayLike) -> Floats:
        """Coordinates of error rates; zeros and infinities go to their own category, and NaN stays NaN."""
        values = np.asarray(errors, dtype=np.float64)
        logs = np.log10(values, out=np.zeros_like(values), where=(values > 0) & np.isfinite(values))
        logs = np.where(np.isnan(values), np.nan, logs)
        return np.where(values == 0, self.zero, np.where(np.isinf(values), self.infinite, logs))

    def limits(self) -> tuple[float, float]:
        below = self.zero - 0.07 * self.span if self.zeros else self.low - 0.03 * self.span
        above = self.infinite + 0.07 * self.span if self.diverged else self.high + 0.03 * self.span
        return below, above


def error_scale(*errors: ArrayLike) -> ErrorScale:
    """The decades that hold all positive rates, at least two of them, and whether there are zeros and diverged replicates."""
    values = np.concatenate([np.empty(0), *(np.asarray(e, dtype=np.float64).ravel() for e in errors)])
    logs = np.log10(positive(values))
    low = math.floor(logs.min()) if logs.size else -2
    high = math.ceil(logs.max()) if logs.size else 0
    return ErrorScale(min(low, high - 2), high, bool((values == 0).any()), bool(np.isinf(values).any()))


def errors_by_condition(errors: Mapping[str, Errors], rows: Mapping[str, Rows] | None = None) -> Figure:
    """A panel an evaluation set: violin of the positive log errors, every replicate, {min, 25 %, median, 75 %, max}.

    `errors` and `rows` are by set, then by condition. The widest violin of a panel is that of the condition with most positive errors.
    """
    scale = error_scale(*(values for by in errors.values() for values in by.values()))
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


@dataclass(frozen=True)
class Profile:
    """Errors by distance of one condition's replicates: bins [lo, hi); `errors` and `count` are [replicates, bins].

    rows: the place of each replicate in the study's list.
    """

    lo: Floats
    hi: Floats
    errors: Floats
    count: Floats
    rows: Sequence[int] = ()


def rate_quartiles(profile: Profile) -> Floats:
    """25 %, 50 % and 75 % quantiles of the rate over replicates with a read there, as [3, bins]; NaN for none.

    Not an interval of the pooled rate: clustered by replicate, a 95 % one covers 72 to 94 % of tails such as these with 12 replicates.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = profile.errors / profile.count
    return np.array([[quantile(column[~np.isnan(column)], q) for column in rates.T] for q in (0.25, 0.5, 0.75)])


def each_is_drawn(profiles: Mapping[str, Mapping[str, Profile]]) -> bool:
    """Whether a figure over distance shows every replicate by a light line."""
    return sum(len(profile.errors) for by in profiles.values() for profile in by.values()) <= MAX_LINES


def bins_are_single(profiles: Mapping[str, Mapping[str, Profile]]) -> bool:
    """Whether each bin of a figure over distance holds one small whole number, such as a depth; its axis is linear then."""
    every = [profile for by in profiles.values() for profile in by.values()]
    return all(bool((each.hi - each.lo == 1).all() and (each.lo <= LARGEST_SINGLE).all()) for each in every)


def errors_by_distance(profiles: Mapping[str, Mapping[str, Profile]], axis_label: str) -> Figure:
    """A panel an evaluation set: bold, the rate pooled over a condition's replicates; light, each; dashed and shaded, their quartiles.

    A bin without an error has an open triangle at its upper bound, never a point at 0; quartiles are left out where the reads of one
    replicate are too few to show the pooled rate.
    """
    rates = {(name, condition): _rates(profile) for name, by in profiles.items() for condition, profile in by.items()}
    every, single = each_is_drawn(profiles), bins_are_single(profiles)
    scale = error_scale(*(values for rate in rates.values() for values in rate))
    conditions = list(dict.fromkeys(condition for by in profiles.values() for condition in by))
    with titled_panels(profiles, 4.1, 3.8, axis_label, "error rate", "y", 0.2 + 0.1 * len(conditions)) as (figure, panels):
        handles: dict[str, Line2D] = {}
        for panel, (name, by) in zip(panels, profiles.items(), strict=True):
            for condition, profile in by.items():
                i = conditions.index(condition)
                colour = colour_of(i)
                centre = profile.lo if single else np.sqrt(np.maximum(profile.lo, NONE) * np.maximum(profile.hi - 1, NONE))
                of_replicates, pooled, bounds, (low, median, high) = rates[name, condition]
                for row, rate in enumerate(of_replicates if every else ()):
                    (light,) = panel.plot(centre, scale.place(rate), color=colour, lw=0.7, alpha=faint(len(of_replicates)))
                    tell(light, condition, profile.rows[row : row + 1])
                band(panel, centre, scale.place(low), scale.place(high), condition, i, len(by) <= MOST_BANDS)
                (dashed,) = panel.plot(centre, scale.place(median), color=colour, lw=1.2, ls="--")
                open_marks: Style = {"marker": "v", "ms": 6, "mfc": "none", "mec": colour, "ls": "none"}
                (above,) = panel.plot(centre, scale.place(bounds), **open_marks)
                style: Style = {"marker": marker_of(i), "ms": 4, "mec": PAPER, "mew": 0.4, "lw": 2}
                (handles[condition],) = panel.plot(centre, scale.place(pooled), color=colour, **style)
                for artist in (dashed, above, handles[condition]):
                    tell(artist, condition)
            if not single:
                panel.set_xscale("log", base=2)
                panel.xaxis.set_major_locator(DistanceLocator(base=2))
                panel.xaxis.set_major_formatter(lambda value, _: "0" if value == NONE else f"{value:g}")
                panel.xaxis.set_minor_locator(mpl.ticker.NullLocator())
            error_axis(panel, scale, "y")
        legend(figure, handles)
    return figure


def _rates(profile: Profile) -> tuple[Floats, Floats, Floats, Floats]:
    """By bin: the rate of each replicate and of all (NaN without an error), the upper bound of all without one, and the quartiles."""
    errors, reads = profile.errors.sum(0), profile.count.sum(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        of_replicates = np.where(profile.errors > 0, profile.errors / profile.count, np.nan)
        pooled = np.where(errors > 0, errors / reads, np.nan)
        of_one = 1 - NO_ERROR ** (1 / np.median(profile.count, axis=0))
        bounds = np.where((errors == 0) & (reads > 0), 1 - NO_ERROR ** (1 / reads), np.nan)
        quartiles = rate_quartiles(profile)
        shown = (of_one <= pooled) & ((quartiles[0] > 0) | (of_one <= pooled / 10))
    return of_replicates, pooled, bounds, np.where(shown, quartiles, np.nan)


def error_curves(curves: Mapping[str, Sequence[Curve]], rows: Rows | None = None) -> Figure:
    """A panel a condition: each replicate's (step, error): raw error light, best so far bold."""
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
    """A panel a condition: each replicate's (step, training loss) light, and the median over replicates bold."""
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
    """A point a replicate, spread around x = `at`, and marks at minimum, quartiles and maximum; `place`: coordinates of values, to which
    those of the points add `shift`. Returns the points."""
    places = place(values)
    spread = np.empty(values.size)
    spread[np.argsort(places, kind="stable")] = _spread(values.size, 2)
    size = 4.5 if values.size <= 60 else 2.6
    (points,) = panel.plot(at + 0.3 * spread, places + shift, "o", ms=size, mfc=colour, mec=PAPER, mew=0.3, alpha=0.75)
    if values.size:
        for q, reach in ((0.0, 0.14), (0.25, 0.22), (0.5, 0.34), (0.75, 0.22), (1.0, 0.14)):
            y = float(place(quantile(values, q)))
            panel.plot([at - reach, at + reach], [y, y], color=INK, lw=2.2 if q == 0.5 else 1, solid_capstyle="butt")
    return points


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


def mark(index: int) -> Line2D:
    """A legend entry with the colour and the marker of condition number `index`."""
    return Line2D([], [], color=colour_of(index), marker=marker_of(index), ls="none", ms=8)


def error_axis(panel: Axes, scale: ErrorScale, direction: Literal["x", "y"], counts: float | None = None) -> None:
    """Decades, the categories beyond the breaks, a band behind each, and two strokes where the axis is broken.

    counts: room beyond each category for its counts, in spans of the axis.
    """
    below, above = scale.limits()
    room = scale.span * (counts if counts is not None else 0.075 if direction == "y" else 0.0)
    limits = (below - room * scale.zeros, above + room * scale.diverged)
    step = max(1, -(-(scale.high - scale.low) // 7))
    ticks = [(float(k), _power(k)) for k in range(scale.high, scale.low - 1, -step)]
    breaks = []
    if scale.zeros:
        ticks.append((scale.zero, "0"))
        breaks.append(scale.low - 0.07 * scale.span)
    if scale.diverged:
        ticks.append((scale.infinite, "diverged"))
        breaks.append(scale.high + 0.06 * scale.span)
    places, labels = [place for place, _ in ticks], [label for _, label in ticks]
    horizontal = direction == "x"
    log_coordinates(panel, direction)
    (panel.set_xlim if horizontal else panel.set_ylim)(*limits)
    (panel.set_xticks if horizontal else panel.set_yticks)(places, labels)
    band = panel.axvspan if horizontal else panel.axhspan
    for category in labels:
        if category in ("0", "diverged"):
            edge = breaks[0] if category == "0" else breaks[-1]
            band(*((limits[0], edge) if category == "0" else (edge, limits[1])), color=INK, alpha=0.055, lw=0)
    panel.grid(axis=direction)
    stroke: Style = {
        "marker": [(-0.5, -1), (0.5, 1)] if horizontal else [(-1, -0.5), (1, 0.5)],
        "ms": 9,
        "mec": INK,
        "mew": 1,
        "ls": "none",
    }
    for edge in breaks:
        for shift in (-0.012, 0.012):
            at = edge + shift * scale.span
            x, y = ([at], [0.0]) if horizontal else ([0.0], [at])
            transform = panel.get_xaxis_transform() if horizontal else panel.get_yaxis_transform()
            panel.plot(x, y, transform=transform, clip_on=False, zorder=5, **stroke)


def legend(figure: Figure, handles: Mapping[str, Line2D]) -> None:
    if len(handles) > 1:
        # a character takes about 6 points, and 40 go to the line or marker and its margins
        names = [_visible(shortened(name, int((figure.get_figwidth() * 72 - 40) / 6))) for name in handles]
        columns = min(max(1, int(figure.get_figwidth() * 72 / (6 * max(map(len, names)) + 40))), 4)
        # a row takes 0.2 inches; a figure has room for two entries a row
        figure.set_figheight(figure.get_figheight() + max(0.0, 0.2 * -(-len(names) // columns) - 0.1 * len(names)))
        figure.legend(list(handles.values()), names, loc="outside upper left", ncols=columns, handletextpad=0.5)


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


def positive(errors: Floats) -> Floats:
    """The error rates that have a place on a logarithmic axis."""
    return errors[(errors > 0) & np.isfinite(errors)]


def density(values: Floats, points: int) -> tuple[Floats, Floats] | None:
    """Points from the smallest value to the largest, and the density there as a share of its maximum; None for too few values."""
    if values.size < 5 or np.ptp(values) == 0:
        return None
    places = np.linspace(values.min(), values.max(), points)
    at_places = scipy.stats.gaussian_kde(values)(places)
    return places, at_places / at_places.max()


def jitter(errors: Floats, scale: ErrorScale, base: int) -> Floats:
    """Shifts that spread the replicates of a category (zero or diverged) over its strip; 0 for all other rates."""
    shifts = np.zeros(errors.size)
    for category in (errors == 0, np.isinf(errors)):
        shifts[category] = 0.055 * scale.span * _spread(int(category.sum()), base)
    return shifts


def _spread(n: int, base: int) -> Floats:
    """n places that fill -1 … 1 evenly whatever n is (van der Corput's sequence), the same every time."""
    index, places, digit = np.arange(1, n + 1), np.zeros(n), 1 / base
    while index.any():
        places += digit * (index % base)
        index, digit = index // base, digit / base
    return 2 * places - 1


def faint(curves: int) -> float:
    return float(np.clip(1.6 / math.sqrt(max(curves, 1)), 0.07, 0.45))


class PlainLogFormatter(mpl.ticker.LogFormatter):
    """Labels the ticks that `LogFormatter` would, as `plain` writes them."""

    def __call__(self, value: float, pos: int | None = None) -> str:
        return plain(value) if super().__call__(value, pos) else ""


class DistanceLocator(mpl.ticker.LogLocator):
    """Powers, and the place of the distance 0 where the axis reaches it."""

    def tick_values(self, vmin: float, vmax: float) -> Any:
        ticks = np.asarray(super().tick_values(vmin, vmax))
        return np.array([NONE, *ticks[ticks >= 1]]) if min(vmin, vmax) <= NONE else ticks


class RoomyLocator(mpl.ticker.AutoLocator):
    """The ticks of `AutoLocator`; fewer where their labels would overlap along a horizontal axis, or only whole numbers."""

    def __init__(self, panel: Axes, whole: bool) -> None:
        super().__init__()
        self._panel, self._whole = panel, whole
        self.set_params(integer=whole)

    def tick_values(self, vmin: float, vmax: float) -> Any:
        ticks = np.asarray(super().tick_values(vmin, vmax))
        shown = ticks[(ticks >= min(vmin, vmax)) & (ticks <= max(vmin, vmax))]
        labels = self._panel.xaxis.get_major_formatter().format_ticks(shown.tolist())
        points = self._panel.get_window_extent().width * 72 / self._panel.figure.dpi
        room = int(points / (6.4 * max(map(len, labels), default=1) + 2))  # of labels of 10 points
        if len(shown) <= max(room, 2):
            return ticks
        fewer = mpl.ticker.MaxNLocator(max(room - 1, 1), steps=[1, 2, 2.5, 5, 10], integer=self._whole)
        return fewer.tick_values(vmin, vmax)


class PowerFormatter(mpl.ticker.ScalarFormatter):
    """Labels with their own power of ten: matplotlib's stands above the axis, where the title of the panel is."""

    def __init__(self) -> None:
        super().__init__(useOffset=False)

    def __call__(self, value: float, pos: int | None = None) -> str:
        label, power = super().__call__(value, pos), super().get_offset().replace("\N{MINUS SIGN}", "-")  # such as 1e-10
        return f"{label}×{_power(int(power.removeprefix('1e')))}" if value and power else label

    def get_offset(self) -> str:
        return ""


def plain_linear_labels(figure: Figure) -> None:
    """Give linear axes that still have matplotlib's own ticks and labels such ones as neither overlap each other nor the title."""
    for panel in figure.axes:
        for axis in (panel.xaxis, panel.yaxis):
            if axis.get_scale() != "linear" or type(axis.get_major_formatter()) is not mpl.ticker.ScalarFormatter:
                continue
            if axis is panel.yaxis:
                axis.set_major_formatter(PowerFormatter())
            elif type(axis.get_major_locator()) is mpl.ticker.AutoLocator:
                axis.set_major_locator(RoomyLocator(panel, _whole(panel)))


def _whole(panel: Axes) -> bool:
    """Whether every line of a panel is drawn at whole numbers only."""
    places = [np.asarray(line.get_xdata(), dtype=np.float64) for line in panel.lines if line.get_transform() == panel.transData]
    return bool(places) and all((at[np.isfinite(at)] % 1 == 0).all() for at in places)


def plain_log_labels(figure: Figure) -> None:
    """Give plain labels to logarithmic axes that still have matplotlib's own, which are markup that figures do not parse."""
    for axis in (axis for panel in figure.axes for axis in (panel.xaxis, panel.yaxis) if axis.get_scale() == "log"):
        formatter = PlainLogFormatter(vars(axis.get_transform())["base"])
        if isinstance(axis.get_major_formatter(), mpl.ticker.LogFormatterMathtext):
            axis.set_major_formatter(formatter)
        if isinstance(axis.get_minor_formatter(), mpl.ticker.LogFormatterMathtext):
            axis.set_minor_formatter(formatter)


def plain(value: float) -> str:
    """0.001, 20, 30,000; and 10⁻⁵ or 2×10⁶ where that is shorter. value: positive, of a few digits."""
    exponent = math.floor(math.log10(value) + 1e-9)
    if -3 <= exponent < 6:
        return f"{value:,.6g}"
    factor = f"{value / 10.0**exponent:.3g}"
    return ("" if factor == "1" else f"{factor}×") + _power(exponent)


def _power(exponent: int) -> str:
    return f"10{superscript(str(exponent))}" if exponent not in (0, 1) else f"{10**exponent}"
