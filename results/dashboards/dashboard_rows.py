"""The W&B runs of a study, made from its tables alone; `results.dashboards.publish` sends them.

study      one run: the tables `summary`, `replicates`, `bands` and `claims`, figures, quantiles by step, the report, every table as Parquet
condition  one more a condition: its settings, quantiles by step and line of the summary
replicate  one more a replicate: its settings and seeds, curves, and final scores
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.figure import Figure

from results.claims import reductions, scoreboard
from results.dashboards.dashboard_count import RUNS, check_count
from results.errors import StudyError
from results.output import report_folder
from results.plain_values import Row, Tree
from results.report.drawings import draw_all
from results.report.values_report import draw_values
from results.rows.error_by_step import online_bands, plotted, pooled
from results.rows.measures import Measure, is_experimental, measures_of
from results.rows.options import flatten
from results.rows.summary import QUANTILES, Replicate, online_sets, raw_rows, replicates_of, summarise, to_parquet
from results.rows.value_summary import column_of, summarise_values, value_rows
from results.store.manifest import ConditionFields, Manifest, label, named_as_planned, newest_manifest, planned_rows, stage_of
from results.store.tables import Store, committed, read

MOST_ROWS = 10_000  # most rows that W&B shows of one table, such as that of replicates
FIGURES = {"errors": "violins", "scatter": "scatter"}  # figures of the report, by the names that W&B shows
_LONGEST_TAG = 64  # characters, as W&B has it
_LEFT_OUT = ("replicates", "packs", "store")  # the first two are long, and a store's URI can hold credentials


@dataclass(frozen=True)
class Run:
    """One W&B run.

    history: values by training step, ascending, of steps whose values can't change any more. tables: columns and rows. report: a page of
    HTML. parquet: files of one artifact.
    """

    id: str
    name: str
    kind: str
    group: str | None
    config: Tree
    history: list[tuple[int, dict[str, float]]] = field(default_factory=list)
    tables: dict[str, tuple[list[str], list[list[Any]]]] = field(default_factory=dict)
    figures: dict[str, Figure] = field(default_factory=dict)
    summary: dict[str, float | str] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)
    notes: str = ""
    report: str | None = None
    parquet: dict[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Rows:
    """The tables of a study's planned replicates at one moment. `complete`: all of these have ended, so quantiles can't change."""

    study: str
    hash: str
    manifest: Manifest
    finished: pa.Table
    evaluations: pa.Table
    curves: pa.Table
    replicates: list[Replicate]
    complete: bool


def rows_of(store: Store) -> Rows:
    """Read a study. Raises ValueError where it has no manifest."""
    newest = newest_manifest(store)
    if newest is None:
        raise StudyError(f"{store.path('manifests')} has no manifest, so there is no study to publish: run it first")
    finished = planned_rows(newest[1], named_as_planned(newest[1], committed(store)))
    evaluations = read(store, "evaluations", winning=finished)
    replicates = replicates_of(newest[1], finished, evaluations, read(store, "failures"))
    curves = read(store, "curves", winning=finished)
    complete = all(replicate.status in ("finished", "diverged", "no_transition") for replicate in replicates)
    return Rows(store.study, newest[0], newest[1], finished, evaluations, curves, replicates, complete)


def runs_of(store: Store, per: str, rows: Rows) -> Iterator[Run]:
    """The study's run first, then those of its conditions or replicates. ValueError where they are too many."""
    if per not in RUNS:
        raise StudyError(f"wandb.runs = {per!r} must be {' or '.join(RUNS)}")
    check_count(per, len(rows.manifest["conditions"]), len(rows.replicates))
    manifest, experimental = rows.manifest, is_experimental(rows.manifest)
    summary, bands = summary_of(manifest, rows.replicates, rows.evaluations), list[Row]()
    if experimental:
        measures = measures_of(manifest, rows.evaluations)
        replicates = value_rows(rows.replicates, measures)
        drawings = draw_values(rows.replicates, measures, rows.evaluations.slice(0, 0))
        figures = {drawing.name: drawing.made() for drawing in drawings}
    else:
        bands, replicates = online_bands(manifest, rows.evaluations, rows.replicates), raw_rows(manifest, rows.replicates)
        empty = pa.table({name: pa.array([], pa.int64()) for name in ("axis", "lo", "hi")})
        drawings = draw_all(
            manifest, rows.replicates, rows.finished, rows.evaluations.slice(0, 0), empty, rows.curves.slice(0, 0)
        )
        figures = {FIGURES[drawing.name]: drawing.made() for drawing in drawings if drawing.name in FIGURES}
    yield _study(store, rows, summary, replicates, bands, figures)
    if per == "condition":
        for index, condition in enumerate(manifest["conditions"]):
            yield _condition(rows, index, condition, bands, summary)
    elif per == "replicate":
        yield from _experiments(rows, measures, replicates) if experimental else _replicates(rows)


