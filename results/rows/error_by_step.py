"""Quantiles of the error rate over replicates by training step, from `evaluations`."""

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from results.plain_values import Row
from results.rows.summary import QUANTILES, Replicate, online_sets
from results.statistics.intervals import quantile
from results.store.manifest import Manifest, reported


def online_bands(manifest: Manifest, evaluations: pa.Table, replicates: Sequence[Replicate]) -> list[Row]:
    """Error quantiles over replicates by condition, set and step, for the sets that are scored during training; sorted by step.

    A replicate that had diverged by then counts as infinity. `replicates` is how many have a number or had diverged; those that had no
    teacher to learn from are left out.
    """
    untaught = {(each.key, each.stage) for each in replicates if each.status == "no_transition"}
    condition_of = {key: manifest["conditions"][index] for key, index, *_ in manifest["replicates"]}
    errors: dict[tuple[int, str, int, str], list[float]] = {}
    for row in pooled(manifest, evaluations, online_sets(manifest)):
        condition = condition_of.get(row["key"])
        own = condition["sets"].get(row["set"]) if condition else None
        if condition is None or own is None or own["hash"] != row["set_hash"] or (row["key"], row["stage"]) in untaught:
            continue
        error = math.inf if row["errors_sum"] is None else row["errors_sum"] / row["count_sum"]
        errors.setdefault((row["step"], condition["name"], row["stage"], row["set"]), []).append(error)
    return [
        {"step": step, "condition": condition, "stage": stage, "set": set_name, "replicates": len(values)}
        | {"diverged": int(np.isinf(values).sum())}
        | {f"error_{name}": quantile(values, q) for name, q in QUANTILES.items()}
        for (step, condition, stage, set_name), values in sorted(errors.items())
    ]


def pooled(manifest: Manifest, evaluations: pa.Table, names: list[str]) -> list[Row]:
    """Sums of errors and reads by replicate, set and step; a row without reads is left out, one that diverged has no errors."""
    chosen = reported(manifest) & (pc.field("weights") == "raw") & pc.field("set").isin(pa.array(names, pa.string()))
    by = ["key", "stage", "set", "set_hash", "step"]
    rows = evaluations.filter(chosen).group_by(by).aggregate([("errors", "sum"), ("count", "sum")]).to_pylist()
    return [row for row in rows if row["count_sum"] != 0]


def plotted(bands: list[Row]) -> dict[str, float]:
    """The values to plot, by name. An infinite quantile can't be drawn and is a gap in its line; `diverged` says why."""
    values = {}
    for band in bands:
        stage = f"/stage {band['stage']}" if band["stage"] else ""
        for name in ("replicates", "diverged", *(f"error_{q}" for q in QUANTILES)):
            if math.isfinite(band[name]):
                values[f"{band['condition']}{stage}/{band['set']}/{name}"] = band[name]
    return values
