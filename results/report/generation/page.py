"""What a report draws of samplers with a verifier: how wrong they are against what they ask."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from results.claims.evidence import Condition, gather
from results.claims.generation.walk import EXPERIMENT
from results.report.family import Drawn
from results.report.figures import INK, STYLE, _faint, _legend, label_rows, rows_of_panels
from results.report.palette import colour_of, marker_of
from results.rows.summary import Replicate
from results.statistics.intervals import Floats
from results.store.manifest import reported
from results.store.tables import Store, read

ERRORS = {  # the first that every sampler of a study has is drawn
    "distance": "total variation distance from the target",
    "divergence": "divergence from the target, nats",
    "wrong": "share of strings without a reward",
}
QUERIES = {"generator_queries": "queries of the generator, a string", "verifier_queries": "queries of the verifier, a string"}
MOST = 16  # conditions of the figure

Points = Mapping[str, tuple[Floats, Floats]]  # by condition: queries and errors of its seeds


def drawings(store: Store, manifest: dict[str, Any], known: Sequence[Replicate], finished: pa.Table) -> list[Drawn]:
    """The figure of a study of `verified_sampling`; [] for any other, and for one that has no two samplers with values."""
    settings = [each.get("settings", {}).get("experiment", {}) for each in manifest["conditions"]]
    if any(each.get("name") != EXPERIMENT for each in settings) or len(settings) < 2:
        return []
    rows = read(store, "evaluations", filter=reported(manifest), winning=finished)
    evidence = gather(manifest, known, evaluations=rows)

    def seeds(condition: Condition, metric: str) -> Floats:
        return evidence.values(condition, metric)

    conditions = [each for each in evidence.conditions if len(seeds(each, "wrong"))][:MOST]
    error = next((name for name in ERRORS if all(len(seeds(each, name)) for each in conditions)), None)
    if error is None or len(conditions) < 2:
        return []
    points = {
        queries: {
            each.name: (seeds(each, queries), seeds(each, error)) for each in conditions if seeds(each, queries).max() > 0
        }
        for queries in QUERIES
    }
    points = {queries: by for queries, by in points.items() if by}
    names = [each.name for each in conditions]
    with mpl.rc_context(STYLE):
        figure, panels = rows_of_panels(len(points), 5.2, 4.0, "none", 0.9)
        for panel, (queries, by) in zip(panels, points.items(), strict=True):
            _panel(panel, by, names)
            panel.set_title(QUERIES[queries])
        label_rows(panels, ERRORS[error])
        shown = [name for name in names if any(name in by for by in points.values())]
        _legend(figure, {name: _mark(names.index(name)) for name in shown})
    caption = (
        "A faint point is a seed, a bold one the median of a condition. The line joins the medians that no other condition beats in both. "
        "Queries are on a logarithmic axis; a sampler that asks nothing is left out of that panel."
    )
    return [("error-by-queries", "Error against queries", caption, figure)]


def front(points: Points) -> list[str]:
    """Conditions whose medians no other condition equals or beats in both with one better, by rising queries."""
    medians = {name: (float(np.median(x)), float(np.median(y))) for name, (x, y) in points.items()}
    best = [
        name for name, (x, y) in medians.items() if not any(a <= x and b <= y and (a, b) != (x, y) for a, b in medians.values())
    ]
    return sorted(best, key=lambda name: medians[name])


def _panel(panel: Axes, points: Points, names: Sequence[str]) -> None:
    best = front(points)
    line = np.array([[np.median(values) for values in points[name]] for name in best])
    panel.plot(line[:, 0], line[:, 1], color=INK, lw=1, ls="--", alpha=0.6, drawstyle="steps-post")
    for name, (x, y) in points.items():
        place = names.index(name)
        style: dict[str, Any] = {"color": colour_of(place), "marker": marker_of(place), "ls": "none"}
        panel.plot(x, y, ms=3.5, alpha=max(0.2, _faint(len(x))), **style)
        panel.plot([np.median(x)], [np.median(y)], ms=9, mec=INK, **style)
    panel.set_xscale("log")
    panel.grid()


def _mark(place: int) -> Line2D:
    return Line2D([], [], color=colour_of(place), marker=marker_of(place), ls="none", ms=8)
