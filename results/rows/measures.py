"""The numbers that the replicates of an experiment return: their names, which direction is better, and each replicate's last value.

Readers rank costs, of which lower ones are better: the value itself, or minus the value where higher ones are better.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from results.store.manifest import Planned, reported

RESULT = "result"  # the set of a number that names none
ARRAY = "array"  # the kind of rows that stand for arrays, which have no value
Row = tuple[str, int]  # key and stage
_NUMBERS = pc.field("kind") != ARRAY


@dataclass(frozen=True)
class Measure:
    """A metric on a set. better: lower | higher; declared: whether the study says so; kind: number | flag."""

    set: str
    metric: str
    better: str
    declared: bool
    kind: str

    @property
    def label(self) -> str:
        return label(self.set, self.metric)

    @property
    def ranked(self) -> str:
        """The label and the direction in which it is better: "accuracy (higher is better)"."""
        return f"{self.label} ({self.better} {'is better' if self.declared else 'counts as better: the study does not say'})"

    @property
    def sign(self) -> float:
        """Factor that turns a value into a cost, and a cost into a value."""
        return -1.0 if self.better == "higher" else 1.0


def label(name: str, metric: str) -> str:
    """The label of a metric, or an array, on the set called `name`."""
    return metric if name == RESULT else f"{metric} ({name})"


def is_experimental(manifest: Planned) -> bool:
    """Whether the replicates of a study are experiments, which train nothing."""
    return any("experiment" in condition.get("config", {}) for condition in manifest["conditions"])


def measures_of(manifest: Planned, evaluations: pa.Table) -> list[Measure]:
    """The metrics that rows of planned replicates have, declared ones first in their order, then the others by name; for each metric, its
    sets by name."""
    declared = manifest.get("metrics", {})
    by = evaluations.filter(reported(manifest) & _NUMBERS).group_by(["set", "metric", "kind"]).aggregate([]).to_pylist()
    kinds = {(row["set"], row["metric"]): row["kind"] for row in sorted(by, key=lambda row: str(row["kind"]), reverse=True)}
    order = {name: place for place, name in enumerate(declared)}
    names = sorted(kinds, key=lambda name: (order.get(name[1], len(order)), name[1], name[0] != RESULT, name[0]))
    higher = {name for name, about in declared.items() if about["better"] == "higher"}
    stated = {name for name, about in declared.items() if about["better"]}
    return [
        Measure(name, metric, "higher" if metric in higher else "lower", metric in stated, kinds[name, metric])
        for name, metric in names
    ]


def last_values(measures: list[Measure], evaluations: pa.Table) -> dict[Row, dict[str, tuple[float, int | None]]]:
    """{(key, stage): {label: (cost, count)}} at the largest step of each; infinity where the value was no finite number."""
    labels = {(measure.set, measure.metric): measure for measure in measures}
    rows = evaluations.filter(_NUMBERS)
    by = ["key", "stage", "set", "metric"]
    last = rows.group_by(by).aggregate([("step", "max")]).rename_columns([*by, "step"])
    chosen = rows.join(last, keys=[*by, "step"], join_type="left semi").select([*by, "value", "count"]).to_pylist()
    costs: dict[Row, dict[str, tuple[float, int | None]]] = {}
    for row in chosen:
        measure = labels.get((row["set"], row["metric"]))
        if measure is None:  # of a replicate that is not planned
            continue
        cost = np.inf if row["value"] is None else measure.sign * row["value"]
        costs.setdefault((row["key"], row["stage"]), {})[measure.label] = (cost + 0.0, row["count"])
    return costs
