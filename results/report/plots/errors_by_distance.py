"""Error rates over the distance between two tokens, or over another axis of bins."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import matplotlib.ticker
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from results.report.plots.curves import MOST_BANDS, band, faint
from results.report.plots.error_axis import error_axis, error_scale
from results.report.plots.palette import PAPER, Style, colour_of, marker_of
from results.report.plots.panels import legend, titled_panels
from results.report.plots.plot_data import tell
from results.report.plots.tick_labels import plain
from results.statistics.intervals import Floats, quantile

NO_ERROR = 0.05  # chance of no error in a bin whose rate is the upper bound drawn for it, if its reads were independent
LARGEST_SINGLE = 32  # distance up to which a linear axis is legible
NONE = 0.7  # place of the distance 0 on a logarithmic axis
MAX_LINES = 300  # light lines of single replicates over distance; more are left out, the pooled rate stays


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


class DistanceLocator(mpl.ticker.LogLocator):
    """Powers, and the place of the distance 0 where the axis reaches it."""

    def tick_values(self, vmin: float, vmax: float) -> Any:
        ticks = np.asarray(super().tick_values(vmin, vmax))
        return np.array([NONE, *ticks[ticks >= 1]]) if min(vmin, vmax) <= NONE else ticks


def errors_by_distance(profiles: Mapping[str, Mapping[str, Profile]], axis_label: str) -> Figure:
    """One panel per evaluation set: bold, the rate pooled over a condition's replicates; light, each; dashed and shaded, their quartiles.

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
                panel.xaxis.set_major_formatter(lambda value, _: "0" if value == NONE else plain(value))
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
