"""The figures of a report, from tables to calls of `results.report.figures`: which replicates they show, with which numbers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from results.grouping import grouped
from results.report.family import ReportFamily, compared_sets, scored_answers
from results.report.family_sections import FAMILIES
from results.report.page_parts import Drawing
from results.report.plots import pareto, violins
from results.report.plots.curves import MOST_BANDS, Curve, error_curves, loss_curves
from results.report.plots.errors_by_condition import errors_by_condition
from results.report.plots.errors_by_distance import Profile, bins_are_single, each_is_drawn, errors_by_distance
from results.report.plots.survival_figure import baseline, survival_drawing
from results.rows.summary import Replicate, at_last_step, errors_of, online_sets, reported_sets
from results.statistics.intervals import Floats
from results.store.manifest import Manifest, is_of

MAX_CURVES, MAX_PANELS = 75, 24  # of a figure of curves
SWEEP = 4  # conditions of a small study

Who = tuple[str, int]  # key and stage of a replicate


@dataclass(frozen=True)
class _Study:
    """What the figures of a study share.

    groups: every replicate by what a figure calls its condition; shown: the conditions whose replicates are drawn one by one;
    reported: names of sets; places: of each (key, stage) in the study's list.
    """

    manifest: Manifest
    groups: dict[str, list[Replicate]]
    shown: dict[str, list[Replicate]]
    reported: list[str]
    places: dict[Who, int]
    families: Sequence[ReportFamily]


def draw_all(
    manifest: Manifest,
    known: Sequence[Replicate],
    replicates: pa.Table,
    evaluations: pa.Table,
    profiles: pa.Table,
    losses: pa.Table,
    families: Sequence[ReportFamily] = FAMILIES,
) -> list[Drawing]:
    """Every figure that there are rows for, in the order of the page."""
    shown, places = _shown_conditions(manifest, known, families), {(r.key, r.stage): i for i, r in enumerate(known)}
    study = _Study(manifest, _by_label(known), shown, reported_sets(manifest), places, families)
    return [
        *_errors_by_condition(study),
        *_error_against_error(study),
        *_errors_by_distance(study, profiles, replicates),
        *_error_curves(study, evaluations),
        *_loss_curves(study, losses, replicates),
    ]


def _errors_by_condition(study: _Study) -> Iterator[Drawing]:
    """Every replicate's error by condition, then the survival curves."""
    groups, errors = study.groups, _errors(study.groups, study.reported)
    if not any(values.size for by in errors.values() for values in by.values()):
        return
    beyond = _beyond_breaks(errors, ("left of", "right of") if len(groups) > SWEEP else ("below", "above"))
    caption = (
        "Error rate of every replicate. Bars: minimum, 25 %, median (bold), 75 % and maximum over all replicates. Shading: "
        f"density of the positive rates on the logarithmic axis.{beyond}"
    )
    if len(groups) > SWEEP:
        first = baseline(study.manifest, groups, study.families) or next(iter(groups))
        caption += " Each set has its own order, by the median"
        if any(by[first].size for by in errors.values()):
            caption += f"; the dashed line is the median of the baseline, “{first}”"
        caption += "."
        figure = partial(violins.sweep, errors, first)
    else:
        rows = {
            name: {
                condition: [study.places[r.key, r.stage] for r in members if r.error(name) is not None]
                for condition, members in groups.items()
            }
            for name in study.reported
        }
        figure = partial(errors_by_condition, errors, rows)
    yield Drawing("errors", "Error by condition", caption, figure)
    caption, figure = survival_drawing(study.manifest, groups, study.reported, study.families)
    yield Drawing("survival", "Survival curves of error", caption, figure)


def _beyond_breaks(errors: Mapping[str, Mapping[str, Floats]], sides: tuple[str, str]) -> str:
    """The sentence of a caption on the replicates that have no place on the logarithmic axis; empty where there are none."""
    rates = np.concatenate([values for by in errors.values() for values in by.values()])
    zeros, diverged = bool((rates == 0).any()), bool(np.isinf(rates).any())
    if not zeros:
        return f" Diverged replicates stand {sides[1]} a break of the axis." if diverged else ""
    return f" Replicates without an error stand {sides[0]} a break of the axis{f', diverged ones {sides[1]} one' * diverged}."


def _error_against_error(study: _Study) -> Iterator[Drawing]:
    """The error of every replicate on one set against that on another."""
    if (sets := compared_sets(study.manifest, study.families)) is None:
        return
    x, y = sets
    pairs, scored = {}, {}
    for condition, members in study.groups.items():
        both = [r for r in members if r.error(x) is not None and r.error(y) is not None]
        if both:
            pairs[condition] = (errors_of(both, x), errors_of(both, y))
            scored[condition] = [study.places[r.key, r.stage] for r in both]
    if pairs:
        figure = partial(pareto.draw, pairs, x, y, scored)
        yield Drawing("scatter", f"Error on {y} against error on {x}", pareto.caption(pairs, x, y), figure)


