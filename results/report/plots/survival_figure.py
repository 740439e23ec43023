"""The survival curves of error as a figure: how many replicates of each condition err more than x, with the band of
`results.statistics.survival`.
"""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from results.claims.evidence import gather
from results.report.family import ReportFamily, first_answer
from results.report.plots.curves import MOST_BANDS, band
from results.report.plots.error_axis import ErrorScale, error_axis, error_scale
from results.report.plots.palette import Style, colour_of
from results.report.plots.panels import legend, share_axis, titled_panels
from results.report.plots.plot_data import tell
from results.rows.summary import Replicate, errors_of
from results.statistics.intervals import Floats
from results.statistics.survival import Survival, band_halfwidth, survival
from results.store.manifest import Manifest

MOST = 8  # curves
LINES = ("-", "--", ":", "-.")
Groups = Mapping[str, Sequence[Replicate]]  # by what a figure calls their condition, in the summary's order


def survival_drawing(
    manifest: Manifest, groups: Groups, sets: Sequence[str], families: Sequence[ReportFamily]
) -> tuple[str, partial[Figure]]:
    """The caption, and the call that makes the figure: a panel for each evaluation set, with curves of at most MOST conditions."""
    chosen = choose(groups, baseline(manifest, groups, families))
    curves = {name: {label: curve(groups[label], name) for label in chosen} for name in sets}
    return caption(groups, chosen), partial(draw, curves)


def baseline(manifest: Manifest, groups: Groups, families: Sequence[ReportFamily]) -> str | None:
    """The condition that the study's claims compare with; None where it states none, or has no such condition."""
    if not manifest.get("claims") or any("settings" not in condition for condition in manifest["conditions"]):
        return None
    evidence = gather(manifest, [replicate for members in groups.values() for replicate in members])
    base = first_answer((family.baseline for family in families), evidence)
    return next((label for label, members in groups.items() if base and members[0].condition == base.name), None)


def choose(groups: Groups, first: str | None) -> list[str]:
    """At most MOST labels: `first`, then the others in their order."""
    others = [label for label in groups if label != first]
    return [*([first] if first is not None else []), *others][:MOST]


def curve(members: Sequence[Replicate], name: str) -> Survival:
    """P(error > x) on one set. Replicates without a number there count as missing; those that the study does not train are left out."""
    errors = errors_of(members, name)
    trained = sum(replicate.ending(name) != "no_transition" for replicate in members)
    return survival(errors, trained - len(errors))


def caption(groups: Groups, chosen: Sequence[str]) -> str:
    if len(chosen) <= MOST_BANDS:
        bands = (
            "Shading: a band that holds the whole curve with 95 % confidence (Kolmogorov's exact quantile), whatever missing replicates "
            "turn out to be."
        )
    else:
        bands = (
            f"With 95 % confidence, a whole curve lies within ± {_half_width([len(groups[label]) for label in chosen])} percentage points "
            "if no replicate is missing (Kolmogorov's exact quantile). Such bands would hide each other: point at a curve to see its own."
        )
    which = f" {len(chosen)} of {len(groups)} conditions are shown." if len(chosen) < len(groups) else ""
    return (
        f"The share of replicates with an error rate above x. {bands} At 0, a curve falls by the share of replicates without an error, and "
        f"at “diverged”, beyond the broken axis, by the share that diverged.{which}"
    )


def _half_width(sizes: Sequence[int]) -> str:
    """Half the width of the bands in percentage points, from the numbers of replicates."""
    widths = sorted({round(100 * band_halfwidth(size)) for size in sizes if size})
    return " to ".join(str(width) for width in dict.fromkeys((widths[0], widths[-1])))


def draw(curves: Mapping[str, Mapping[str, Survival]]) -> Figure:
    """One panel per evaluation set, one curve per condition. Zero and diverged have places of their own beyond the axis' breaks."""
    every = [curve for by in curves.values() for curve in by.values()]
    ends = [np.inf] if any(curve.most[-1] > 0 for curve in every) else []
    scale = error_scale(*(curve.x for curve in every), ends)  # x always holds 0
    conditions = list(dict.fromkeys(label for by in curves.values() for label in by))
    names = ("error rate x", "replicates with error above x")
    with titled_panels(curves, 4.1, 3.6, *names, "y", 0.2 + 0.1 * len(conditions)) as (figure, panels):
        handles: dict[str, Line2D] = {}
        for panel, by in zip(panels, curves.values(), strict=True):
            for label, curve in by.items():
                i = conditions.index(label)
                places, (share, low, high) = steps(curve, scale)
                band(panel, places, low, high, label, i, len(by) <= MOST_BANDS, alpha=0.13, step="post")  # more hide each other
                style: Style = {"drawstyle": "steps-post", "lw": 1.8, "ls": LINES[i % len(LINES)]}
                (handles[label],) = panel.plot(places, share, color=colour_of(i), **style)
                tell(handles[label], label)
            error_axis(panel, scale, "x")
            share_axis(panel)
            panel.grid(axis="y")
        legend(figure, handles)
    return figure


def steps(curve: Survival, scale: ErrorScale) -> tuple[Floats, tuple[Floats, Floats, Floats]]:
    """Places [points] along the axis, and the share with its band from each place on: 1 before zero, 0 from “diverged” on."""
    left, right = scale.limits()
    places = np.concatenate([[left], scale.place(curve.x), [scale.infinite if scale.diverged else right, right]])
    before, after = 1.0 if curve.share.size and not np.isnan(curve.share[0]) else np.nan, 0.0
    share = np.concatenate([[before], curve.share, [after, after]])
    low, high = (np.concatenate([[1.0], band, [0.0, 0.0]]) for band in (curve.low, curve.high))
    return places, (share, low, high)
