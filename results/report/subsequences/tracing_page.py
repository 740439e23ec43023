"""What a report draws of wrong reads that `manyseeds trace` has traced: S_rep by method."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.figure import Figure

from results.report.family import Drawn
from results.report.figures import INK, PAPER, STYLE, label_rows, rows_of_panels
from results.rows.summary import Replicate, of_replicates
from results.rows.task_conditions import conditions_of
from results.statistics.intervals import quantile_interval
from results.store.tables import Store, read

TRACE, MEDIAN = (
    "trace",
    "median srep",
)  # the probe, a prefix of those of the other methods; a replicate's median over its glitches
_BLUE, _SPREAD = "#0072B2", 0.16


def drawings(store: Store, manifest: dict[str, Any], replicates: Sequence[Replicate], finished: pa.Table) -> list[Drawn]:
    """A panel a condition; [] where nothing was traced. `finished` are the committed rows of `replicates`."""
    conditions = conditions_of(manifest, replicates, "flipflop")
    if conditions is None:
        return []
    rows = read(store, "probes", ["key", "probe", "value"], pc.field("item") == MEDIAN, winning=finished).to_pylist()
    sreps: dict[str, dict[str, float]] = {}
    for row in rows:
        method = row["probe"].removeprefix(f"{TRACE}-")
        if method == TRACE or method != row["probe"]:
            sreps.setdefault(row["key"], {})[method] = row["value"]
    panels: dict[str, dict[str, list[float]]] = {}
    for name, members in conditions.members.items():
        for values in of_replicates(members, sreps):
            for method, value in values.items():
                panels.setdefault(name, {}).setdefault(method, []).append(value)
    if not panels:
        return []
    caption = (
        "S_rep: the share of wrong reads in fresh strings that hold the events a method names, all methods as many. A point is a "
        "replicate, by the median of its traced reads; bars: their median with its exact 95 % interval, where there are 6 or more."
    )
    return [("traced", "What wrong reads hang on: S_rep by method", caption, by_method(panels))]


def by_method(panels: Mapping[str, Mapping[str, Sequence[float]]]) -> Figure:
    """Values in 0 … 1 by panel and method; the search first, then by their medians."""
    methods = {method for by in panels.values() for method in by}
    middle = {method: np.median([value for by in panels.values() for value in by.get(method, ())]) for method in methods}
    order = sorted(methods, key=lambda method: (method != TRACE, -middle[method], method))
    with mpl.rc_context(STYLE):
        figure, axes = rows_of_panels(len(panels), max(0.62 * len(order), 2.6), 4.2, "y")
        for panel, (title, by) in zip(axes, panels.items(), strict=True):
            panel.set_title(title)
            for at, method in enumerate(order):
                values = np.sort(np.array(by.get(method, ()), dtype=np.float64))
                if not values.size:
                    continue
                beside = at + _SPREAD * np.linspace(-1, 1, values.size) if values.size > 1 else np.array([at])
                panel.plot(beside, values, "o", ms=4.5, mfc=_BLUE, mec=PAPER, mew=0.3, alpha=0.75)
                panel.plot([at - 0.34, at + 0.34], [np.median(values)] * 2, color=INK, lw=2.2, solid_capstyle="butt")
                if values.size >= 6:  # fewer do not bound a median
                    interval = quantile_interval(values, 0.5)
                    panel.plot([at, at], [interval.low, min(interval.high, 1.0)], color=INK, lw=1)
            panel.set_xticks(range(len(order)), order, rotation=35, ha="right", rotation_mode="anchor")
            panel.set_xlim(-0.6, len(order) - 0.4)
            panel.set_ylim(-0.02, 1.02)
            panel.tick_params(axis="x", length=0)
            panel.grid(axis="y")
        label_rows(axes, "S_rep")
    return figure
