"""A study's report: one HTML page that opens from disk, with its figures and tables beside it.

    write_report(open_store("runs", "fflm-quick"))  # → runs/fflm-quick/report/index.html

Everything is made from the rows of the store and its newest manifest, can be made again at any time, also while the study
still runs, and needs neither torch nor ray.
"""

import os
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from markupsafe import Markup

from results import second_process
from results.claims import verdicts
from results.claims.evidence import Tables
from results.claims.show import html as claims_html
from results.grouping import grouped
from results.large_tables import for_large_tables
from results.output import OutputFolder, report_folder
from results.plain_values import Row, Tree
from results.progress.adaptive_status import CAUTION, lines
from results.report.downloads import ReportTables, for_a_paper, more_tables
from results.report.drawings import draw_all, with_losses_drawn, with_profiles_drawn
from results.report.family import ReportFamily, error_definition, scored_answers
from results.report.family_sections import FAMILIES
from results.report.first_screen import answer
from results.report.interactive import replicates_data
from results.report.methods import methods_text
from results.report.page_parts import Drawing, begin_drawing, drawn_files, every_study, family_drawings, settings_table
from results.report.page_template import FOLDER, render
from results.report.plots import violins
from results.report.values_report import values_report
from results.rows.latex import errors_table
from results.rows.looks import averages, watched
from results.rows.measures import is_experimental
from results.rows.options import flatten
from results.rows.plural import ranges
from results.rows.probe_values import by_key
from results.rows.shared_seeds import caution
from results.rows.summary import (
    Replicate,
    raw_rows,
    replicates_of,
    reported_sets,
    set_names,
    summarise,
    to_csv,
    to_parquet,
)
from results.statistics.intervals import zero_error_bound
from results.statistics.real_values import share_below_largest
from results.store.manifest import Manifest, manifest_of, reported_rows, stage_of
from results.store.manifest import label as stage_label
from results.store.tables import Store

MAX_ROWS = 500  # rows of a large table
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


def _files(store: Store, manifest: Manifest, folder: OutputFolder, families: Sequence[ReportFamily]) -> dict[str, bytes]:
    """The report's files by their paths in its folder; the page is the last, as it links to the others."""
    shared = len(manifest["replicates"]) >= MANY and store.is_local and second_process.worthwhile()
    if shared:
        second_process.submit(drawn_files, ())  # which loads what it draws with later
    tables = ReportTables(store, manifest, shared)
    failures, evaluations = tables.read("failures"), reported_rows(manifest, tables.read("evaluations"))
    known = replicates_of(manifest, tables.replicates, evaluations, failures)
    profiles = tables.read("profiles", with_profiles_drawn(manifest, known, families))
    stated = bool(manifest.get("claims"))  # a claim may read every curve, while the figure shows a few
    curves = tables.read("curves", None if stated else with_losses_drawn(known, tables.replicates))
    measured = tables.read("probes")

    losses = curves.filter(pc.field("metric") == "loss")
    drawings = draw_all(manifest, known, tables.replicates, evaluations, profiles, losses, families)
    drawings += family_drawings(store, manifest, known, tables.replicates, families)
    drawn_figures = begin_drawing(drawings, shared)  # in the second process, during what follows
    summary, rows = summarise(manifest, known), raw_rows(manifest, known)
    beside_the_page = {
        "summary.csv": to_csv(summary),
        "summary.tex": errors_table(summary).encode(),
        "summary.parquet": to_parquet(summary),
        "replicates.csv": to_csv(rows),
        **more_tables(known, rows, tables.replicates, evaluations),
    }
    judged: Tables = {"probes": by_key(measured), "evaluations": evaluations, "measured": measured, "curves": curves}
    if stated:
        judged |= {"averages": averages(store, tables.replicates), "watched": watched(store, tables.replicates)}
    claims = verdicts(manifest, known, **judged)
    figures, shown = drawn_figures()
    whole_page = page(
        manifest,
        known,
        summary,
        tables.replicates,
        failures,
        shown,
        claims_html(claims),
        families=families,
        replicates_data=replicates_data(manifest, known, sorted(path.name for path in folder.folder.glob("replicate-*.html"))),
    )
    return {**tables.copies(), **beside_the_page, **figures, "index.html": whole_page.encode()}


