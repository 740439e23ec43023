"""A study's report: one HTML page that opens from disk, with its figures and tables beside it.

    write_report(open_store("runs", "fflm-quick"))  # → runs/fflm-quick/report/index.html

Everything is made from the rows of the store and its newest manifest, can be made again at any time, also while the study
still runs, and needs neither torch nor ray.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from markupsafe import Markup

from results import second_process
from results.claims import verdicts
from results.claims.show import html as claims_html
from results.errors import StudyError
from results.output import report_folder
from results.progress.adaptive_status import CAUTION, lines
from results.report import figures, pareto, violins
from results.report.downloads import for_a_paper, more_tables
from results.report.family import ReportFamily
from results.report.family_sections import FAMILIES
from results.report.first_screen import answer, changes, paper_shows
from results.report.interactive import replicates_data
from results.report.page_parts import Drawing, begin_drawing, newest_failures, provenance
from results.report.page_template import FOLDER, render
from results.report.survival_figure import baseline, survival_drawing
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
from results.store.manifest import label as stage_label
from results.store.manifest import newest_manifest, reported, scoring_of, stage_of
from results.store.tables import ROW, Store, committed, read

MAX_CURVES, MAX_PANELS, MAX_OPEN_ROWS = 75, 24, 200  # curves a figure; the interactive one has its own
MAX_ROWS, SWEEP = 500, 4  # rows of a large table; conditions of a small study
MAX_SUMMARY = 24  # rows of the summary; a longer one is folded
MANY = 2_000  # replicates of a study whose report two processes make


Who = tuple[str, int]  # key and stage of a replicate


def write_report(store: Store, out: str | os.PathLike[str] | None = None, families: Sequence[ReportFamily] = FAMILIES) -> Path:
    """Write index.html, figures/ and the tables of `results.report.downloads.TABLES`; returns the path of the page.

    `out` is a local folder: `<store>/<study>/report` by default, or `./report-<study>` when the store is not local. `families` are
    those whose sections are drawn.
    Raises FileNotFoundError where the store has no manifest of the study, ValueError where a file of the store is broken.
    """
    newest = newest_manifest(store)
    if newest is None:
        raise StudyError(
            f"no study {store.study!r} in {store.root}: it has no manifests/*.yaml; "
            "run the study first, or correct store= or the name"
        )
    manifest = newest[1]
    folder = report_folder(store, out)
    if is_experimental(manifest):
        for name, data in values_report(store, manifest, families).items():
            page_path = folder.write(name, data)
        return page_path
    shared = len(manifest["replicates"]) >= MANY and store.is_local and second_process.worthwhile()
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
        copies[table] = second_process.submit(_copy, store, table, finished.select(ROW))
        packs = None if keys is None else set(_packs(finished, keys).to_pylist())
        return read(store, table, filter=chosen, winning=finished, packs=packs)

    failures, evaluations = whole("failures"), whole("evaluations").filter(reported(manifest))
    known = replicates_of(manifest, finished, evaluations, failures)
    summary, rows = summarise(manifest, known), raw_rows(manifest, known)
    drawn = pa.array([r.key for members in _shown(manifest, known, families).values() for r in members], pa.string())
    profiles = rows_of("profiles", drawn)
    hidden = [
        axis for family in families for task, axes in family.hidden_axes.items() if is_of(manifest, task) for axis in axes
    ]
    profiles = profiles.filter(~pc.field("axis").isin(pa.array(hidden, pa.string())))
    # a claim may look at every curve; the figure shows a few
    first = pa.array([key for members in _first(_ended(known, finished)).values() for key, _ in members], pa.string())
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
    files = {f"tables/{name}.parquet": copy.result() for name, copy in copies.items()} | files
    for name, data in files.items():
        page_path = folder.write(name, data)
    return page_path


def _copy(store: Store, table: str, winning: pa.Table) -> bytes:
    """The rows of a table that count as a Parquet file."""
    return to_parquet(read(store, table, winning=winning))


def draw_all(
    manifest: dict[str, Any],
    known: Sequence[Replicate],
    replicates: pa.Table,
    evaluations: pa.Table,
    profiles: pa.Table,
    losses: pa.Table,
    families: Sequence[ReportFamily] = FAMILIES,
) -> list[Drawing]:
    """Every figure that there are rows for."""
    label, groups = _labels(known), _by_label(known)
    reported, drawings = reported_sets(manifest), []
    errors, places = _errors(groups, reported), {(r.key, r.stage): i for i, r in enumerate(known)}
    if any(values.size for by in errors.values() for values in by.values()):
        caption = (
            "Error rate of every replicate. Bars: minimum, 25 %, median (bold), 75 %, maximum over all replicates; shading: "
            "density of the positive rates on the log axis. Replicates without a single error are a category of their own below "
            "the broken axis" + (", diverged ones above it." if any(r.status == "diverged" for r in known) else ".")
        )
        if len(groups) > SWEEP:
            first = baseline(manifest, groups, families) or next(iter(groups))
            caption += f" Each set has its own order, by the median; the dashed line is the median of the baseline, “{first}”."
            caption = caption.replace("below the broken axis", "left of the broken axis").replace("above it", "right of it")
            drawings.append(Drawing("errors", "Error by condition", caption, partial(violins.sweep, errors, first)))
            groups = _shown(manifest, known, families)
        else:
            rows = {
                name: {
                    condition: [places[r.key, r.stage] for r in members if r.error(name) is not None]
                    for condition, members in groups.items()
                }
                for name in reported
            }
            drawings.append(
                Drawing("errors", "Error by condition", caption, partial(figures.errors_by_condition, errors, rows))
            )
        caption, figure = survival_drawing(manifest, _by_label(known), reported, families)
        drawings.append(Drawing("survival", "Survival curves of error", caption, figure))
    if len(reported) > 1:
        x, y = ("sparse", "dense") if {"sparse", "dense"} <= set(reported) else (reported[0], reported[1])
        pairs, scored = {}, {}
        for condition, members in groups.items():
            both = [r for r in members if r.error(x) is not None and r.error(y) is not None]
            if both:
                pairs[condition] = tuple(np.array([(r.error(x), r.error(y)) for r in both], dtype=np.float64).T)
                scored[condition] = [places[r.key, r.stage] for r in both]
        if pairs:
            caption = (
                f"A point is a replicate: its {y} against its {x} error rate. The shaded strips hold the replicates with "
                "exactly 0 errors; the place inside a strip has no meaning."
            )
            drawings.append(
                Drawing("scatter", f"{y} against {x}".capitalize(), caption, partial(figures.scatter, pairs, x, y, scored))
            )
    drawn = [r for members in groups.values() for r in members if r.status == "finished"]
    alive = {(r.key, r.stage): label[r.key, r.stage] for r in drawn}
    for axis, (title, axis_label) in _axes(profiles, families).items():
        by_set = _profiles(profiles, replicates, axis, reported, alive, places)
        if by_set:
            caption = (
                "Bold: errors divided by reads, pooled over the replicates of a condition (diverged ones aside); light: each "
                "replicate; dashed: the median over replicates; shading: from their 25 % to their 75 % quantile, where one replicate has "
                "reads enough to show the pooled rate. A point stands for a bin of distances, at its geometric middle. An open triangle is "
                "the upper bound (95 %, were reads independent) of a bin with reads and no error; bins without a read are left out."
            )
            draw = partial(figures.errors_by_distance, by_set, axis_label)
            drawings.append(Drawing(f"profile-{axis}", title, caption, draw))
    for name in (name for name in set_names(manifest) if manifest["sets"][name].get("every") is not None):
        rows = evaluations.filter((pc.field("set") == name) & (pc.field("weights") == "raw") & (pc.field("count") > 0))
        rate = pc.divide(rows["errors"].cast(pa.float64()), rows["count"].cast(pa.float64()))
        curves, who, left_out = _curves(rows, rate, _with_rows(label, rows))
        if curves:
            caption = f"Error rate on “{name}” during training: raw in light, the best so far in bold. {left_out}"
            drawings.append(
                Drawing(
                    f"curves-{name}",
                    f"Training curves: {name}",
                    caption,
                    partial(figures.error_curves, curves, _at(places, who)),
                )
            )
    curves, who, left_out = _curves(losses, losses["value"], _ended(known, replicates))
    if curves:
        caption = f"Training loss in nats per scored token, the mean of the steps since the point before. {left_out}"
        drawings.append(Drawing("loss", "Training loss", caption, partial(figures.loss_curves, curves, _at(places, who))))
    return drawings


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
    by_name = {drawing.name: (drawing, svg) for drawing, svg in reversed(drawings)}
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


def _labels(known: Iterable[Replicate]) -> dict[tuple[str, int], str]:
    """What a figure calls the condition of each (key, stage); the last of those that share it."""
    return {(r.key, r.stage): name for name, members in _by_label(list(known)).items() for r in members}


def _by_label(known: Sequence[Replicate]) -> dict[str, list[Replicate]]:
    groups: dict[str, list[Replicate]] = {}
    for r in known:
        groups.setdefault(stage_label(r.condition, r.stage), []).append(r)
    return groups


def _axes(profiles: pa.Table, families: Sequence[ReportFamily]) -> dict[str, tuple[str, str]]:
    """Title and label by axis of the rows: what families call theirs, then the others by their names."""
    present = profiles["axis"].unique().to_pylist()
    named = {axis: text for family in families for axis, text in family.axes.items() if axis in present}
    plain_names = {axis: axis.replace("_", " ") for axis in sorted(present) if axis not in named}
    return named | {axis: (f"Error by {name}", name) for axis, name in plain_names.items()}


def _profiles(
    profiles: pa.Table, replicates: pa.Table, axis: str, names: list[str], label: Mapping[Who, str], places: Mapping[Who, int]
) -> dict[str, dict[str, figures.Profile]]:
    """Last-step profiles along one axis by set and condition, with the replicates' bins aligned."""
    last = replicates.select(["key", "stage", "pack", "steps"]).rename_columns(["key", "stage", "pack", "step"])
    rows = profiles.filter(pc.field("axis") == axis).join(last, keys=["key", "stage", "pack", "step"], join_type="left semi")
    cells: dict[str, dict[str, dict[tuple[str, int], dict[tuple[int, int], tuple[int, int]]]]] = {}
    wanted = pa.array([key for key, _ in label], pa.string())
    for row in rows.filter(pc.field("key").isin(wanted)).to_pylist():
        who = (row["key"], row["stage"])
        if row["set"] in names and who in label:
            by = cells.setdefault(row["set"], {}).setdefault(label[who], {}).setdefault(who, {})
            by[row["lo"], row["hi"]] = (row["errors"], row["count"])
    order = {condition: i for i, condition in enumerate(dict.fromkeys(label.values()))}
    return {
        name: {condition: _profile(cells[name][condition], places) for condition in sorted(cells[name], key=order.__getitem__)}
        for name in names
        if name in cells
    }