def _experiments(rows: Rows, measures: Sequence[Measure], replicates: pa.Table) -> Iterator[Run]:
    """A run for each replicate of an experiment, with its values by step, unless its script made a W&B run of its own."""
    settings = {condition["name"]: _settings(condition) for condition in rows.manifest["conditions"]}
    labels = {(measure.set, measure.metric): measure.label for measure in measures}
    history: dict[str, dict[int, dict[str, float]]] = {}
    for row in rows.evaluations.filter(pc.field("value").is_valid()).to_pylist():
        history.setdefault(row["key"], {}).setdefault(row["step"], {})[labels[row["set"], row["metric"]]] = row["value"]
    with_own_run = set(rows.finished.filter(pc.field("own_wandb").is_valid())["key"].to_pylist())
    for replicate, final in zip(rows.replicates, replicates.to_pylist(), strict=True):
        if replicate.status in ("finished", "diverged") and replicate.key not in with_own_run:
            seed = {"seed": replicate.init_seed}
            about = {"study": rows.study, "condition": replicate.condition, "key": replicate.key} | seed
            last = {column: final[column] for column in map(column_of, measures) if final[column] is not None}
            last |= {"status": replicate.status}
            title, lines = f"{replicate.condition}, {replicate.init_seed}", sorted(history.get(replicate.key, {}).items())
            config, run_id = about | settings[replicate.condition], f"{rows.study}-{replicate.key[:16]}-s0"
            yield Run(run_id, title, "replicate", replicate.condition, config, lines, summary=last)


def _settings(condition: ConditionFields) -> Tree:
    """The settings of a condition by dotted name; for an experiment, those that its study gives it."""
    config = condition["config"]
    if "experiment" in config:
        return flatten(config["experiment"].get("settings", {}))
    return flatten(condition.get("settings", config))


def _study(
    store: Store, rows: Rows, summary: pa.Table, replicates: pa.Table, bands: list[Row], figures: dict[str, Figure]
) -> Run:
    live = live_run(rows.study, rows.hash, rows.manifest)
    config = live.config | {"complete": rows.complete}
    if replicates.num_rows > MOST_ROWS:
        config["replicates_note"] = f"the table shows the first {MOST_ROWS} of {replicates.num_rows} replicates"
    tables = {"summary": _plain(summary), "replicates": _plain(replicates.slice(0, MOST_ROWS))}
    if bands:
        tables["bands"] = (list(bands[0]), [list(band.values()) for band in bands])
    columns = ["claim", "sentence", "verdict", "value", "measured", "reason"]
    claims = []
    for verdict in scoreboard(store):
        claim, finding = verdict.claim, verdict.finding
        claims.append([claim.id, claim.sentence, verdict.verdict, verdict.terms.value, finding.measured, finding.reason])
    if claims:
        tables["claims"] = (columns, claims)
    steps = sorted({band["step"] for band in bands})
    return replace(
        live,
        config=config,
        history=[(step, plotted([band for band in bands if band["step"] == step])) for step in steps],
        tables=tables,
        figures=figures,
        summary=dict(scalars(summary)),
        **_attached(store, rows),
    )


def live_run(study: str, manifest_hash: str, manifest: Manifest) -> Run:
    """The study's run before any replicate has been committed."""
    config = {name: value for name, value in manifest.items() if name not in _LEFT_OUT}
    config |= {"manifest": manifest_hash, "replicates_planned": len(manifest["replicates"])}
    source = manifest.get("source") or {}
    scale = str(manifest.get("scale", "paper"))
    smaller = scale == "paper" and reductions({"scale": scale, "reductions": [], "overrides": [], **manifest})
    tags = ["reduced" if smaller else f"scale {scale}", *(str(source[name]) for name in ("paper", "card") if source.get(name))]
    return Run(
        f"{study}-{manifest_hash[:16]}",
        study,
        "study",
        None,
        config,
        tags=[tag[:_LONGEST_TAG] for tag in tags],
        notes=str(manifest.get("question", "")),
    )


def summary_of(manifest: Manifest, replicates: list[Replicate], evaluations: pa.Table) -> pa.Table:
    """One line per condition and set; for experiments, one per condition and metric."""
    if is_experimental(manifest):
        return summarise_values(replicates, measures_of(manifest, evaluations))
    return summarise(manifest, replicates)


def spreads(summary: pa.Table) -> Iterator[tuple[str, dict[str, float], dict[str, float]]]:
    """Each line of `summary_of` as (condition/set, quantiles by name, share by name); infinite and unknown values are left out."""
    values = "metric" in summary.column_names
    for row in summary.to_pylist():
        where = f"{row['condition']}/{row['metric']}" if values else f"{label(row['condition'], row['stage'])}/{row['set']}"
        quantiles = {name: row[name if values else f"error_{name}"] for name in QUANTILES}
        if values:
            share = {"true_share": row["true_share"] if row["kind"] == "flag" else None}
        else:
            share = {"zero_share": row["zero_error"] / row["zero_error_of"] if row["zero_error_of"] else None}
        yield where, _finite(quantiles), _finite(share)


