"""The report of a study of experiments: the values that its replicates returned."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from results.claims import reductions, verdicts
from results.claims.show import html as claims_html
from results.grouping import grouped
from results.plain_values import Tree
from results.report.downloads import for_a_paper
from results.report.drawings import MAX_CURVES, curves_of
from results.report.family import ReportFamily
from results.report.first_screen import answer_of_values
from results.report.methods_of_experiments import experiment_text, is_imported, settings_of, what_runs
from results.report.page_parts import Drawing, commits, drawn_files, every_study, family_drawings, settings_table
from results.report.page_template import FOLDER, render
from results.report.plots.curves import Curve
from results.report.plots.values_figure import curves_by_condition, values_by_condition
from results.rows.latex import values_table
from results.rows.measures import ARRAY, Measure, label, measures_of
from results.rows.options import flatten
from results.rows.plural import counted, ranges
from results.rows.shared_seeds import caution
from results.rows.summary import Replicate, errors_of, replicates_of, to_csv, to_parquet
from results.rows.value_summary import column_of, returned, summarise_values, value_rows
from results.statistics.real_values import wants_log_axis
from results.store.manifest import Manifest, named_as_planned, planned_rows, reported
from results.store.tables import Store, committed, read

_TABLES = ("replicates", "evaluations", "failures")
_DOWNLOADS = (
    ("Summary, one row per condition and metric", ("summary.csv", "summary.tex", "summary.parquet")),
    ("Replicates, a row each", ("replicates.csv", "replicates.parquet")),
    ("Whole tables, only the rows that count", tuple(f"tables/{name}.parquet" for name in _TABLES)),
)
MAX_PANELS, MAX_ROWS, MAX_DRAWN = 9, 1000, 30  # metrics, rows, conditions


def values_report(store: Store, manifest: Manifest, families: Sequence[ReportFamily]) -> dict[str, bytes]:
    """The files of the report by their paths in its folder; the page is the last, as it links to the others. `families`: those whose
    sections are drawn."""
    finished = named_as_planned(manifest, committed(store))
    own = planned_rows(manifest, finished)
    tables = {"replicates": own} | {name: read(store, name, winning=own) for name in ("evaluations", "failures")}
    failures, evaluations = tables["failures"], tables["evaluations"].filter(reported(manifest))
    measures = measures_of(manifest, evaluations)
    planned = replicates_of(manifest, finished, evaluations, failures)
    summary, rows = summarise_values(planned, measures), value_rows(planned, measures)
    files = {
        "summary.csv": to_csv(summary),
        "summary.tex": values_table(summary).encode(),
        "summary.parquet": to_parquet(summary),
        "replicates.csv": to_csv(rows),
        "replicates.parquet": to_parquet(rows),
        **{f"tables/{name}.parquet": to_parquet(table) for name, table in tables.items()},
    }
    drawings = family_drawings(store, manifest, planned, finished, families)
    drawn, shown = drawn_files(drawings + draw_values(planned, measures, evaluations))
    page = render(
        FOLDER / "values.html",
        **every_study(manifest, planned, finished, failures, families),
        groups=_groups(summary, measures),
        measures=measures,
        arrays=_arrays(evaluations),
        column_of=column_of,
        answer=f"{answer_of_values(summary)} {caution(manifest)}".strip(),
        undeclared=list(
            dict.fromkeys(measure.metric for measure in measures if not measure.declared and measure.kind == "number")
        ),
        infinity=float("inf"),
        claims=claims_html(verdicts(manifest, planned, evaluations=evaluations), bool(reductions(manifest))),
        key_figure=shown[0] if shown else None,
        drawings=shown[1:],
        methods=_methods(manifest),
        **for_a_paper(
            manifest, planned, finished, families, experiment_text(manifest, planned, measures, finished), _DOWNLOADS
        ),
        known=rows.slice(0, MAX_ROWS).to_pylist(),
        own_commits=commits(_with_own_code(manifest, finished), "own_git", "own_dirty"),
    )
    return {**files, **drawn, "index.html": page.encode()}


def _groups(summary: pa.Table, measures: Sequence[Measure]) -> list[Tree]:
    """The summary's rows of each metric, and the conditions that do not have it."""
    shown, conditions = returned(summary), dict.fromkeys(summary["condition"].to_pylist())
    groups: list[Tree] = []
    for measure in measures:
        rows = [row for row in shown if row["metric"] == measure.label]
        having = {row["condition"] for row in rows}
        groups.append({"measure": measure, "rows": rows, "without": [name for name in conditions if name not in having]})
    return groups


