"""A study's report: one HTML page that opens from disk, with its figures and tables beside it.

    write_report(open_store("runs", "fflm-quick"))  # → runs/fflm-quick/report/index.html

Everything is made from the rows of the store and its newest manifest, can be made again at any time, also while the study
still runs, and needs neither torch nor ray.
"""

import os
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from markupsafe import Markup

from results import second_process
from results.claims import verdicts
from results.claims.show import html as claims_html
from results.large_tables import for_large_tables
from results.output import OutputFolder, report_folder
from results.progress.adaptive_status import CAUTION, lines
from results.report import pareto, violins
from results.report.downloads import for_a_paper, more_tables
from results.report.drawings import draw_all, ended_by_condition, first_of_each, shown_conditions
from results.report.family import ReportFamily
from results.report.family_sections import FAMILIES
from results.report.first_screen import answer, changes, paper_shows
from results.report.interactive import replicates_data
from results.report.page_parts import Drawing, begin_drawing, drawn_files, newest_failures, provenance
from results.report.page_template import FOLDER, render
from results.report.values_report import values_report
from results.rows.looks import averages, watched
from results.rows.measures import is_experimental
from results.rows.options import flatten
from results.rows.plural import ranges
from results.rows.probe_values import by_key
from results.rows.summary import (
    ENDINGS,
    QUANTILES,
    Replicate,
    copy_of,
    raw_rows,
    replicates_of,
    reported_sets,
    set_names,
    summarise,
    to_csv,
    to_latex,
    to_parquet,
)
from results.rows.task_conditions import is_of
from results.statistics.intervals import zero_error_bound
from results.statistics.real_values import share_below_largest
from results.store.manifest import label as stage_label
from results.store.manifest import manifest_of, reported_rows, scoring_of, stage_of
from results.store.tables import ROW, Store, committed, read

MAX_OPEN_ROWS, MAX_ROWS = 200, 500  # rows of a table that is shown open; rows of a large table
MAX_SUMMARY = 24  # rows of the summary; a longer one is folded
MANY = 2_000  # replicates of a study whose report two processes make


def write_report(store: Store, out: str | os.PathLike[str] | None = None, families: Sequence[ReportFamily] = FAMILIES) -> Path:
    """Write index.html, figures/ and the tables of `results.report.downloads.TABLES`; returns the path of the page.

    `out` is a local folder: `<store>/<study>/report` by default, or `./report-<study>` when the store is not local. `families` are
    those whose sections are drawn.
    Raises StudyError where the store has no such study, DamagedFile where a file of the store is broken.
    """
    manifest = manifest_of(store)
    folder = report_folder(store, out)
    if is_experimental(manifest):
        for name, data in values_report(store, manifest, families).items():
            page_path = folder.write(name, data)
        return page_path
    with for_large_tables() if len(manifest["replicates"]) >= MANY else nullcontext():
        for name, data in _files(store, manifest, folder, families).items():
            page_path = folder.write(name, data)
    return page_path


