"""The theory beside measured failures: the dilution bound of every head, and the margin of positions over seeds (claims T2 and T3).

From rows that `manyseeds probe --probe dilution` and `--probe drift` left; without them there is nothing to show. Propositions 4 and 5 of
Liu's thesis, 3.5.5.2.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.figure import Figure

from results.claims.flipflop.theory import drifted
from results.plain_values import Row, Tree
from results.report.flipflop.glitches import About
from results.report.plots.palette import COLOURS, INK
from results.report.plots.panels import titled_panels
from results.rows.probe_values import Items, Name, by_key, parts
from results.store.manifest import as_planned, manifest_of, reported
from results.store.tables import Store, committed, read

Place = tuple[int, int]  # layer and head, from 0


@dataclass(frozen=True)
class Dilution:
    """The dilution of a replicate's attention.

    items: by length T and place, the bound, the largest weight, and the mean over strings of their largest. errors: error rate by the
    length of the replicate's evaluation sets. on_write: by place, the mean weight on the last write in the replicate's glitches.
    """

    items: dict[int, dict[Place, dict[str, float]]]
    errors: dict[int, float]
    on_write: dict[Place, float]

    def rows(self, length: int) -> list[Row]:
        """One line per head for the page's table, at the probed length nearest to `length`."""
        at = min(self.items, key=lambda candidate: (abs(candidate - length), candidate))
        return [
            {"layer": layer + 1, "head": head + 1, "length": at, **values, "on_write": self.on_write.get((layer, head))}
            for (layer, head), values in sorted(self.items[at].items())
        ]


@dataclass(frozen=True)
class Margins:
    """The replicates of one condition that have rows of drift; the first is the page's own.

    Each has its seeds, W_Qp · W_Kp, cosine, the share of wrong positions on strings a and b, the first wrong position of a (None: none),
    and what the end of b attends to.
    """

    rows: list[Row]


def dilution(store: Store, about: About, glitches: pa.Table) -> Dilution | None:
    """The dilution of this replicate (claim T2); None without rows of the probe."""
    rows = read(store, "probes", filter=(pc.field("key") == about.key) & (pc.field("probe") == "dilution"))
    items: dict[int, dict[Place, dict[str, float]]] = {}
    for (_, layer, head, item), value in by_key(rows).get(about.key, {}).items():
        if gaps := parts(item, "T={n} {word}"):
            length, kind = gaps
            items.setdefault(int(length), {}).setdefault((layer or 0, head or 0), Items())[kind] = value
    if not items:
        return None
    own = (pc.field("key") == about.key) & (pc.field("stage") == about.stage) & (pc.field("step") == about.step)
    scored = read(store, "evaluations", filter=own & reported(manifest_of(store)) & (pc.field("weights") == "raw"))
    pooled = scored.filter(pc.is_valid(pc.field("errors")) & (pc.field("set") != about.set)).group_by("length")
    sums = pooled.aggregate([("errors", "sum"), ("count", "sum")]).to_pylist()
    errors = {row["length"]: row["errors_sum"] / row["count_sum"] for row in sums if row["count_sum"] and row["length"]}
    return Dilution(items, {**errors, about.length: about.errors / about.reads}, _on_write(about, glitches))


def _on_write(about: About, glitches: pa.Table) -> dict[Place, float]:
    if not about.layers or not glitches.num_rows:
        return {}
    weights = glitches["weights"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
    means = weights.reshape(glitches.num_rows, about.layers, about.heads, about.kept)[..., 0].mean(0)  # the write comes first
    return {(layer, head): float(means[layer, head]) for layer in range(about.layers) for head in range(about.heads)}


def margins(store: Store, about: About) -> Margins | None:
    """The margins of this replicate and the others of its condition (claim T3); None without its rows of the probe."""
    counted = (
        as_planned(store, committed(store))
        .filter((pc.field("condition") == about.condition) & (pc.field("stage") == about.stage))
        .to_pylist()
    )
    keys = pa.array([row["key"] for row in counted], pa.string())
    rows = read(store, "probes", filter=(pc.field("probe") == "drift") & pc.field("key").isin(keys))
    values = by_key(rows)
    if about.key not in values:
        return None
    counted.sort(key=lambda row: (row["key"] != about.key, row["init_seed"], row["data_seed"]))
    return Margins([_margin(row, values[row["key"]]) for row in counted if row["key"] in values])


def _margin(row: Row, values: Mapping[Name, float]) -> Tree:
    items, last = drifted(values)
    ends = {"the last write": "right", "recent no-ops": "recent", "the early write": "early"}
    weights = {name: items[f"b p={last} {item}"] for name, item in ends.items()}
    most = max(weights, key=lambda name: weights[name])
    margins_of = {"seeds": f"{row['init_seed']}, {row['data_seed']}", "margin": items["margin"], "cosine": items["cosine"]}
    margins_of |= {"errors_a": items["a errors"], "errors_b": items["b errors"], "onset": items.get("a onset")}
    return margins_of | {"attends": most if weights[most] > 0.5 else "nothing above half"}


def dilution_figure(rows: Dilution) -> Figure:
    """The bound of each head as a line over T and its largest weight as a dot, one panel per layer; then the error rate by length."""
    layers, lengths = sorted({layer for at in rows.items.values() for layer, _ in at}), sorted(rows.items)
    titles = [*(f"layer {layer + 1}" for layer in layers), "error rate"]
    with titled_panels(titles, 3, 2.7, "length T", columns=3) as (figure, (*panels, errors)):
        for panel, layer in zip(panels, layers, strict=True):
            heads = sorted({head for at in rows.items.values() for own, head in at if own == layer})
            for head in heads:
                colour = COLOURS[head % len(COLOURS)]
                for kind, style in (
                    ("bound", {"linewidth": 1.2}),
                    ("largest", {"linestyle": "none", "marker": "o", "markersize": 3.5}),
                ):
                    panel.plot(lengths, [rows.items[length][layer, head][kind] for length in lengths], color=colour, **style)
            panel.set_ylim(-0.03, 1.05)
        errors.plot(*zip(*sorted(rows.errors.items()), strict=True), color=COLOURS[1], marker="s", markersize=4)
        errors.set_ylim(bottom=0)
        for panel in (*panels, errors):
            panel.set_xscale("log", base=2)
            panel.set_xlim(min(lengths) * 0.8, max(lengths) * 1.25)
            panel.set_xticks(lengths[-1::-2], [str(length) for length in lengths[-1::-2]])
            panel.minorticks_off()
            panel.grid(True)
    return figure


def margin_figure(rows: Margins) -> Figure:
    """Share of wrong positions against W_Qp · W_Kp, one dot per seed, on the strings of one write and of two; the page's own is filled."""
    titles = ("one write, then ⊥", "two writes, then ⊥")
    with titled_panels(titles, 3.55, 3, "W_Qp · W_Kp", "share of wrong positions") as (figure, panels):
        for axes, name in zip(panels, "ab", strict=True):
            x, y = (np.array([row[item] for row in rows.rows]) for item in ("margin", f"errors_{name}"))
            axes.scatter(x[1:], y[1:], facecolors="none", edgecolors=COLOURS[0], s=28)
            axes.scatter(x[:1], y[:1], color=COLOURS[1], s=42, marker="D")
            axes.axvline(0, linewidth=0.8, color=INK)
            axes.set_ylim(-0.05, 1.05)
            axes.grid(True)
    return figure
