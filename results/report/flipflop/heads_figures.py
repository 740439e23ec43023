"""Figures of the heads of the flip-flop simulation, from the rows of `manyseeds probe --probe heads` alone.

After figures 3.35 and 3.36 of Liu's thesis.
"""

import itertools
from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from results.report.plots.palette import COLOURS, MARKERS
from results.report.plots.panels import STYLE
from results.rows.probe_values import Name

INPUTS = ("s1", "⊥", "s0", "⊥", "⊥", "s0", "s1", "⊥")  # of the probes' pattern
WRITES = (0, 0, 2, 2, 2, 5, 6, 6)  # the latest write of each
_MAPS = ("query", "key", "value", "out")

Values = Mapping[Name, float]


def largest(values: Values, title: str) -> Figure:
    """By layer (rows) and head (columns), for each query of INPUTS: the latest write, the largest weight and the largest ‖a v‖ (3.35).

    Below each head: the share of rows of ⊥ whose largest weight, and whose largest norm, is on a write of the right state.
    """
    places = sorted({(layer, head) for probe, layer, head, item in values if probe == "heads" and item == "i=0 key"})
    if not places:
        raise ValueError("these values hold no heads: manyseeds probe STORE --probe heads writes them for the simulation")
    layers, heads = (1 + max(place[axis] or 0 for place in places) for axis in (0, 1))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(max(3.2, 0.6 + 1.7 * heads), 1.1 + 1.9 * layers), layout="constrained")
        figure.suptitle(title, fontsize=10)
        grid = figure.subplots(layers, heads, squeeze=False)
        for layer, head in places:
            _panel(grid[layer or 0][head or 0], values, layer, head)
        for axes in grid[:, 0]:
            axes.set_yticks(range(len(INPUTS)), INPUTS, fontsize=6)
            axes.set_ylabel("key", fontsize=8)
        for axes in grid[-1]:
            axes.set_xticks(range(len(INPUTS)), INPUTS, fontsize=6)
            axes.set_xlabel(f"{axes.get_xlabel()}\nquery".lstrip(), fontsize=6)
        handles, labels = grid[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels) if heads > 1 else 1, fontsize=8)
    return figure


def _panel(axes: Axes, values: Values, layer: int | None, head: int | None) -> None:
    at = range(len(INPUTS))
    weight, norm = ([values.get(("heads", layer, head, f"i={i} {name}"), np.nan) for i in at] for name in ("key", "norm_key"))
    axes.plot(
        at, WRITES, "s", markersize=9, color=COLOURS[2], markerfacecolor="none", markeredgewidth=1.4, label="latest write"
    )
    axes.plot(at, weight, "o", markersize=4, color=COLOURS[0], label="largest weight")
    axes.plot(at, norm, "x", markersize=7, color=COLOURS[1], label="largest norm of weight × value")
    axes.set_title(f"layer {layer}, head {head}", fontsize=7)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_xlim(-0.7, len(INPUTS) - 0.3)
    axes.set_ylim(len(INPUTS) - 0.3, -0.7)
    on = [values.get(("heads", layer, head, f"{name}_state")) for name in ("weight", "norm")]
    if (shares := [share for share in on if share is not None])[1:]:
        axes.set_xlabel("right state: weight {:.0%}, norm {:.0%}".format(*shares), fontsize=6)


def over_steps(rows: pa.Table) -> dict[str, dict[int, dict[Name, float]]]:
    """The rows of the probe heads by key and step, of the first stage."""
    wanted = rows.filter((pc.field("probe") == "heads") & (pc.field("stage") == 0))
    series: dict[str, dict[int, dict[Name, float]]] = {}
    for row in wanted.to_pylist():
        values = series.setdefault(row["key"], {}).setdefault(row["step"], {})
        values[row["probe"], row["layer"], row["head"], row["item"]] = row["value"]
    return series


def distances(replicates: Sequence[tuple[str, Mapping[int, Values]]]) -> Figure:
    """Draw the distance of every pair of heads during training, a row for each replicate (title, values by step) and one column per layer.

    The median over pairs is thick. The last column has the norms of the attention weights in all layers (figure 3.36).
    """
    layers = 1 + max((name[1] or 0 for _, steps in replicates for values in steps.values() for name in values), default=0)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(1.2 + 1.75 * (layers + 1), 0.7 + 1.75 * len(replicates)), layout="constrained")
        grid = figure.subplots(len(replicates), layers + 1, squeeze=False, sharex=True, sharey="col")
        for (title, steps), axes in zip(replicates, grid, strict=True):
            for layer in range(layers):
                _pairs(axes[layer], steps, layer)
            _norms(axes[-1], steps, layers)
            axes[0].set_ylabel(f"{title}\nl2 distance", fontsize=8)
        top = max(axes.dataLim.y1 for axes in grid[:, :-1].flat)
        for axes in grid[:, :-1].flat:
            axes.set_ylim(0, 1.05 * top)
        for layer, axes in enumerate(grid[0][:-1]):
            axes.set_title(f"layer {layer}", fontsize=8)
        grid[0][-1].set_title("norm of weights", fontsize=8)
        grid[0][-1].legend(fontsize=6)
        for axes in grid.flat:
            axes.set_ylim(bottom=0)
            axes.tick_params(labelsize=7)
            axes.grid(True)
        for axes in grid[-1]:
            axes.set_xlabel("step", fontsize=8)
    return figure


def _pairs(axes: Axes, steps: Mapping[int, Values], layer: int) -> None:
    at = sorted(steps)
    always = set.intersection(*(set(values) for values in steps.values()))
    pairs = sorted((name for name in always if name[1] == layer and str(name[3]).startswith("distance ")), key=str)
    if not pairs:
        return
    lines = np.array([[steps[step][name] for step in at] for name in pairs])
    axes.plot(at, lines.T, color=COLOURS[0], linewidth=0.7, alpha=0.45)
    axes.plot(at, np.median(lines, axis=0), color=COLOURS[1], linewidth=2)


def _norms(axes: Axes, steps: Mapping[int, Values], layers: int) -> None:
    at = sorted(steps)
    for name, colour, marker in zip(_MAPS, COLOURS, MARKERS, strict=False):
        norms = [[steps[step].get(("heads", layer, None, f"norm {name}"), np.nan) for layer in range(layers)] for step in at]
        squares = np.square(norms)
        axes.plot(at, np.sqrt(squares.sum(1)), color=colour, marker=marker, markersize=3, linewidth=1, label=name)


def comparable(members: Sequence[tuple[str, Mapping[int, Values]]]) -> list[list[tuple[str, Mapping[int, Values]]]]:
    """Group the replicates with several steps and heads by their numbers of layers and heads, in the order given."""
    groups: dict[tuple[int, int], list[tuple[str, Mapping[int, Values]]]] = {}
    for title, steps in members:
        names = set(itertools.chain.from_iterable(steps.values()))
        shape = tuple(1 + max((int(name[axis] or 0) for name in names), default=0) for axis in (1, 2))
        if len(steps) > 1 and shape[1] > 1:
            groups.setdefault((shape[0], shape[1]), []).append((title, steps))
    return list(groups.values())