def _files(store: Store, manifest: dict[str, Any], folder: OutputFolder, families: Sequence[ReportFamily]) -> dict[str, bytes]:
    """The report's files by their names, the page last."""
    shared = len(manifest["replicates"]) >= MANY and store.is_local and second_process.worthwhile()
    if shared:
        second_process.submit(drawn_files, ())  # which loads what it draws with later
    finished = committed(store)
    files = {"tables/replicates.parquet": to_parquet(finished)}
    copies: dict[str, Future[bytes]] = {}

    def whole(table: str) -> pa.Table:
        """Read once: on an object store a table of many packs takes long."""
        rows = read(store, table, winning=finished)
        files[f"tables/{table}.parquet"] = to_parquet(rows)
        return rows

    def rows_of(table: str, keys: pa.Array | None) -> pa.Table:
        """The rows of these replicates, or all; the second process reads the whole table of a large study."""
        chosen = None if keys is None else pc.field("key").isin(keys)
        if not shared:
            return whole(table) if chosen is None else whole(table).filter(chosen)
        packs = None if keys is None else set(_packs(finished, keys).to_pylist())
        return read(store, table, filter=chosen, winning=finished, packs=packs)

    if shared:  # for the second process, while this one reads and summarises
        copies = {table: second_process.submit(copy_of, store, table, finished.select(ROW)) for table in ("profiles", "curves")}
    failures, evaluations = whole("failures"), reported_rows(manifest, whole("evaluations"))
    known = replicates_of(manifest, finished, evaluations, failures)
    summary, rows = summarise(manifest, known), raw_rows(manifest, known)
    drawn = pa.array([r.key for members in shown_conditions(manifest, known, families).values() for r in members], pa.string())
    profiles = rows_of("profiles", drawn)
    hidden = [
        axis for family in families for task, axes in family.hidden_axes.items() if is_of(manifest, task) for axis in axes
    ]
    profiles = profiles.filter(~pc.field("axis").isin(pa.array(hidden, pa.string())))
    # a claim may look at every curve; the figure shows a few
    first = pa.array(
        [key for members in first_of_each(ended_by_condition(known, finished)).values() for key, _ in members], pa.string()
    )
    losses = rows_of("curves", None if manifest.get("claims") else first).filter(pc.field("metric") == "loss")
    measured = whole("probes")
    drawings = draw_all(manifest, known, finished, evaluations, profiles, losses, families)
    sections = [section for family in families for section in family.sections]
    drawings += [Drawing(*drawn) for section in sections for drawn in section(store, manifest, known, finished)]
    drawn_figures = begin_drawing(drawings, shared)
    files |= {
        "summary.csv": to_csv(summary),
        "summary.tex": to_latex(summary).encode(),
        "summary.parquet": to_parquet(summary),
        "replicates.csv": to_csv(rows),
        **more_tables(known, rows, finished, evaluations),
    }
    interactive = pareto.section(manifest, known, evaluations, families)
    drawn_as, shown = drawn_figures()
    files |= drawn_as
    pages = sorted(path.name for path in folder.folder.glob("replicate-*.html"))
    files["index.html"] = page(
        manifest,
        known,
        summary,
        finished,
        failures,
        shown,
        claims_html(
            verdicts(
                manifest,
                known,
                by_key(measured),
                evaluations,
                measured,
                losses,
                averages(store, finished) if manifest.get("claims") else None,
                watched(store, finished) if manifest.get("claims") else None,
            )
        ),
        interactive=interactive,
        families=families,
        replicates_data=replicates_data(manifest, known, pages),
    ).encode()  # last: it links to the others
    return {f"tables/{name}.parquet": copy.result() for name, copy in copies.items()} | files


def page(
    manifest: dict[str, Any],
    known: Sequence[Replicate],
    summary: pa.Table,
    replicates: pa.Table,
    failures: pa.Table,
    drawings: Sequence[tuple[Drawing, Markup]],
    claims: Markup | None = None,
    interactive: Markup | None = None,
    families: Sequence[ReportFamily] = FAMILIES,
    replicates_data: Markup | None = None,
) -> str:
    """The page as one string of HTML."""
    keys = {replicate.key for replicate in known}
    statuses = [replicate.status for replicate in known]
    key = _key_figure(drawings, families)
    return render(
        FOLDER / "report.html",
        manifest=manifest,
        covers=share_below_largest,
        adaptive=lines(manifest, known),
        adaptive_caution=CAUTION,
        title=manifest.get("question") or manifest["study"],
        counts={ending: statuses.count(ending) for ending in ENDINGS},
        ended=sum(status in ("finished", "diverged", "no_transition") for status in statuses),
        planned=len(known),
        groups=_groups(summary),
        answer=answer(summary, reported_sets(manifest)),
        paper_shows=paper_shows(manifest, (family.paper_shows for family in families)),
        changes=changes(manifest),
        key_figure=key,
        long=len(summary) > MAX_SUMMARY,
        bounded=any(row["zero_error_most"] > row["zero_error_least"] for row in summary.to_pylist()),
        names=set_names(manifest),
        quantiles=list(QUANTILES),
        drawings=[pair for pair in drawings if pair is not key],
        claims=claims,
        replicates_data=replicates_data,
        interactive=interactive,
        definition=_definition(manifest, families),
        methods=_methods(manifest, summary),
        **for_a_paper(manifest, known, replicates, summary, families),
        known=_worst(manifest, known),
        conditions_drawn=violins.MAX_CONDITIONS,
        many=len(known) > MAX_OPEN_ROWS,
        staged=any(replicate.stage for replicate in known),
        failures=newest_failures(failures, keys),
        provenance=provenance(replicates.filter(pc.field("key").isin(pa.array(list(keys), pa.string()))), manifest),
        left_out=pc.sum(pc.invert(pc.is_in(replicates["key"], pa.array(list(keys), pa.string())))).as_py() or 0,
    )


