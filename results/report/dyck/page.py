"""The report's own figures for Dyck languages: attention maps of several seeds side by side, and β against accuracy and length."""

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import matplotlib.ticker
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.axes import Axes

from results.claims.dyck.variation import random_variation
from results.claims.evidence import Condition, Evidence, gather
from results.report.dyck import thesis
from results.report.family import Drawn
from results.report.plots.curves import faint
from results.report.plots.lines_and_maps import attention_squares, square_map
from results.report.plots.palette import INK, Style, colour_of, marker_of
from results.report.plots.panels import legend, mark, titled_panels
from results.report.plots.plot_data import tell
from results.rows.probe_values import by_key
from results.rows.summary import Replicate
from results.statistics.intervals import Floats
from results.store.manifest import Manifest, has_settings_of
from results.store.tables import Store, read

SEEDS, MAPS, SETS = 4, 3, 2  # seeds of a condition, conditions and sets that are drawn, at most
ARMS = 10
TASKS = ("dyck", "dyck_copy")
BETA = "balance violation β, mean"
LONGEST = 200  # tokens of a string whose attention is drawn
STRING = 19  # tokens of the random strings of the probe `variation`


def drawings(store: Store, manifest: Manifest, known: Sequence[Replicate], finished: pa.Table) -> list[Drawn]:
    """Every figure that there are rows of probes for; [] for a study of another task."""
    if not has_settings_of(manifest, *TASKS):
        return []
    measured = read(store, "probes", winning=finished)
    evidence = gather(manifest, known, probes=by_key(measured))
    place = {id(replicate): number for number, replicate in enumerate(known)}
    return [*_maps(evidence), *_variations(evidence, measured), *_accuracy(evidence, place), *_lengths(evidence)]


def _maps(evidence: Evidence) -> list[Drawn]:
    """Maps of the last layer, a row for each condition with its first seeds; queries run downwards, keys to the right."""
    squares: dict[str, Floats] = {}
    own = next((name for name, definition in evidence.definitions.items() if not definition), None)
    for condition in evidence.conditions:
        mapped = evidence.probed(condition, "map")[:SEEDS]
        if mapped and len(squares) < MAPS * SEEDS:
            for replicate, values in mapped:
                error = None if own is None else replicate.error(own)
                right = "" if error is None else f", {100 * (1 - min(error, 1)):.4g} % right"
                by_place = attention_squares(values, "map", LONGEST)
                squares[f"{condition.name}, seed {replicate.init_seed}{right}"] = by_place[
                    max(layer for layer, _ in by_place), 0
                ]
    if not squares:
        return []
    types = max(condition.settings["task.types"] for condition in evidence.conditions)
    depth = max(condition.settings["task.depth"] for condition in evidence.conditions)
    signs = "()[]{}<>" if types <= 4 else ""
    tokens = ["s", *(sign for sign in signs[: 2 * types] for _ in range(depth))]
    with titled_panels(squares, 3.2, 3.0, "reads", "token", columns=min(SEEDS, len(squares))) as (figure, panels):
        for panel, (title, square) in zip(panels, squares.items(), strict=True):
            square_map(panel, square)
            panel.set_title(title, fontsize=8)
            labels = tokens if len(tokens) == len(square) else ["s", *map(str, range(1, len(square)))]
            for set_ticks in (panel.set_xticks, panel.set_yticks):
                set_ticks(np.arange(len(square)) + 0.5, labels, fontsize=6)
    caption = (
        "Attention of the last layer on one string with brackets of all types and depths, dark for 0 and light for 1; of several heads "
        "the first; s is the start. Seeds of a condition side by side, with their accuracy on the training distribution."
    )
    return [("attention-maps", "Attention of several seeds", caption, figure)]


def _variations(evidence: Evidence, measured: pa.Table) -> list[Drawn]:
    """Mean variation over pairs of seeds by layer, with its standard deviation over random strings, and on the fixed one (table 2.6)."""
    rows = measured.filter((pc.field("probe") == "variation") & pc.field("other_key").is_valid())
    condition_of = {each.key: condition.name for condition in evidence.conditions for each in condition.replicates}
    names = pa.array([condition_of.get(key) for key in rows["key"].to_pylist()], pa.string())
    means = rows.append_column("condition", names).group_by(["condition", "layer", "item"]).aggregate([("value", "mean")])
    strings: dict[str, dict[str, dict[int, list[float]]]] = {"fixed": {}, "random": {}}
    for row in means.sort_by([("layer", "ascending"), ("item", "ascending")]).to_pylist():
        kind = "fixed" if row["item"] == "fixed" else "random"
        strings[kind].setdefault(row["condition"], {}).setdefault(row["layer"] + 1, []).append(row["value_mean"])
    arms = [each for each in evidence.conditions if strings["random"].get(each.name)][:ARMS]
    if not arms:
        return []
    fixed_length = arms[0].settings["task.types"] * arms[0].settings["task.depth"] * 2 + 1
    panels = {}
    for title, kind, length, theirs, source, their_random in (
        ("the fixed string", "fixed", fixed_length, thesis.on_fixed_string, "section 2.2.3.2", thesis.FIXED_RANDOM),
        ("random strings", "random", STRING, thesis.on_random_strings, "table 2.6", thesis.RANDOM_RANDOM),
    ):
        own = [{layer: _middle(values) for layer, values in strings[kind].get(arm.name, {}).items()} for arm in arms]
        panels[title] = own, random_variation(length)
        printed = [theirs(arm.settings) or {} for arm in arms]
        if any(printed):
            panels[f"thesis, {source}: {title}"] = printed, their_random
    room = 0.2 + 0.1 * len(arms)
    with titled_panels(panels, 4.6, 3.6, "layer", "attention variation", above=room) as (figure, axes):
        for panel, (by_arm, random) in zip(axes, panels.values(), strict=True):
            for number, by_layer in enumerate(by_arm):
                shift = 0.05 * (number - (len(arms) - 1) / 2)  # equal values stay apart
                _layers(panel, arms[number].name, number, by_layer, shift)
            panel.axhline(random, color=INK, lw=1, ls="--", alpha=0.6)
            panel.set_xticks(sorted({layer for by_layer in by_arm for layer in by_layer}))
            panel.grid(axis="y")
        legend(figure, {arm.name: mark(number) for number, arm in enumerate(arms)})
    caption = (
        "Mean squared distance of the attention of two seeds. On random strings the bar is the standard deviation over strings. Broken: "
        "two random causal matrices, on the fixed string of the first condition."
    )
    if len(panels) > 2:
        caption += (
            " The thesis' panels show the numbers that it prints; their broken line is its own value for random attention."
        )
    return [("attention-variation", "Attention variation by layer", caption, figure)]


