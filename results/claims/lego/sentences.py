"""Functions on the rows of LEGO: sentences that are wrong, sets by length, and values of the probe `concentration` by length."""

import re
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from results.plain_values import Options
from results.rows.probe_values import Name, Values

SIMPLY_TRANSITIVE = re.compile(r"C\d+$|.*_regular$")
SYMMETRY = re.compile(r"S\d+$")

Shares = dict[tuple[str, str], float]


def sentences_wrong(evaluations: pa.Table) -> Shares:
    """Fraction of sentences with a wrong value at the last step, by (key, set): 1 minus the paper's accuracy.

    evaluations: the rows that are reported, with the errors of values. Stages have keys of their own.
    """
    rows = evaluations.filter(pc.field("weights") == "raw")
    last: dict[tuple[str, str], tuple[int, float]] = {}
    for row in rows.select(["key", "set", "step", "sequences", "sequences_wrong"]).to_pylist():
        name = row["key"], row["set"]
        if row["sequences_wrong"] is not None and row["sequences"] and row["step"] >= last.get(name, (-1, 0.0))[0]:
            last[name] = row["step"], row["sequences_wrong"] / row["sequences"]
    return {name: share for name, (_, share) in last.items()}


def sets_by_length(definitions: Mapping[str, Options], trained: int) -> dict[int, str]:
    """Names of the sets that change nothing but length or decoding, by length; of two at one length, the freely run one."""
    names: dict[int, str] = {}
    for name, changed in definitions.items():
        length = changed.get("length", trained)
        if changed.keys() <= {"length", "decode"} and (length not in names or changed.get("decode") == "greedy"):
            names[length] = name
    return dict(sorted(names.items()))


def items_by_length(values: Mapping[Name, float], item: str, layer: int = 0, head: int | None = None) -> Values[int]:
    """An item of the probe concentration, such as "odds", of a head or averaged over the heads of a layer, by length."""
    pattern = re.compile(rf"L=(\d+) {re.escape(item)}$")
    means: dict[int, float] = {}
    for (probe, *place, name), value in values.items():
        match = pattern.match(str(name)) if probe == "concentration" and place == [layer, head] else None
        if match:
            means[int(match[1])] = value
    return Values(sorted(means.items()))


def others(length: int) -> float:
    """The mean of L + l - 2 over the answers l = 1 … L: clauses that an answer sees beside the two that it needs."""
    return length - 2 + (length + 1) / 2
