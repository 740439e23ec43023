"""The figures of the flip-flop simulation, from rows of probes alone: attention patterns, drift, and heads.

After figures 3.26, 3.33 and 3.35 to 3.37 of Liu's thesis.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pyarrow.compute as pc
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Lines

from results.names import slug
from results.output import output_folder
from results.plain_values import Row
from results.report.flipflop.heads_figures import INPUTS, WRITES, comparable, distances, largest, over_steps
from results.report.plots.figure_files import png, svg
from results.report.plots.lines_and_maps import attention_squares
from results.report.plots.palette import COLOURS
from results.report.plots.panels import STYLE, titled_panels
from results.rows.probe_values import Name, by_key, parts
from results.store.manifest import as_planned
from results.store.tables import Store, committed, read


def patterns(values: Mapping[Name, float], title: str) -> Figure:
    """Attention of all heads (columns) and layers (rows) on INPUTS, as figures 3.26 and 3.37; white is 0, black 1.

    Beside them the ideal pattern, all weight on the latest write, which is framed in every head's.
    """
    size = len(INPUTS)
    squares = attention_squares(values, "pattern", size)
    if not squares:
        raise ValueError("these values hold no pattern: manyseeds probe STORE --probe attention writes it for the simulation")
    layers, heads = (1 + max(place[axis] for place in squares) for axis in (0, 1))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(0.9 + 1.5 * (heads + 1), 0.9 + 1.5 * layers), layout="constrained")
        figure.suptitle(title, fontsize=10)
        grid = figure.subplots(layers, heads + 1, squeeze=False)
        for unused in grid[1:, 0]:
            unused.set_axis_off()
        shown = {(0, -1): np.eye(size)[list(WRITES)]} | squares
        for (layer, head), square in shown.items():
            axes = grid[layer][head + 1]
            axes.imshow(square, cmap="Greys", vmin=0, vmax=1, interpolation="none")  # the file holds one pixel per weight
            axes.add_patch(PathPatch(_frames(WRITES), fill=False, edgecolor=COLOURS[1], linewidth=1))
            axes.set_title("ideal" if head < 0 else f"layer {layer}, head {head}", fontsize=7)
            axes.tick_params(length=0)
            axes.set_xticks([])
            axes.set_yticks([])
        for axes in (grid[0][0], *grid[:, 1]):
            axes.set_yticks(range(size), INPUTS, fontsize=6)
            axes.set_ylabel("query", fontsize=7)
        for axes in (grid[0][0], *grid[-1][1:]):
            axes.set_xticks(range(size), INPUTS, fontsize=6)
            axes.set_xlabel("key", fontsize=7)
    return figure


def _frames(keys: Sequence[int]) -> Lines:
    """A square around the key of each query, as one path: with one each, an SVG of 48 heads is a third larger."""
    corners = np.array([(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5), (-0.5, -0.5)])
    return Lines.make_compound_path(*(Lines(np.add(corners, (key, query)), closed=True) for query, key in enumerate(keys)))


def drifts(values: Mapping[Name, float], title: str) -> Figure:
    """Weights on the latest write, recent no-ops and the first write by position on the two strings of figure 3.33."""
    names = {"right": "latest write", "recent": "recent no-ops", "early": "first write", "wrong": "answer is wrong"}
    drifts_of: dict[str, dict[str, list[tuple[int, float]]]] = {}
    margin = ""
    for (probe, _, _, item), value in values.items():
        words = parts(item, "{word} p={n} {word}")
        if probe == "drift" and item == "margin":
            margin = f", W_Qp · W_Kp = {value:.3g}"
        elif probe == "drift" and words:
            drifts_of.setdefault(words[0], {}).setdefault(words[2], []).append((int(words[1]), value))
    if not drifts_of:
        raise ValueError("these values hold no drift: manyseeds probe STORE --probe drift writes it")
    titles = ("one write, then ⊥", "two writes, then ⊥")
    with titled_panels(titles, 3.55, 3.2, "position", "attention weight", "y") as (figure, panels):
        figure.suptitle(f"{title}{margin}", fontsize=10)
        for axes, name in zip(panels, ("a", "b"), strict=True):
            for (item, label), colour, marker in zip(names.items(), COLOURS, ("o", "s", "^", "x"), strict=False):
                points = sorted(drifts_of.get(name, {}).get(item, []))
                if item == "wrong":  # 1 where the answer is: marks above the weights
                    points = [(position, 1.04) for position, wrong in points if wrong]
                if points:
                    line = "none" if item == "wrong" else "-"
                    axes.plot(
                        *zip(*points, strict=True), color=colour, marker=marker, markersize=3, linestyle=line, label=label
                    )
            axes.set_ylim(-0.05, 1.09)
            axes.grid(True)
        figure.axes[1].legend(fontsize=8)
    return figure


def write_figures(store: Store, folder: Path) -> list[Path]:
    """Draw the first two replicates with rows of every condition, as SVG and PNG; returns the files written.

    The distances of heads during training are drawn for the first replicate of each condition, in one figure for those with equal numbers
    of layers and heads.
    """
    finished = as_planned(store, committed(store))
    rows = read(store, "probes", filter=pc.field("probe").isin(["pattern", "drift", "heads"]), winning=finished)
    values, steps, written = by_key(rows), over_steps(rows), list[Path]()
    shown, changing = dict[str, int](), list[tuple[str, Mapping[int, Mapping[Name, float]]]]()
    replicates: list[Row] = finished.select(["key", "condition", "init_seed", "data_seed"]).to_pylist()
    for row in sorted(replicates, key=lambda row: (row["condition"], row["init_seed"], row["data_seed"], row["key"])):
        own: Mapping[Name, float] = values.get(row["key"], {})
        if not own or shown.get(row["condition"], 0) == 2:
            continue
        if row["condition"] not in shown and row["key"] in steps:
            changing.append((f"{row['condition']}, {row['init_seed']}", steps[row["key"]]))
        shown[row["condition"]] = shown.get(row["condition"], 0) + 1
        title = f"{row['condition']}, seeds {row['init_seed']}, {row['data_seed']}"
        probes = {name[0] for name in own}
        for probe, draw in (("pattern", patterns), ("drift", drifts), ("heads", largest)):
            if probe in probes:
                written += _write(draw(own, title), folder, f"{probe}-{row['key'][:12]}")
    for number, members in enumerate(comparable(changing)):
        written += _write(distances(members), folder, f"distances-{number}")
    return written


def _write(figure: Figure, folder: Path, stem: str) -> list[Path]:
    files = {".svg": svg(figure).encode(), ".png": png(figure)}
    return [output_folder(folder.absolute()).write(f"{slug(stem)}{suffix}", data) for suffix, data in files.items()]
