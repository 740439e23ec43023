"""The accuracies that were measured during training: which set is watched, and its curve by key.

`evaluations`: the rows that are reported (`results.store.manifest.reported`).
"""

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc

Look = tuple[int, float]  # step, accuracy in 0 … 1


def watched(evaluations: pa.Table) -> str | None:
    """The set that is scored most often during training; None where none is."""
    counts = Counter(evaluations.group_by(["set", "step"]).aggregate([])["set"].to_pylist())
    most = max(sorted(counts), key=lambda name: counts[name], default=None)
    return most if most is not None and counts[most] > 1 else None


def looks(evaluations: pa.Table, name: str) -> dict[str, list[Look]]:
    """Accuracy with the raw weights at every look at a set, by key, in the order of steps.

    Looks without a number, since the replicate had diverged, are left out.
    """
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