def draw_values(planned: Sequence[Replicate], measures: Sequence[Measure], evaluations: pa.Table) -> list[Drawing]:
    """Every figure that there are rows for."""
    every_group = grouped((replicate.condition, replicate) for replicate in planned)
    groups = dict(list(every_group.items())[:MAX_DRAWN])
    values, places, drawings = {}, {}, list[Drawing]()
    place_of = {replicate.key: place for place, replicate in enumerate(planned)}
    numbers_of = [measure for measure in measures if measure.kind == "number"]
    for measure in numbers_of[:MAX_PANELS]:
        by_condition = {name: errors_of(members, measure.label) for name, members in groups.items()}
        finite = {name: measure.sign * numbers[np.isfinite(numbers)] + 0.0 for name, numbers in by_condition.items()}
        if any(numbers.size for numbers in finite.values()):
            values[measure.label] = finite
            places[measure.label] = {
                name: [(place_of[each.key], each.init_seed) for each in members if np.isfinite(_number(each, measure))]
                for name, members in groups.items()
            }
    if not values:
        return drawings
    log = {name: wants_log_axis(*by.values()) for name, by in values.items()}
    caption = (
        "A point is a replicate; bars: minimum, 25 %, median (bold), 75 %, maximum of those that did not diverge. An axis is logarithmic "
        "where no value is negative and the largest is over 100 times the smallest; a 0 lies below its break."
    )
    caption += _first_of(MAX_PANELS, len(numbers_of), "metric") + _first_of(MAX_DRAWN, len(every_group), "condition")
    drawings.append(Drawing("values", "Values by condition", caption, values_by_condition(values, log, places)))
    for measure in measures:
        if measure.label in values and (curves := _curves(groups, measure, evaluations)):
            title = f"{measure.label} by step"
            lines = [line[1] for by in curves.values() for line in by]
            figure = curves_by_condition(curves, measure.label, log[measure.label] and all((line > 0).all() for line in lines))
            caption = (
                f"Light: each replicate, at most {MAX_CURVES} together; bold: the median of those with a finite value there."
            )
            caption += _first_of(MAX_PANELS, len(every_group), "condition")
            drawings.append(Drawing(f"curves-{measure.label}", title.capitalize(), caption, figure))
    return drawings


def _number(replicate: Replicate, measure: Measure) -> float:
    """The cost of a replicate; NaN where it has none."""
    cost = replicate.error(measure.label)
    return np.nan if cost is None else cost


def _first_of(shown: int, total: int, noun: str) -> str:
    """A sentence of a caption about what a figure leaves out; "" where it shows all."""
    return f" The first {shown} of {counted(total, noun)} are shown." if total > shown else ""


def _curves(groups: dict[str, list[Replicate]], measure: Measure, evaluations: pa.Table) -> dict[str, list[Curve]]:
    """Values by step of the first replicates of each condition; {} where no replicate has several steps."""
    wanted = (pc.field("set") == measure.set) & (pc.field("metric") == measure.metric) & pc.field("value").is_valid()
    rows, shown = evaluations.filter(wanted), list(groups.items())[:MAX_PANELS]
    curves, *_ = curves_of(rows, rows["value"], {name: [(r.key, r.stage) for r in members] for name, members in shown})
    return curves if any(len(steps) > 1 for by in curves.values() for steps, _ in by) else {}


def _arrays(evaluations: pa.Table) -> list[tuple[str, int]]:
    """The arrays that replicates returned by name, and of how many steps of replicates."""
    by = evaluations.filter(pc.field("kind") == ARRAY).group_by(["set", "metric"]).aggregate([("key", "count")]).to_pylist()
    return sorted((label(row["set"], row["metric"]), row["key_count"]) for row in by)


def _methods(manifest: Manifest) -> Tree:
    """What runs, the settings that all conditions share, those that differ, the seeds and the digests of the code."""
    flat = [flatten(settings_of(condition)) for condition in manifest["conditions"]]
    conditions = manifest["conditions"]
    return {
        "what": ", ".join(what_runs(manifest)),
        "imported": is_imported(manifest),
        **settings_table([condition["name"] for condition in conditions], flat),
        "seeds": ranges((row[2] for row in manifest["replicates"]), " … "),
        "codes": list(dict.fromkeys(code[:12] for condition in conditions if (code := condition["config"].get("code")))),
    }


def _with_own_code(manifest: Manifest, replicates: pa.Table) -> pa.Table:
    """The rows of `replicates` that ran a person's own code."""
    coded = [bool(condition["config"].get("code")) for condition in manifest["conditions"]]
    keys = [row[0] for row in manifest["replicates"] if coded[row[1]]]
    return replicates.filter(pc.field("key").isin(pa.array(keys, pa.string())))
