"""The report's figure of the steps that students need by the length of a parity (Panigrahi et al. 2025, theorem 23)."""

import math
from collections.abc import Iterable, Mapping, Sequence

import matplotlib as mpl
import matplotlib.ticker
import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from results.claims.evidence import Condition, gather
from results.report.family import Drawn
from results.report.plots.palette import colour_of, marker_of
from results.report.plots.panels import legend, titled_panels
from results.report.plots.plot_data import tell
from results.rows.accuracy_curves import watch
from results.rows.summary import Replicate, of_replicates
from results.statistics.intervals import quantile
from results.statistics.transition import first_step
from results.store.manifest import Manifest, has_settings_of, reported
from results.store.tables import Store, read

RIGHT = 0.9
LENGTHS = 3
Steps = Mapping[str, Mapping[int, Sequence[float]]]  # by arm and size, such as the length; infinity for one that is never right


def drawings(store: Store, manifest: Manifest, replicates: Sequence[Replicate], finished: pa.Table) -> list[Drawn]:
    """The figure of a study of sparse parities of three lengths or more; [] for any other."""
    if not has_settings_of(manifest, "sparse_parity"):
        return []
    evidence = gather(manifest, replicates)
    if len(evidence.training_lengths) < LENGTHS:
        return []
    arms = steps_of(evidence.conditions, watch(read(store, "evaluations", filter=reported(manifest), winning=finished)))
    if not arms:
        return []
    caption = (
        f"Steps until {100 * RIGHT:g} % of the strings are right, by the length d of the parity, on the set that is scored most often. "
        "Lines: medians over seeds; points: seeds, a little apart; above the line at the top: never within the training."
    )
    return [("steps-by-length", "Steps by the length of the parity", caption, by_size(arms, "length d of the parity", RIGHT))]


def steps_of(conditions: Iterable[Condition], seen: Mapping[str, Sequence[tuple[int, float]]]) -> Steps:
    arms: dict[str, dict[int, list[float]]] = {}
    for condition in conditions:
        arm = ", ".join(part for part in condition.name.split(", ") if not part.startswith("task.length="))
        steps = [first_step(curve, RIGHT) for curve in of_replicates(condition.replicates, seen)]
        if steps:
            cell = arms.setdefault(arm, {}).setdefault(condition.settings["task.length"], [])
            cell += [math.inf if step is None else float(step) for step in steps]
    return {arm: dict(sorted(lengths.items())) for arm, lengths in arms.items() if len(lengths) >= LENGTHS}


def by_size(arms: Steps, label: str, right: float) -> Figure:
    """Draw the steps to an accuracy of `right` against a size called `label`, on logarithmic axes; an arm keeps its colour and marker."""
    every = [step for lengths in arms.values() for steps in lengths.values() for step in steps]
    never = 1.6 * max((step for step in every if math.isfinite(step)), default=1.0)
    with titled_panels([""], 5.5, 4.6, label, f"steps to an accuracy of {right:g}") as (figure, (panel,)):
        handles: dict[str, Line2D] = {}
        for i, (arm, lengths) in enumerate(arms.items()):
            shift = 1.012 ** (i - (len(arms) - 1) / 2)
            for length, steps in lengths.items():
                shown = [min(step, never) for step in steps]
                (points,) = panel.plot(
                    [length * shift] * len(shown), shown, ls="none", marker=marker_of(i), ms=3.5, color=colour_of(i), alpha=0.35
                )
                tell(points, arm)
            middles = [min(quantile(np.array(steps), 0.5), never) for steps in lengths.values()]
            (handles[arm],) = panel.plot(
                [length * shift for length in lengths], middles, color=colour_of(i), marker=marker_of(i), ms=6, lw=2
            )
            tell(handles[arm], arm)
        if not all(map(math.isfinite, every)):
            panel.axhline(never / 1.2, color="0.5", lw=0.8, ls=":")
        panel.set_xscale("log")
        panel.set_yscale("log")
        ticks = sorted({length for lengths in arms.values() for length in lengths})
        panel.set_xticks(ticks, [str(length) for length in ticks])
        panel.yaxis.set_major_locator(mpl.ticker.LogLocator(subs=(1, 2, 5)))
        panel.yaxis.set_major_formatter(mpl.ticker.FuncFormatter(lambda step, _: f"{step:,.0f}"))
        panel.minorticks_off()
        panel.grid(axis="y")
        legend(figure, handles)
    return figure
