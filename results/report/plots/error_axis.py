"""Logarithmic axes of error rates, where zero is a category of its own and never a small number, and so is *diverged*."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from results.report.plots.palette import INK, Style
from results.report.plots.plot_data import log_coordinates
from results.report.plots.tick_labels import plain, power_of_ten
from results.statistics.intervals import Floats, quantile

Errors = Mapping[str, Floats]  # error rates of a condition's replicates; infinity is diverged
NARROW = 10  # largest rate over smallest, up to which an axis has round numbers at its ends instead of powers of ten
LEAST_RATIO = 1.5  # of the ends of an axis: rates that are all alike do not fill it
MARKED = (0.0, 0.25, 0.5, 0.75, 1.0)  # quantiles of a condition that have a mark
MOST_TICKS = 6  # of a narrow axis that have a label


@dataclass(frozen=True)
class ErrorScale:
    """Places on an error axis: log10 of the rate, with room below for zeros and above for diverged replicates.

    `low` and `high` are whole decades, or round numbers where the rates lie within one decade; the categories lie beyond a break in the
    axis. ticks: pairs of place and label.
    """

    low: float
    high: float
    zeros: bool
    diverged: bool
    ticks: tuple[tuple[float, str], ...]

    @property
    def zero(self) -> float:
        return self.low - 0.16 * self.span

    @property
    def infinite(self) -> float:
        return self.high + 0.14 * self.span

    @property
    def span(self) -> float:
        return self.high - self.low

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
    """The axis that holds all positive rates, and whether there are zeros and diverged replicates.

    It spans whole decades, at least two of them; where the rates lie within one decade, it spans about as much as they do.
    """
    values = np.concatenate([np.empty(0), *(np.asarray(e, dtype=np.float64).ravel() for e in errors)])
    rates, categories = positive(values), (bool((values == 0).any()), bool(np.isinf(values).any()))
    if rates.size and rates.max() <= NARROW * rates.min():
        rounds = _round_numbers(float(rates.min()), float(rates.max()))
        every = -(-len(rounds) // MOST_TICKS)
        ticks = tuple((math.log10(number), plain(number)) for number in rounds[::-1][::every])
        return ErrorScale(math.log10(rounds[0]), math.log10(rounds[-1]), *categories, ticks)
    low = math.floor(np.log10(rates.min())) if rates.size else -2
    high = math.ceil(np.log10(rates.max())) if rates.size else 0
    low = min(low, high - 2)
    step = max(1, -(-(high - low) // 7))
    return ErrorScale(low, high, *categories, tuple((float(k), power_of_ten(k)) for k in range(high, low - 1, -step)))


def _round_numbers(least: float, most: float) -> list[float]:
    """Round numbers from at most `least` to at least `most`, whose ratio is at least LEAST_RATIO; none above 1 if `most` is not."""
    spread = math.sqrt(max(1.0, LEAST_RATIO * least / most))
    high = min(most * spread, 1.0) if most <= 1 else most * spread
    low = min(least, high / LEAST_RATIO)
    if high > 4 * low:
        power = math.floor(math.log10(low))
        numbers = [float(f"{digit}e{exponent}") for exponent in (power, power + 1) for digit in (1, 2, 5)]
        numbers.append(float(f"1e{power + 2}"))
    else:
        room = (high - low) / 4
        power = math.floor(math.log10(room))
        # the logarithm of a room just below a power of ten may be rounded up to it
        sizes = ((digit, exponent) for exponent in (power, power - 1) for digit in (5, 2, 1))
        step, power = next((digit, exponent) for digit, exponent in sizes if float(f"{digit}e{exponent}") <= room)
        first, last = math.floor(low / float(f"{step}e{power}")), math.ceil(high / float(f"{step}e{power}"))
        numbers = [float(f"{step * count}e{power}") for count in range(first - 1, last + 2)]  # quotients are rounded as well
    below, above = max(number for number in numbers if number <= low), min(number for number in numbers if number >= high)
    return [number for number in numbers if below <= number <= above]


def error_axis(panel: Axes, scale: ErrorScale, direction: Literal["x", "y"], counts: float | None = None) -> None:
    """Ticks, the categories beyond the breaks, a band behind each, and two strokes where the axis is broken.

    counts: room beyond each category for its counts, in spans of the axis.
    """
    below, above = scale.limits()
    room = scale.span * (counts if counts is not None else 0.075 if direction == "y" else 0.0)
    limits = (below - room * scale.zeros, above + room * scale.diverged)
    ticks = list(scale.ticks)
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


def with_quantiles(errors: ArrayLike) -> Floats:
    """The error rates, and those where a figure marks their quantiles: between 0 and the smallest rate there may be a median."""
    values = np.asarray(errors, dtype=np.float64)
    return np.array([*values, *(quantile(values, q) for q in MARKED if values.size)])


def positive(errors: Floats) -> Floats:
    """The error rates that have a place on a logarithmic axis."""
    return errors[(errors > 0) & np.isfinite(errors)]


def jitter(errors: Floats, scale: ErrorScale, base: int) -> Floats:
    """Shifts that spread the replicates of a category (zero or diverged) over its strip; 0 for all other rates."""
    shifts = np.zeros(errors.size)
    for category in (errors == 0, np.isinf(errors)):
        shifts[category] = 0.055 * scale.span * evenly(int(category.sum()), base)
    return shifts


def evenly(n: int, base: int) -> Floats:
    """n places that fill -1 … 1 evenly whatever n is (van der Corput's sequence), the same every time."""
    index, places, digit = np.arange(1, n + 1), np.zeros(n), 1 / base
    while index.any():
        places += digit * (index % base)
        index, digit = index // base, digit / base
    return 2 * places - 1