def scalars(summary: pa.Table) -> dict[str, float]:
    """`condition/set/median`, `max` and `zero_share` of a summary."""
    return {
        f"{where}/{name}": value
        for where, quantiles, share in spreads(summary)
        for name, value in ({name: quantiles[name] for name in ("median", "max") if name in quantiles} | share).items()
    }


def _finite(values: dict[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in values.items() if value is not None and math.isfinite(value)}


def _attached(store: Store, rows: Rows) -> Tree:
    """The fields that every study's run has beside its tables: the report, and the rows that count as Parquet."""
    others = {name: read(store, name, winning=rows.finished) for name in ("profiles", "probes", "failures")}
    whole = {"replicates": rows.finished, "evaluations": rows.evaluations, "curves": rows.curves, **others}
    page = report_folder(store).folder / "index.html"
    return {
        "report": page.read_text(encoding="utf-8") if page.is_file() else None,
        "parquet": {name: to_parquet(table) for name, table in whole.items()},
    }


def _condition(rows: Rows, index: int, condition: ConditionFields, bands: list[Row], summary: pa.Table) -> Run:
    name, stage = condition["name"], stage_of(condition)
    own = [band for band in bands if (band["condition"], band["stage"]) == (name, stage)]
    experimental = is_experimental(rows.manifest)
    lines = [row for row in summary.to_pylist() if row["condition"] == name and row.get("stage", 0) == stage]
    values: dict[str, float | str] = {
        f"{line['metric' if experimental else 'set']}/{column}": value
        for line in lines
        for column, value in line.items()
        if isinstance(value, int | float) and column != "stage" and math.isfinite(value)
    }
    prefix = f"{name}/stage {stage}/" if stage else f"{name}/"
    history = [
        (
            step,
            {key.removeprefix(prefix): value for key, value in plotted([band for band in own if band["step"] == step]).items()},
        )
        for step in sorted({band["step"] for band in own})
    ]
    about = {"study": rows.study, "manifest": rows.hash, "condition": name, "stage": stage, "complete": rows.complete}
    config = about | _settings(condition)
    return Run(
        f"{rows.study}-{rows.hash[:16]}-c{index}", label(name, stage), "condition", rows.study, config, history, summary=values
    )


def _replicates(rows: Rows) -> Iterator[Run]:
    """The runs of the replicates that have ended: their rows are committed and can't change."""
    settings = {condition["name"]: _settings(condition) for condition in rows.manifest["conditions"]}
    lines: dict[tuple[str, int], dict[int, dict[str, float]]] = {}
    hashes = {
        condition["name"]: {name: value["hash"] for name, value in condition["sets"].items()}
        for condition in rows.manifest["conditions"]
    }
    names = {(replicate.key, replicate.stage): replicate.condition for replicate in rows.replicates}
    for row in pooled(rows.manifest, rows.evaluations, online_sets(rows.manifest)):
        place = (row["key"], row["stage"])
        if hashes.get(names.get(place, ""), {}).get(row["set"]) == row["set_hash"] and row["errors_sum"] is not None:
            lines.setdefault(place, {}).setdefault(row["step"], {})[f"{row['set']}/error"] = (
                row["errors_sum"] / row["count_sum"]
            )
    for row in rows.curves.select(["key", "stage", "step", "metric", "value"]).to_pylist():
        if math.isfinite(row["value"]):
            lines.setdefault((row["key"], row["stage"]), {}).setdefault(row["step"], {})[row["metric"]] = row["value"]
    for replicate in rows.replicates:
        if replicate.status not in ("finished", "diverged", "no_transition"):
            continue
        summary: dict[str, float | str] = {"status": replicate.status} | (
            {} if replicate.loss is None else {"final_loss": replicate.loss}
        )
        for name, score in replicate.scores.items():
            summary |= {f"{name}/final_error": score.rate, f"{name}/errors": score.errors, f"{name}/reads": score.reads}
        seeds = {"key": replicate.key, "init_seed": replicate.init_seed, "data_seed": replicate.data_seed}
        about = {"study": rows.study, "condition": replicate.condition, "stage": replicate.stage, **seeds}
        config = about | settings[replicate.condition]
        history = sorted(lines.get((replicate.key, replicate.stage), {}).items())
        run_id = f"{rows.study}-{replicate.key[:16]}-s{replicate.stage}"
        title = f"{replicate.label}, {replicate.init_seed}, {replicate.data_seed}"
        yield Run(run_id, title, "replicate", replicate.condition, config, history, summary=summary)


def _plain(rows: pa.Table) -> tuple[list[str], list[list[Any]]]:
    return rows.schema.names, [list(row.values()) for row in rows.to_pylist()]
