"""The report's own figure for samplers with a verifier: their errors against the number of queries."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from results.claims.evidence import Condition, Evidence, gather
from results.claims.generation.backtracking import HEADLINE, PROBE, values_by_item
from results.claims.generation.walk import EXPERIMENT
from results.report.family import Drawn
from results.report.generation import thesis_tables
from results.report.plots.curves import faint
from results.report.plots.palette import INK, Style, colour_of, marker_of
from results.report.plots.panels import legend, mark, titled_panels
from results.report.plots.plot_data import tell
from results.rows.probe_values import by_key
from results.rows.summary import Replicate
from results.statistics.intervals import Floats
from results.store.manifest import Manifest, reported
from results.store.tables import Store, read

ERRORS = {  # the first one that every sampler of a study has is drawn
    "distance": "total variation distance from the target",
    "divergence": "divergence from the target, nats",
    "wrong": "share of strings without a reward",
}
QUERIES = {"generator_queries": "queries of the generator per string", "verifier_queries": "queries of the verifier per string"}
MOST = 16  # conditions of the figure
CAPTION = (
    "A faint point is a seed, a bold one the median of a condition. The line joins the medians that no other condition beats in both. "
    "Queries are on a logarithmic axis; a sampler that asks nothing is left out of that panel."
)
TASK = "bracket_strings"
SAMPLERS = {  # of trained generators, by their items' form
    "no verifier": "plain",
    "backtracking": f"thesis {HEADLINE} verifier={{n}}",
    "not the most probable": f"sampled {HEADLINE} verifier={{n}}",
    "exact verifier": f"thesis {HEADLINE} exact",
    "random verifier": f"thesis {HEADLINE} random={{n}}",
    "tokenwise, exact": "tokenwise exact",
    "rejection, exact": "rejection exact",
}
NUCLEI = {"0.9": "nucleus 0.9", "1": "no nucleus"}  # a row of panels each

Points = Mapping[str, tuple[Floats, Floats]]  # by condition: queries and errors of its seeds


def drawings(store: Store, manifest: Manifest, known: Sequence[Replicate], finished: pa.Table) -> list[Drawn]:
    """Errors against queries of a study of `verified_sampling` or of probed generators; [] for any other, and for one that has no two
    samplers with values."""
    settings = [each.get("settings", {}) for each in manifest["conditions"]]
    beside: list[Drawn] = []
    if len(settings) > 1 and all(each.get("experiment", {}).get("name") == EXPERIMENT for each in settings):
        rows = read(store, "evaluations", filter=reported(manifest), winning=finished)
        error, points = _of_experiments(gather(manifest, known, evaluations=rows))
    elif any(each.get("task", {}).get("name") == TASK for each in settings):
        probes = by_key(read(store, "probes", filter=pc.field("probe") == PROBE, winning=finished))
        evidence = gather(manifest, known, probes=probes)
        generators = [values for each in evidence.conditions for values in values_by_item(evidence, each)]
        beside = thesis_tables.drawings(generators)
        error, points = "share of completions that are wrong", points_of_generators(generators)
    else:
        return []
    names = list(dict.fromkeys(name for by in points.values() for name in by))
    if len(names) < 2:
        return beside
    return [("error-by-queries", "Error against queries", CAPTION, _figure(error, points, names)), *beside]


def _of_experiments(evidence: Evidence) -> tuple[str, Mapping[str, Points]]:
    """The label of the errors, and the points by panel, for conditions that are samplers."""

    def seeds(condition: Condition, metric: str) -> Floats:
        return evidence.values(condition, metric)

    conditions = [each for each in evidence.conditions if len(seeds(each, "wrong"))][:MOST]
    error = next((name for name in ERRORS if all(len(seeds(each, name)) for each in conditions)), None)
    if error is None or len(conditions) < 2:
        return "", {}
    points = {
        title: {each.name: pair for each in conditions if _can_be_shown(*(pair := (seeds(each, queries), seeds(each, error))))}
        for queries, title in QUERIES.items()
    }
    return ERRORS[error], {title: by for title, by in points.items() if by}


def _can_be_shown(queries: Floats, errors: Floats) -> bool:
    """Whether every seed has a point, and some point has a query."""
    return len(queries) == len(errors) > 0 and queries.max() > 0


def points_of_generators(generators: Sequence[Mapping[str, float]]) -> Mapping[str, Points]:
    """Points by panel of the samplers that completed fresh prompts; a point is a generator, whose value is the mean over its verifiers."""
    points: dict[str, dict[str, tuple[Floats, Floats]]] = {}
    for top, nucleus in NUCLEI.items():
        for name, form in SAMPLERS.items():
            item = f"fresh top={top} {form}"
            wrong = thesis_tables.of_generators(generators, f"{item} wrong")
            for metric, title in QUERIES.items():
                queries = thesis_tables.of_generators(generators, f"{item} {metric}")
                if _can_be_shown(queries, wrong):
                    points.setdefault(f"{nucleus}: {title}", {})[name] = queries, wrong
    return points


def _figure(error: str, points: Mapping[str, Points], names: Sequence[str]) -> Figure:
    """One panel per kind of queries; colours and marks by the place in `names`."""
    with titled_panels(points, 5.2, 4.0, y=error, above=0.9, columns=2) as (figure, panels):
        for panel, by in zip(panels, points.values(), strict=True):
            _panel(panel, by, names)
        legend(figure, {name: mark(names.index(name)) for name in names})
    return figure


def front(points: Points) -> list[str]:
    """Conditions whose medians no other condition equals or beats in both with one better, by rising queries."""
    medians = {name: (float(np.median(x)), float(np.median(y))) for name, (x, y) in points.items()}
    best = [
        name for name, (x, y) in medians.items() if not any(a <= x and b <= y and (a, b) != (x, y) for a, b in medians.values())
    ]
    return sorted(best, key=lambda name: medians[name])


def _panel(panel: Axes, points: Points, names: Sequence[str]) -> None:
    best = front(points)
    steps = np.array([[np.median(values) for values in points[name]] for name in best])
    panel.plot(steps[:, 0], steps[:, 1], color=INK, lw=1, ls="--", alpha=0.6, drawstyle="steps-post")
    for name, (x, y) in points.items():
        place = names.index(name)
        style: Style = {"color": colour_of(place), "marker": marker_of(place), "ls": "none"}
        seeds = panel.plot(x, y, ms=3.5, alpha=max(0.2, faint(len(x))), **style)
        median = panel.plot([np.median(x)], [np.median(y)], ms=9, mec=INK, **style)
        for line in (*seeds, *median):
            tell(line, name)
    panel.set_xscale("log")
    panel.xaxis.set_major_formatter(lambda queries, _: f"{queries:,g}")
    panel.grid()
