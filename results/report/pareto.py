"""The interactive Pareto figure of a report: every replicate's dense error against its sparse one, with its curve behind it.

The page gets one compact JSON block, arrays by condition, and a script of this project's own (pareto.js) that draws it; what
rows hold reaches the page as escaped JSON and is shown as text.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from markupsafe import Markup
from numpy.typing import NDArray

from results.claims.evidence import gather
from results.plain_values import Row
from results.report.family import ReportFamily, first_answer
from results.report.page_template import FOLDER, render, script_json
from results.rows.error_by_step import pooled
from results.rows.plural import counted
from results.rows.summary import Replicate, online_sets
from results.statistics.intervals import Floats
from results.store.manifest import Manifest, reported

MAX_CURVES, MAX_POINTS = 150, 60_000  # embedded curves, and the points of all of them together
SHORTEST_KEY = 10


@dataclass(frozen=True)
class Axes:
    """Names of the evaluation sets: the two axes, and the one scored during training (None: there is none)."""

    sparse: str
    dense: str
    online: str | None


def axes_of(manifest: Manifest, replicates: Sequence[Replicate], families: Sequence[ReportFamily]) -> Axes | None:
    """The two sets that a family sets against each other; None for a study without them."""
    conditions = [{"settings": condition["config"]} | condition for condition in manifest["conditions"]]
    pair = first_answer((family.trade_off for family in families), gather(manifest | {"conditions": conditions}, replicates))
    if pair is None:
        return None
    sparse, dense = pair
    online = online_sets(manifest)
    definition = manifest["sets"][sparse]["definition"]
    online.sort(key=lambda name: manifest["sets"][name]["definition"] != definition)
    return Axes(sparse, dense, online[0] if online else None)


def front(sparse: Floats, dense: Floats) -> Floats:
    """The Pareto front of error rates, [points, 2] by rising sparse error: no replicate is at least as good in both and better in one.

    Diverged replicates (infinity) are never on it; equal points appear once.
    """
    finite = np.isfinite(sparse) & np.isfinite(dense)
    pairs = np.unique(np.stack([sparse[finite], dense[finite]], axis=1), axis=0)  # sorted by sparse, then dense
    if not len(pairs):
        return pairs
    best_before = np.concatenate([[np.inf], np.minimum.accumulate(pairs[:, 1])[:-1]])
    return pairs[pairs[:, 1] < best_before]


def chosen_curves(sparse: Floats, dense: Floats, most: int) -> NDArray[np.int64]:
    """Positions of the replicates whose curves are embedded: a third the worst, a third the best, a third a systematic sample.

    By sparse error, ties by dense error, then in the plan's order; the sample takes evenly spaced ranks of the others.
    """
    order = np.lexsort((np.arange(len(sparse)), dense, sparse))
    if len(order) <= most:
        return np.sort(order)
    third = most // 3
    others = order[third : len(order) - third]
    sample = others[np.linspace(0, len(others) - 1, most - 2 * third).astype(np.int64)]
    return np.sort(np.concatenate([order[:third], sample, order[len(order) - third :]]))


def section(
    manifest: Manifest, replicates: Sequence[Replicate], evaluations: pa.Table, families: Sequence[ReportFamily]
) -> Markup | None:
    """The section of the page; None for a study without two such sets, or without a replicate scored on both.

    `evaluations`: rows of the store's table, of which those of the reported metric with the raw weights are used.
    """
    axes = axes_of(manifest, replicates, families)
    if axes is None:
        return None
    shown = [r for r in replicates if r.error(axes.sparse) is not None and r.error(axes.dense) is not None]
    if not shown:
        return None
    position = {name: i for i, name in enumerate(dict.fromkeys(r.label for r in replicates))}
    shown.sort(key=lambda r: position[r.label])  # the script numbers the points condition by condition
    sparse, dense = (np.array([r.error(name) for r in shown], dtype=np.float64) for name in (axes.sparse, axes.dense))
    steps, curves = _curves(manifest, shown, evaluations, axes.online, sparse, dense)
    best = front(sparse, dense)
    data = {
        "study": manifest["study"],
        "sparse": axes.sparse,
        "dense": axes.dense,
        "online": axes.online,
        "conditions": _conditions(shown, sparse, dense, _key_length(manifest)),
        "front": [[_short(x), _short(y)] for x, y in best],
        "steps": steps,
        "curves": curves,
    }
    return Markup(
        render(
            FOLDER / "pareto.html",
            sparse=axes.sparse,
            dense=axes.dense,
            sentences=_sentences(axes, sparse, dense, best, len(curves)),
            data=script_json(data),
        )
    )


def _short(rate: float) -> float | None:
    """Four digits are enough to show; None is diverged, as JSON has no infinity. A positive rate never becomes 0."""
    return float(f"{rate:.4g}") if np.isfinite(rate) else None


def _key_length(manifest: Manifest) -> int:
    """The shortest beginning, of at least SHORTEST_KEY characters, that no two keys of the plan share."""
    keys = sorted({row[0] for row in manifest["replicates"]})
    length = SHORTEST_KEY
    while len({key[:length] for key in keys}) < len(keys):
        length += 1
    return length


def _conditions(shown: Sequence[Replicate], sparse: Floats, dense: Floats, length: int) -> list[Row]:
    columns: dict[str, dict[str, Any]] = {}
    for replicate, x, y in zip(shown, sparse, dense, strict=True):
        name = replicate.label
        column = columns.setdefault(name, {"name": name} | {part: [] for part in ("keys", "init", "data", "sparse", "dense")})
        column["keys"].append(replicate.key[:length])
        column["init"].append(replicate.init_seed)
        column["data"].append(replicate.data_seed)
        column["sparse"].append(_short(x))
        column["dense"].append(_short(y))
    return list(columns.values())


def _curves(
    manifest: Manifest,
    shown: Sequence[Replicate],
    evaluations: pa.Table,
    online: str | None,
    sparse: Floats,
    dense: Floats,
) -> tuple[list[list[int]], dict[int, tuple[int, list[float | None]]]]:
    """The distinct step lists, and (which of them, raw error at each step) by a replicate's position in `shown`."""
    steps: list[list[int]] = []
    curves: dict[int, tuple[int, list[float | None]]] = {}
    if online is None:
        return steps, curves
    scored = reported(manifest) & (pc.field("weights") == "raw") & (pc.field("set") == online)
    longest = pc.count_distinct(evaluations.filter(scored)["step"]).as_py()  # at least the points of any one curve
    if not longest:
        return steps, curves
    hashes = {
        condition["name"]: condition["sets"][online]["hash"]
        for condition in manifest["conditions"]
        if online in condition["sets"]
    }
    chosen = chosen_curves(sparse, dense, max(3, min(MAX_CURVES, MAX_POINTS // longest)))
    own = evaluations.filter(pc.field("key").isin(pa.array([shown[i].key for i in chosen], pa.string())))
    series: dict[tuple[str, int, str], list[tuple[int, float | None]]] = {}
    for row in sorted(pooled(manifest, own, [online]), key=itemgetter("step")):
        rate = None if row["errors_sum"] is None else _short(row["errors_sum"] / row["count_sum"])
        series.setdefault((row["key"], row["stage"], row["set_hash"]), []).append((row["step"], rate))
    number: dict[tuple[int, ...], int] = {}
    for i in chosen.tolist():
        replicate = shown[i]
        if points := series.get((replicate.key, replicate.stage, str(hashes.get(replicate.condition)))):
            at = tuple(step for step, _ in points)
            curves[i] = (number.setdefault(at, len(number)), [rate for _, rate in points])
    return [list(at) for at in number], curves


def _sentences(axes: Axes, sparse: Floats, dense: Floats, best: Floats, embedded: int) -> str:
    total, clean = len(sparse), int(((sparse == 0) & (dense == 0)).sum())
    parts = [
        f"Each point is one of {total:,} replicates: its error rate on “{axes.dense}” against that on “{axes.sparse}”, at the last "
        "step. Replicates without an error stand in a band beside the axes, diverged ones in a band at the far edges; the place "
        "inside a band has no meaning."
    ]
    if clean:
        parts.append(f"The Pareto front is the corner: {counted(clean, 'replicate')} without an error on either set.")
    elif len(best):
        parts.append(
            f"Circles on a stepped line mark the Pareto front, {counted(len(best), 'pair')} of rates: no other replicate is better on one "
            "set without being worse on the other."
        )
    if embedded == total:
        parts.append(f"A click or Enter opens a replicate's error on “{axes.online}” during training.")
    elif embedded:
        parts.append(
            f"A click or Enter opens a replicate's error on “{axes.online}” during training. This page holds {embedded:,} of these "
            f"curves: a third are the worst by {axes.sparse} error, a third the best, a third a systematic sample of the others. For "
            "any other replicate it names the command that draws the curve."
        )
    else:
        parts.append(
            "No errors were scored during training, so a click or Enter names the command that writes a replicate's page."
        )
    return " ".join(parts)