def page(
    manifest: Manifest,
    known: Sequence[Replicate],
    summary: pa.Table,
    replicates: pa.Table,
    failures: pa.Table,
    drawings: Sequence[tuple[Drawing, Markup]],
    claims: Markup | None = None,
    families: Sequence[ReportFamily] = FAMILIES,
    replicates_data: Markup | None = None,
) -> str:
    """The page as one string of HTML."""
    key, answers = _key_figure(drawings, families), scored_answers(manifest["conditions"], families)
    return render(
        FOLDER / "report.html",
        **every_study(manifest, known, replicates, failures, families),
        covers=share_below_largest,
        adaptive=lines(manifest, known),
        adaptive_caution=CAUTION,
        groups=_groups(summary),
        answer=f"{answer(summary, reported_sets(manifest), answers)} {caution(manifest)}".strip(),
        answers=answers,
        key_figure=key,
        long=len(summary) > MAX_SUMMARY,
        bounded=any(row["zero_error_most"] > row["zero_error_least"] for row in summary.to_pylist()),
        names=set_names(manifest),
        drawings=[pair for pair in drawings if pair is not key],
        claims=claims,
        replicates_data=replicates_data,
        definition=error_definition(manifest["conditions"], families),
        methods=_methods(manifest, summary),
        **for_a_paper(manifest, known, replicates, families, methods_text(manifest, known, replicates, summary, families)),
        known=_worst(manifest, known),
        conditions_drawn=violins.MAX_CONDITIONS,
        staged=any(replicate.stage for replicate in known),
    )


def _key_figure(drawings: Sequence[tuple[Drawing, Markup]], families: Sequence[ReportFamily]) -> tuple[Drawing, Markup] | None:
    """The figure of the first screen: what a family says answers its studies, else the first."""
    by_name = {pair[0].name: pair for pair in reversed(drawings)}
    preferred = (name for family in families for name in family.key_figures if name in by_name)
    return by_name.get(next(preferred, "")) or next(iter(drawings), None)


def _worst(manifest: Manifest, known: Sequence[Replicate]) -> Sequence[Replicate]:
    """All replicates of a study of at most 2 × MAX_ROWS; else the MAX_ROWS worst of any reported set, in the plan's order."""
    if len(known) <= 2 * MAX_ROWS:
        return known
    names = reported_sets(manifest)
    worst = [max((e for name in names if (e := r.error(name)) is not None), default=-1.0) for r in known]
    return [known[i] for i in sorted(np.argsort(-np.array(worst), kind="stable")[:MAX_ROWS].tolist())]


def _groups(summary: pa.Table) -> list[Row]:
    """The summary's rows by condition and stage."""
    groups = grouped(((row["condition"], row["stage"]), row) for row in summary.to_pylist())
    return [{"condition": condition, "stage": stage, "rows": rows} for (condition, stage), rows in groups.items()]


def _methods(manifest: Manifest, summary: pa.Table) -> Tree:
    """The values of the methods section: settings that all conditions share, those that differ, sets with their hashes, and seeds."""
    conditions = manifest["conditions"]
    # `config` is what is hashed, so it leaves defaults out; `settings`, where a manifest has it, is complete
    complete = all("settings" in condition for condition in conditions)
    configs = [condition["settings" if complete else "config"] for condition in conditions]
    flat = [flatten({name: part for name, part in config.items() if part not in ([], {}, None)}) for config in configs]
    sizes = grouped((row["set"], row["reads"]) for row in summary.to_pylist() if row["reads"] is not None)
    reads = {name: sorted({min(of_conditions), max(of_conditions)}) for name, of_conditions in sizes.items()}
    sets = [
        {
            "name": name,
            "definition": flatten(value["definition"]),
            "sequences": value["sequences"],
            "every": value.get("every"),
            "seed": value.get("seed"),
            "reads": reads.get(name, []),  # the fewest and the most of a condition; one where all have as many
            "by_reads": [zero_error_bound(count) for count in reversed(reads.get(name, []))],
            "by_sequences": zero_error_bound(value["sequences"]),
            "hashes": list(dict.fromkeys(c["sets"][name]["hash"] for c in conditions if name in c["sets"])),
        }
        for name, value in manifest["sets"].items()
    ]
    return {
        **settings_table([stage_label(condition["name"], stage_of(condition)) for condition in conditions], flat),
        "complete": complete,
        "sets": sets,
        "one_each": all(each["reads"] in ([], [each["sequences"]]) for each in sets),  # one answer per string
        "init_seeds": ranges((row[2] for row in manifest["replicates"]), " … "),
        "data_seeds": ranges((row[3] for row in manifest["replicates"]), " … "),
        "paired": all(row[2] == row[3] for row in manifest["replicates"]),
    }