def _key_figure(drawings: Sequence[tuple[Drawing, Markup]], families: Sequence[ReportFamily]) -> tuple[Drawing, Markup] | None:
    """The figure of the first screen: what a family says answers its studies, else the first."""
    by_name = {pair[0].name: pair for pair in reversed(drawings)}
    preferred = (name for family in families for name in family.key_figures if name in by_name)
    return by_name.get(next(preferred, "")) or next(iter(drawings), None)


def _definition(manifest: dict[str, Any], families: Sequence[ReportFamily]) -> str:
    errors = {task: error for family in families for task, error in family.errors.items()}

    def error(condition: dict[str, Any]) -> str:
        task = condition.get("settings", condition.get("config", {})).get("task", {}).get("name")
        fallback = f"a scored position of {task} where the most probable answer is wrong"
        return scoring_of(condition).error or errors.get(task, fallback)

    wrong = "; or ".join(dict.fromkeys(map(error, manifest["conditions"])))
    return f"An error is {wrong}. The error rate is errors divided by such positions over a whole set, at the last step."


def _packs(replicates: pa.Table, keys: pa.Array) -> pa.Array:
    """The packs that hold replicates of these keys."""
    return replicates.filter(pc.is_in(replicates["key"], keys))["pack"].unique()


def _worst(manifest: dict[str, Any], known: Sequence[Replicate]) -> Sequence[Replicate]:
    """All replicates of a study of at most 2 × MAX_ROWS; else the MAX_ROWS worst of any reported set, in the plan's order."""
    if len(known) <= 2 * MAX_ROWS:
        return known
    names = reported_sets(manifest)
    worst = [max((e for name in names if (e := r.error(name)) is not None), default=-1.0) for r in known]
    return [known[i] for i in sorted(np.argsort(-np.array(worst), kind="stable")[:MAX_ROWS].tolist())]


def _groups(summary: pa.Table) -> list[dict[str, Any]]:
    """The summary's rows by condition and stage."""
    groups: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in summary.to_pylist():
        groups.setdefault((row["condition"], row["stage"]), []).append(row)
    return [{"condition": condition, "stage": stage, "rows": rows} for (condition, stage), rows in groups.items()]


def _methods(manifest: dict[str, Any], summary: pa.Table) -> dict[str, Any]:
    """Settings that all conditions share, those that differ, the sets with their hashes, and the seeds."""
    conditions = manifest["conditions"]
    # `config` is what is hashed, so it leaves defaults out; `settings`, where a manifest has it, is complete
    complete = all("settings" in condition for condition in conditions)
    configs = [condition["settings" if complete else "config"] for condition in conditions]
    flat = [flatten({name: part for name, part in config.items() if part not in ([], {}, None)}) for config in configs]
    names = list(dict.fromkeys(name for settings in flat for name in settings))
    shared = {name: flat[0].get(name) for name in names if all(name in f and f[name] == flat[0].get(name) for f in flat)}
    varied = [name for name in names if name not in shared]
    sizes = {row["set"]: row["reads"] for row in summary.to_pylist() if row["reads"] is not None}
    sets = [
        {
            "name": name,
            "definition": flatten(value["definition"]),
            "sequences": value["sequences"],
            "every": value.get("every"),
            "seed": value.get("seed"),
            "reads": sizes.get(name),
            "by_reads": zero_error_bound(sizes.get(name) or 0),
            "by_sequences": zero_error_bound(value["sequences"]),
            "hashes": list(dict.fromkeys(c["sets"][name]["hash"] for c in conditions if name in c["sets"])),
        }
        for name, value in manifest["sets"].items()
    ]
    settings = [
        {"name": stage_label(c["name"], stage_of(c)), "values": [f.get(name) for name in varied]}
        for c, f in zip(conditions, flat, strict=True)
    ]
    return {
        "shared": shared,
        "complete": complete,
        "varied": varied,
        "conditions": settings,
        "sets": sets,
        "init_seeds": ranges((row[2] for row in manifest["replicates"]), " … "),
        "data_seeds": ranges((row[3] for row in manifest["replicates"]), " … "),
        "paired": all(row[2] == row[3] for row in manifest["replicates"]),
    }
