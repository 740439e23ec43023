"""The report's figure of the wrong reads that `manyseeds trace` has traced: S_rep by method."""

from collections.abc import Container, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.figure import Figure

from results.claims.evidence import gather
from results.report.family import Drawn
from results.report.plots.palette import INK, PAPER
from results.report.plots.panels import titled_panels
from results.report.subsequences.paper_shows import PAPER as SUN
from results.rows.summary import Replicate, of_replicates
from results.statistics.intervals import quantile_interval
from results.store.manifest import Manifest, has_settings_of
from results.store.tables import Store, read

TRACE = "trace"  # the probe, a prefix of those of the other methods
MEDIAN = "median srep"  # of a replicate over its glitches
_BLUE, _SPREAD = "#0072B2", 0.16
# table 2 of Sun et al. 2025, in per cent: CODE, BIO, FP, R-PRM, R-SEN, R-NUM and REF; a domain that was not finished is left out
THEIRS: Mapping[str, Mapping[str, Sequence[float]]] = {
    "Sun et al., table 2: Llama-70B": {
        TRACE: (47.5, 29.0, 18.7, 70.4, 42.9, 86.8, 30.1),
        "attention": (34.0, 0.7, 5.0, 39.3, 1.1, 58.4, 0.1),
        "lime": (13.7, 3.3, 6.1, 18.1, 11.1, 57.8, 1.4),
        "gradient-shap": (32.8, 4.9, 2.0, 21.3, 4.1, 54.4, 14.7),
    },
    "Sun et al., table 2: OLMo-7B": {
        TRACE: (39.7, 17.3, 57.6, 29.4, 30.1, 75.5, 48.4),
        "attention": (31.8, 0.2, 25.0, 19.1, 13.7, 50.9, 27.4),
        "lime": (21.7, 0.9, 11.7, 19.8, 6.0, 56.6, 17.0),
        "gradient-shap": (33.5, 1.0, 28.1, 25.3, 13.4, 64.1, 26.9),
        "reagent": (14.6, 0.3, 22.1, 19.3, 62.1),
    },
}


def drawings(store: Store, manifest: Manifest, replicates: Sequence[Replicate], finished: pa.Table) -> list[Drawn]:
    """One panel per condition; [] where nothing was traced. `finished` are the committed rows of `replicates`."""
    if not has_settings_of(manifest, "flipflop"):
        return []
    rows = read(store, "probes", ["key", "probe", "value"], pc.field("item") == MEDIAN, winning=finished).to_pylist()
    sreps: dict[str, dict[str, float]] = {}
    for row in rows:
        method = row["probe"].removeprefix(f"{TRACE}-")
        if method == TRACE or method != row["probe"]:
            sreps.setdefault(row["key"], {})[method] = row["value"]
    panels: dict[str, dict[str, list[float]]] = {}
    for condition in gather(manifest, replicates).conditions:
        for values in of_replicates(condition.replicates, sreps):
            for method, value in values.items():
                panels.setdefault(condition.name, {}).setdefault(method, []).append(value)
    if not panels:
        return []
    caption = (
        "S_rep: the share of wrong reads in fresh strings that hold the events a method names, all methods as many. A point is a "
        "replicate, by the median of its traced reads; bars: their median with its exact 95 % interval, where there are 6 or more."
    )
    if (manifest.get("source") or {}).get("paper") == SUN:
        panels |= {title: {name: [value / 100 for value in row] for name, row in by.items()} for title, by in THEIRS.items()}
        caption += " The paper's table 2 is redrawn: there a point is one of seven sorts of questions to a language model."
    return [("traced", "What wrong reads hang on: S_rep by method", caption, by_method(panels, bare=THEIRS))]


def by_method(panels: Mapping[str, Mapping[str, Sequence[float]]], bare: Container[str] = ()) -> Figure:
    """Draw values in 0 … 1 by panel and method: the search first, then the others by their medians.

    bare: panels whose medians have no interval and do not affect the order.
    """
    methods = {method for by in panels.values() for method in by}
    values_of = {
        method: [value for title, by in panels.items() if title not in bare for value in by.get(method, ())]
        for method in methods
    }
    middle = {method: float(np.median(values)) if values else -1.0 for method, values in values_of.items()}
    order = sorted(methods, key=lambda method: (method != TRACE, -middle[method], method))
    with titled_panels(panels, max(0.62 * len(order), 2.6), 4.2, y="S_rep", shared="y") as (figure, axes):
        for panel, (title, by) in zip(axes, panels.items(), strict=True):
            for at, method in enumerate(order):
                values = np.sort(np.array(by.get(method, ()), dtype=np.float64))
                if not values.size:
                    continue
                beside = at + _SPREAD * np.linspace(-1, 1, values.size) if values.size > 1 else np.array([at])
                panel.plot(beside, values, "o", ms=4.5, mfc=_BLUE, mec=PAPER, mew=0.3, alpha=0.75)
                panel.plot([at - 0.34, at + 0.34], [np.median(values)] * 2, color=INK, lw=2.2, solid_capstyle="butt")
                if values.size >= 6 and title not in bare:  # fewer do not bound a median
                    interval = quantile_interval(values, 0.5)
                    panel.plot([at, at], [interval.low, min(interval.high, 1.0)], color=INK, lw=1)
            panel.set_xticks(range(len(order)), order, rotation=35, ha="right", rotation_mode="anchor")
            panel.set_xlim(-0.6, len(order) - 0.4)
            panel.set_ylim(-0.02, 1.02)
            panel.tick_params(axis="x", length=0)
            panel.grid(axis="y")
    return figure