def _errors_by_distance(study: _Study, profiles: pa.Table, replicates: pa.Table) -> Iterator[Drawing]:
    """A figure for each axis of the profiles."""
    finished = {(r.key, r.stage): label for label, members in study.shown.items() for r in members if r.status == "finished"}
    answers = scored_answers(study.manifest["conditions"], study.families)
    for axis, (title, axis_label) in _axes(study, profiles).items():
        by_set = _profiles(profiles, replicates, axis, study.reported, finished, study.places)
        if by_set:
            caption = _distance_caption(by_set, answers)
            yield Drawing(f"profile-{axis}", title, caption, partial(errors_by_distance, by_set, axis_label))


def _distance_caption(by_set: Mapping[str, Mapping[str, Profile]], answers: str) -> str:
    each = " Light: each replicate." if each_is_drawn(by_set) else ""
    bins = "" if bins_are_single(by_set) else " A point stands for a bin of distances, at its geometric mean."
    hidden = "; only the condition pointed at has it" if max(map(len, by_set.values())) > MOST_BANDS else ""
    return (
        f"Bold: the error rate of a condition, pooled over its replicates without the diverged ones.{each} Dashed: the median over "
        f"replicates. Shading: from the 25 % to the 75 % quantile, where one replicate has enough {answers} to show the pooled "
        f"rate{hidden}.{bins} An open triangle is the upper bound of a bin "
        f"without an error (95 %, if {answers} are independent); bins without {answers} are left out."
    )


def _error_curves(study: _Study, evaluations: pa.Table) -> Iterator[Drawing]:
    """A figure for each set that is scored during training."""
    label = _labels(study.groups)
    for name in online_sets(study.manifest):
        used = evaluations.select(["key", "stage", "step", "set", "weights", "errors", "count"])
        rows = used.filter((pc.field("set") == name) & (pc.field("weights") == "raw") & (pc.field("count") > 0))
        rate = pc.divide(rows["errors"].cast(pa.float64()), rows["count"].cast(pa.float64()))
        curves, who, left_out = curves_of(rows, rate, _with_rows(label, rows))
        if curves:
            caption = f"Error rate on “{name}” during training. Light: at each step; bold: the lowest so far. {left_out}"
            draw = partial(error_curves, curves, _at(study.places, who))
            yield Drawing(f"curves-{name}", f"Training curves: {name}", caption, draw)


def _loss_curves(study: _Study, losses: pa.Table, replicates: pa.Table) -> Iterator[Drawing]:
    curves, who, left_out = curves_of(losses, losses["value"], _trained(study.groups, replicates))
    if curves:
        caption = (
            f"Training loss in nats per scored token. Each point is the mean of the steps since the point before. {left_out}"
        )
        yield Drawing("loss", "Training loss", caption, partial(loss_curves, curves, _at(study.places, who)))


def _labels(groups: Mapping[str, Sequence[Replicate]]) -> dict[Who, str]:
    """The name that a figure gives to the condition of each (key, stage); the last one where several share it."""
    return {(r.key, r.stage): label for label, members in groups.items() for r in members}


def _by_label(known: Sequence[Replicate]) -> dict[str, list[Replicate]]:
    return grouped((r.label, r) for r in known)


def _axes(study: _Study, profiles: pa.Table) -> dict[str, tuple[str, str]]:
    """(title, label) of each axis of the rows: those that families name, then the others by their own names.

    Axes that families draw in their own way are left out.
    """
    tasks = [(task, axes) for family in study.families for task, axes in family.hidden_axes.items()]
    hidden = {axis for task, axes in tasks if is_of(study.manifest, task) for axis in axes}
    present = [axis for axis in profiles["axis"].unique().to_pylist() if axis not in hidden]
    named = {axis: text for family in study.families for axis, text in family.axes.items() if axis in present}
    plain_names = {axis: axis.replace("_", " ") for axis in sorted(present) if axis not in named}
    return named | {axis: (f"Error by {name}", name) for axis, name in plain_names.items()}


def _profiles(
    profiles: pa.Table, replicates: pa.Table, axis: str, names: list[str], label: Mapping[Who, str], places: Mapping[Who, int]
) -> dict[str, dict[str, Profile]]:
    """Last-step profiles along one axis by set and condition, with the replicates' bins aligned."""
    rows = at_last_step(profiles.filter(pc.field("axis") == axis), replicates)
    cells: dict[str, dict[str, dict[Who, dict[tuple[int, int], tuple[int, int]]]]] = {}
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