def _profile(by: Mapping[Who, dict[tuple[int, int], tuple[int, int]]], places: Mapping[Who, int]) -> figures.Profile:
    bins = sorted({edges for replicate in by.values() for edges, (_, count) in replicate.items() if count})
    table = np.array([[replicate.get(edges, (0, 0)) for edges in bins] for replicate in by.values()], dtype=np.float64)
    edges = np.array(bins, dtype=np.float64)
    rows = [places[who] for who in by]
    return figures.Profile(edges[:, 0], edges[:, 1], table[..., 0], table[..., 1], rows)


def _errors(groups: dict[str, list[Replicate]], names: Sequence[str]) -> dict[str, dict[str, figures.Floats]]:
    """Error rates by set and condition, infinity for a diverged replicate."""
    return {
        name: {
            condition: np.array([e for r in members if (e := r.error(name)) is not None])
            for condition, members in groups.items()
        }
        for name in names
    }


def _shown(
    manifest: dict[str, Any], known: Sequence[Replicate], families: Sequence[ReportFamily]
) -> dict[str, list[Replicate]]:
    """The conditions that figures of single replicates show, in the study's order: of a large study those furthest from its baseline."""
    groups, first_set = _by_label(known), reported_sets(manifest)[:1]
    errors = _errors(groups, first_set)
    if len(groups) <= SWEEP or not any(values.size for by in errors.values() for values in by.values()):
        return groups
    kept = set(violins.largest(errors[first_set[0]], baseline(manifest, groups, families) or next(iter(groups))))
    return {name: members for name, members in groups.items() if name in kept}


