"""The accuracies that were measured on the way: which set is watched, and its curve by key.

`evaluations`: the rows that are reported (`results.store.manifest.reported`).
"""

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc

Look = tuple[int, float]  # step, accuracy in 0 … 1


def watched(evaluations: pa.Table) -> str | None:
    """The set that is looked at most often on the way; None where none is."""
    counts = Counter(evaluations.group_by(["set", "step"]).aggregate([])["set"].to_pylist())
    most = max(sorted(counts), key=lambda name: counts[name], default=None)
    return most if most is not None and counts[most] > 1 else None


def looks(evaluations: pa.Table, name: str) -> dict[str, list[Look]]:
    """Accuracy by key at every look at a set with the raw weights, in order of the steps; looks without a number, of replicates that have
    diverged, are left out."""
    rows = evaluations.filter((pc.field("set") == name) & (pc.field("weights") == "raw"))
    curves: dict[str, list[Look]] = {}
    for row in rows.select(["key", "step", "errors", "count"]).sort_by("step").to_pylist():
        curve = curves.setdefault(row["key"], [])
        if row["count"]:
            # a quotient of counts: 1 - errors / count can miss a threshold that it equals
            curve.append((row["step"], (row["count"] - row["errors"]) / row["count"]))
    return curves


def watch(evaluations: pa.Table | None) -> dict[str, list[Look]]:
    """The looks at the watched set; {} where there is none."""
    name = None if evaluations is None else watched(evaluations)
    return {} if evaluations is None or name is None else looks(evaluations, name)