def _profile(by: Mapping[Who, dict[tuple[int, int], tuple[int, int]]], places: Mapping[Who, int]) -> Profile:
    """The replicates in the order of the study's list, whatever the order of the rows in the store's files."""
    planned = sorted(by, key=places.__getitem__)
    bins = sorted({edges for replicate in by.values() for edges, (_, count) in replicate.items() if count})
    table = np.array([[by[who].get(edges, (0, 0)) for edges in bins] for who in planned], dtype=np.float64)
    edges = np.array(bins, dtype=np.float64)
    return Profile(edges[:, 0], edges[:, 1], table[..., 0], table[..., 1], [places[who] for who in planned])


def _errors(groups: dict[str, list[Replicate]], names: Sequence[str]) -> dict[str, dict[str, Floats]]:
    """Error rates by set and condition, infinity for a diverged replicate."""
    return {name: {condition: errors_of(members, name) for condition, members in groups.items()} for name in names}


def _shown_conditions(
    manifest: Manifest, known: Sequence[Replicate], families: Sequence[ReportFamily]
) -> dict[str, list[Replicate]]:
    """The conditions that figures of single replicates show, in the study's order; in a large study, those farthest from its baseline."""
    groups, first_set = _by_label(known), reported_sets(manifest)[:1]
    errors = _errors(groups, first_set)
    if len(groups) <= SWEEP or not any(values.size for by in errors.values() for values in by.values()):
        return groups
    kept = set(violins.largest(errors[first_set[0]], baseline(manifest, groups, families) or next(iter(groups))))
    return {name: members for name, members in groups.items() if name in kept}


def _with_rows(label: Mapping[Who, str], rows: pa.Table) -> dict[str, list[Who]]:
    """The planned (key, stage) with rows in a table, by condition and in the plan's order, whichever ended first."""
    pairs = rows.group_by(["key", "stage"], use_threads=False).aggregate([])
    present = set(zip(pairs["key"].to_pylist(), pairs["stage"].to_pylist(), strict=True))
    return grouped((condition, who) for who, condition in label.items() if who in present)


def _trained(groups: Mapping[str, Sequence[Replicate]], replicates: pa.Table) -> dict[str, list[Who]]:
    """As `_with_rows`, for the committed replicates that were trained."""
    return _with_rows(_labels(groups), replicates.filter(pc.field("steps") > 0))


def with_losses_drawn(known: Sequence[Replicate], replicates: pa.Table) -> list[str]:
    """Keys of the replicates whose loss curves are drawn."""
    chosen = _first_of_each(_trained(_by_label(known), replicates))
    return [key for members in chosen.values() for key, _ in members]


def with_profiles_drawn(manifest: Manifest, known: Sequence[Replicate], families: Sequence[ReportFamily]) -> list[str]:
    """Keys of the replicates whose profiles are drawn."""
    return [r.key for members in _shown_conditions(manifest, known, families).values() for r in members]


def _first_of_each(by: dict[str, list[Who]]) -> dict[str, list[Who]]:
    """The first of each condition, at most MAX_CURVES of MAX_PANELS conditions together."""
    total, panels = sum(map(len, by.values())), dict(list(by.items())[:MAX_PANELS])
    quota = max(1, MAX_CURVES // max(len(panels), 1)) if total > MAX_CURVES else total
    return {condition: members[:quota] for condition, members in panels.items()}


def curves_of(
    rows: pa.Table, values: pa.Array | pa.ChunkedArray, by: dict[str, list[Who]]
) -> tuple[dict[str, list[Curve]], dict[str, list[Who]], str]:
    """(steps, values) of the `_first_of_each` replicates of `by`, their (key, stage), and a sentence about those that are left out."""
    total, chosen = sum(map(len, by.values())), _first_of_each(by)
    wanted = pc.is_in(rows["key"], pa.array([key for members in chosen.values() for key, _ in members], pa.string()))
    kept = rows.filter(wanted)  # the others never become Python objects
    found: dict[Who, list[tuple[int, float]]] = {}
    columns = (kept["key"].to_pylist(), kept["stage"].to_pylist(), kept["step"].to_pylist(), values.filter(wanted).to_pylist())
    for key, stage, step, value in zip(*columns, strict=True):
        found.setdefault((key, stage), []).append((step, value))
    drawn_of = {condition: [who for who in members if who in found] for condition, members in chosen.items()}
    drawn_of = {condition: members for condition, members in drawn_of.items() if members}
    shown: dict[str, list[Curve]] = {
        condition: [tuple(np.array(sorted(found[who]), dtype=np.float64).T) for who in members]  # type: ignore[misc]
        for condition, members in drawn_of.items()
    }
    drawn, conditions = sum(map(len, shown.values())), "each condition" if len(shown) == len(by) else f"{len(shown)} conditions"
    return shown, drawn_of, f"{drawn:,} of {total:,} replicates are shown, the first of {conditions}." if drawn < total else ""


def _at(places: Mapping[Who, int], by: Mapping[str, Sequence[Who]]) -> dict[str, list[int]]:
    """Places in the study's list, by condition."""
    return {condition: [places[who] for who in members] for condition, members in by.items()}
