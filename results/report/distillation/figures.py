"""Accuracy of teachers and students in one axes, and correlations with monomials while a teacher learns. Plain values in, figures out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from results.report.plots.curves import MOST_BANDS
from results.report.plots.lines_and_maps import Bands, draw_bands
from results.report.plots.palette import INK, Style, colour_of, marker_of
from results.report.plots.panels import legend, titled_panels
from results.report.plots.plot_data import tell
from results.statistics.intervals import Floats


@dataclass(frozen=True)
class Lesson:
    """A teacher and its students, each by name.

    learned: by the student's name, (step, accuracy) of the checkpoints it learns from: their places on the teacher's curve.
    """

    teacher: tuple[str, Bands]
    students: Mapping[str, Bands]
    learned: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Spikes:
    """The correlations of one replicate, all [steps]: those inside the support by name, mean and standard deviation of those outside.

    accuracy: (steps, values) at its own looks, or None.
    """

    steps: Floats
    inside: Mapping[str, Floats]
    outside: Floats
    outside_sd: Floats
    accuracy: tuple[Floats, Floats] | None = None


def lessons(panels: Mapping[str, Lesson]) -> Figure:
    """Draw a panel for each teacher: its median accuracy as a broken black line, that of each student in a colour, with quartiles shaded.

    A mark on the teacher's curve is a checkpoint that the students of this colour learn from.
    """
    names = list(dict.fromkeys(name for lesson in panels.values() for name in lesson.students))
    with titled_panels(panels, 5.4, 3.8, "step", "accuracy", "y", 0.3 + 0.1 * len(names)) as (figure, axes):
        handles: dict[str, Line2D] = {}
        for panel, lesson in zip(axes, panels.values(), strict=True):
            name, bands = lesson.teacher
            tell(panel.fill_between(bands.x, bands.low, bands.high, color=INK, alpha=0.1, lw=0), name)
            (handles[name],) = panel.plot(bands.x, bands.middle, color=INK, lw=2, ls="--")
            tell(handles[name], name)
            for name, bands in lesson.students.items():
                i = names.index(name)
                every = max(1, len(bands.x) // 12)
                style: Style = {"marker": marker_of(i), "ms": 4, "markevery": (i % every, every)}
                edges: Style = {"lw": 0.6, "alpha": 0.5}
                handles[name] = draw_bands(panel, bands, name, i, len(lesson.students) <= MOST_BANDS, edges, style)
            for name, points in lesson.learned.items():
                i = names.index(name)
                steps, values = zip(*points, strict=True)
                look: Style = {"marker": marker_of(i), "ms": 7, "mfc": "none", "mec": colour_of(i), "mew": 1.6}
                (marks,) = panel.plot(steps, values, ls="none", zorder=4, **look)
                tell(marks, name)
            panel.grid(axis="y")
        legend(figure, handles)
    return figure


def spikes(panels: Mapping[str, Spikes]) -> Figure:
    """Draw a panel for each replicate.

    Each correlation inside the support is a line; of those outside there are the mean and a shaded standard deviation. Accuracy is broken.
    """
    names = list(dict.fromkeys(name for spike in panels.values() for name in spike.inside))
    with titled_panels(panels, 4.8, 3.6, "step", "absolute correlation", "y", 0.3 + 0.05 * len(names)) as (figure, axes):
        handles: dict[str, Line2D] = {}
        for panel, spike in zip(axes, panels.values(), strict=True):
            low, high = (spike.outside + side * spike.outside_sd for side in (-1, 1))
            panel.fill_between(spike.steps, low.clip(min=0), high, color=INK, alpha=0.18, lw=0)
            (outside,) = panel.plot(spike.steps, spike.outside, color=INK, lw=1.4)
            tell(outside, "outside, mean ± sd")
            for name, values in spike.inside.items():
                i = names.index(name)
                (handles[name],) = panel.plot(spike.steps, values, color=colour_of(i), marker=marker_of(i), ms=3, lw=1.4)
                tell(handles[name], name)
            handles["outside, mean ± sd"] = outside
            if spike.accuracy is not None:
                right = panel.twinx()
                (handles["accuracy (right)"],) = right.plot(*spike.accuracy, color=INK, lw=1.2, ls="--", alpha=0.7)
                tell(handles["accuracy (right)"], "accuracy (right)")
                right.set_ylim(0, 1.02)
                right.spines["right"].set_visible(True)
            panel.xaxis.set_major_locator(mpl.ticker.MaxNLocator(5))  # steps have many digits
            panel.grid(axis="y")
        for panel in axes:  # last, since it stops the scaling of the axis that they share
            panel.set_ylim(bottom=0)
        legend(figure, handles)
    return figure