def _packs(replicates: pa.Table, keys: pa.Array) -> pa.Array:
    """The packs that hold replicates of these keys."""
    return replicates.filter(pc.is_in(replicates["key"], keys))["pack"].unique()


def _pairs(rows: pa.Table) -> set[tuple[str, int]]:
    """Every (key, stage) of a table."""
    pairs = rows.select(["key", "stage"]).group_by(["key", "stage"], use_threads=False).aggregate([])
    return set(zip(pairs["key"].to_pylist(), pairs["stage"].to_pylist(), strict=True))


def _with_rows(label: dict[tuple[str, int], str], rows: pa.Table) -> dict[str, list[tuple[str, int]]]:
    """By condition the planned (key, stage) of which a table has rows, in the plan's order, whatever ended first."""
    pairs, by = _pairs(rows), dict[str, list[tuple[str, int]]]()
    for who, condition in label.items():
        if who in pairs:
            by.setdefault(condition, []).append(who)
    return by


def _ended(known: Sequence[Replicate], replicates: pa.Table) -> dict[str, list[tuple[str, int]]]:
    """As `_with_rows`, of the committed replicates that were trained."""
    return _with_rows(_labels(known), replicates.filter(pc.field("steps") > 0))


def _first(by: dict[str, list[tuple[str, int]]]) -> dict[str, list[tuple[str, int]]]:
    """The first of each condition, at most MAX_CURVES of MAX_PANELS conditions together."""
    total, panels = sum(map(len, by.values())), dict(list(by.items())[:MAX_PANELS])
    quota = max(1, MAX_CURVES // max(len(panels), 1)) if total > MAX_CURVES else total
    return {condition: members[:quota] for condition, members in panels.items()}


def _curves(
    rows: pa.Table, values: pa.Array | pa.ChunkedArray, by: dict[str, list[tuple[str, int]]]
) -> tuple[dict[str, list[tuple[figures.Floats, figures.Floats]]], dict[str, list[Who]], str]:
    """(step, value) of the `_first` replicates of `by`, who they are, and a sentence on what is left out."""
    total, chosen = sum(map(len, by.values())), _first(by)
    wanted = pc.is_in(rows["key"], pa.array([key for members in chosen.values() for key, _ in members], pa.string()))
    kept = rows.filter(wanted)  # the others never become Python objects
    found: dict[tuple[str, int], list[tuple[int, float]]] = {}
    columns = (kept["key"].to_pylist(), kept["stage"].to_pylist(), kept["step"].to_pylist(), values.filter(wanted).to_pylist())
    for key, stage, step, value in zip(*columns, strict=True):
        found.setdefault((key, stage), []).append((step, value))
    drawn_of = {condition: [who for who in members if who in found] for condition, members in chosen.items()}
    drawn_of = {condition: members for condition, members in drawn_of.items() if members}
    shown: dict[str, list[tuple[figures.Floats, figures.Floats]]] = {
        condition: [tuple(np.array(sorted(found[who]), dtype=np.float64).T) for who in members]  # type: ignore[misc]
        for condition, members in drawn_of.items()
    }
    drawn = sum(map(len, shown.values()))
    return (
        shown,
        drawn_of,
        f"{drawn:,} of {total:,} replicates are shown, the first of each condition." if drawn < total else "",
    )


def _at(places: Mapping[Who, int], by: Mapping[str, Sequence[Who]]) -> dict[str, list[int]]:
    """Places in the study's list, by condition."""
    return {condition: [places[who] for who in members] for condition, members in by.items()}


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
