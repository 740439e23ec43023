"""Labels of ticks: plain numbers where matplotlib would write markup, and no more of them than there is room for."""

import math
import re
from typing import Any

import matplotlib as mpl
import matplotlib.ticker
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from results.report.page_template import superscript


class PlainLogFormatter(mpl.ticker.LogFormatter):
    """Labels the ticks that `LogFormatter` would, as `plain` writes them."""

    def __call__(self, value: float, pos: int | None = None) -> str:
        return plain(value) if super().__call__(value, pos) else ""


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
    """Labels with commas between thousands, and with their own power of ten: matplotlib's stands beyond the axis, as 1e6."""

    def __init__(self) -> None:
        super().__init__(useOffset=False)

    def __call__(self, value: float, pos: int | None = None) -> str:
        label, power = super().__call__(value, pos), super().get_offset().replace("\N{MINUS SIGN}", "-")  # such as 1e-10
        grouped = re.sub(r"\d+", lambda whole: f"{int(whole[0]):,}", label, count=1)
        return f"{grouped}×{power_of_ten(int(power.removeprefix('1e')))}" if value and power else grouped

    def get_offset(self) -> str:
        return ""


def plain_linear_labels(figure: Figure) -> None:
    """Give linear axes that still have matplotlib's own ticks and labels such ones as neither overlap each other nor the title."""
    for panel in figure.axes:
        for axis in (panel.xaxis, panel.yaxis):
            if axis.get_scale() != "linear" or type(axis.get_major_formatter()) is not mpl.ticker.ScalarFormatter:
                continue
            axis.set_major_formatter(PowerFormatter())
            if axis is panel.xaxis and type(axis.get_major_locator()) is mpl.ticker.AutoLocator:
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
    return ("" if factor == "1" else f"{factor}×") + power_of_ten(exponent)


def power_of_ten(exponent: int) -> str:
    return f"10{superscript(str(exponent))}" if exponent not in (0, 1) else f"{10**exponent}"