def _middle(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation, which is 0 for a single value."""
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def _layers(panel: Axes, name: str, number: int, by_layer: Mapping[int, tuple[float, float]], shift: float) -> None:
    style: Style = {"color": colour_of(number), "lw": 1.4}
    for layer, (middle, spread) in by_layer.items():
        (bar,) = panel.plot([layer + shift] * 2, [middle - spread, middle + spread], **style)
        tell(bar, name)
    middles = [middle for middle, _ in by_layer.values()]
    (line,) = panel.plot([layer + shift for layer in by_layer], middles, marker=marker_of(number), ms=7, **style)
    tell(line, name)


def _accuracy(evidence: Evidence, place: Mapping[int, int]) -> list[Drawn]:
    """One panel per set that changes the training distribution, one point per replicate, by its β; the median of a condition is bold."""
    arms = [each for each in evidence.conditions if evidence.probed(each, "balance")][:ARMS]
    names = [name for name, definition in evidence.definitions.items() if definition][:SETS]
    if not arms or not names:
        return []
    room = 0.2 + 0.1 * len(arms)
    with titled_panels(names, 5.2, 4.2, BETA, "accuracy", above=room) as (figure, panels):
        for panel, name in zip(panels, names, strict=True):
            for number, arm in enumerate(arms):
                _points(panel, number, arm, name, evidence, place)
            panel.set_xscale("log")
            panel.xaxis.set_major_locator(mpl.ticker.LogLocator(subs=(1, 2, 5)))
            panel.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
            panel.minorticks_off()
            panel.yaxis.set_major_formatter(lambda y, _: f"{100 * y:.3g} %")
            panel.grid()
        legend(figure, {arm.name: mark(number) for number, arm in enumerate(arms)})
    sets = "; ".join(
        f"{name}: " + ", ".join(f"{option} = {str(value).lower()}" for option, value in evidence.definitions[name].items())
        for name in names
    )
    caption = (
        "A faint point is a replicate, a bold one the medians of a condition. β is on a logarithmic axis. Strings differ from those of "
        f"training by these settings: {sets}."
    )
    return [("balance-accuracy", "Balance violation and accuracy", caption, figure)]


def _points(panel: Axes, number: int, arm: Condition, name: str, evidence: Evidence, place: Mapping[int, int]) -> None:
    measured = [
        (replicate, values["balance", 0, 0, "beta_mean"], 1 - min(error, 1))
        for replicate, values in evidence.probed(arm, "balance")
        if (error := replicate.error(name)) is not None
    ]
    if not measured:
        return
    style: Style = {"color": colour_of(number), "marker": marker_of(number), "ls": "none"}
    x, y = (np.array([row[column] for row in measured], dtype=np.float64) for column in (1, 2))
    (points,) = panel.plot(x, y, ms=4, alpha=max(0.3, faint(len(x))), **style)
    tell(points, arm.name, [place[id(replicate)] for replicate, *_ in measured])
    (middle,) = panel.plot([np.median(x)], [np.median(y)], ms=10, mec=INK, **style)
    tell(middle, arm.name)


def _lengths(evidence: Evidence) -> list[Drawn]:
    """β against 1/N where conditions have three lengths N or more: every seed, their medians, and a line of slope 1."""
    points: dict[int, list[float]] = {}
    for condition in evidence.conditions:
        for _, values in evidence.probed(condition, "balance"):
            points.setdefault(condition.settings["task.length"], []).append(values["balance", 0, 0, "beta_mean"])
    if len(points) < 3:
        return []
    lengths = sorted(points, reverse=True)
    x, medians = 1 / np.array(lengths, dtype=np.float64), np.array([np.median(points[length]) for length in lengths])
    across = "1/N, one over the length of the training strings"
    with titled_panels([""], 5.6, 4.0, across, BETA, above=0.3) as (figure, (panel,)):
        for length, betas in points.items():
            panel.plot([1 / length] * len(betas), betas, color=colour_of(0), marker="o", ls="none", ms=3, alpha=0.3)
        (middle,) = panel.plot(x, medians, color=colour_of(0), marker=marker_of(0), lw=2)
        (slope,) = panel.plot(x, medians[-1] * x / x[-1], color=INK, lw=1, ls="--", alpha=0.6)
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.yaxis.set_major_locator(mpl.ticker.LogLocator(subs=(1, 2, 5)))
        panel.set_xticks(x, [f"1/{length}" for length in lengths])
        panel.minorticks_off()
        panel.yaxis.set_major_formatter(lambda y, _: f"{y:g}")
        panel.grid()
        legend(figure, {"median over seeds": middle, "proportional to 1/N": slope})
    caption = "A faint point is a replicate. Both axes are logarithmic; the broken line is a violation that falls like 1/N."
    return [("balance-length", "Balance violation and training length", caption, figure)]
