"""Rows of the studies on LEGO as their files plan them, with the sentences that a test wants wrong and the attention that it wants."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from results.claims.lego.sentences import others
from results.rows.probe_values import Name
from results.rows.summary import Replicate, Score
from results.store.manifest import label, stage_of
from results.store.schema import SCHEMAS

SENTENCES = 1000
STEP = 1000
Wrong = Callable[
    [str, int], Sequence[float | None] | float
]  # condition and its stage, length → shares of wrong sentences by seed; None: diverged


def rows(manifest: Mapping[str, Any], wrong: Wrong) -> tuple[list[Replicate], pa.Table]:
    """Every planned replicate, and the evaluations of two steps, of which the first is worse."""
    known, table = [], []
    seen: dict[int, int] = {}
    for key, index, init_seed, data_seed in manifest["replicates"]:
        condition = manifest["conditions"][index]
        stage = stage_of(condition)
        at = seen[index] = seen.get(index, -1) + 1
        scores, diverged = {}, False
        for name, each in manifest["sets"].items():
            length = each["definition"].get("length", condition["settings"]["task"]["length"])
            shares = wrong(label(condition["name"], stage), length)
            share = shares if isinstance(shares, float | int) else shares[at]
            if share is None:
                diverged = True
                continue
            row = {"key": key, "stage": stage, "pack": "fd-0", "weights": "raw", "set": name, "set_hash": "0", "metric": "read"}
            row |= {"errors": round(share * SENTENCES), "count": SENTENCES * length, "sequences": SENTENCES}
            table.append(row | {"step": 5, "sequences_wrong": SENTENCES})
            table.append(row | {"step": STEP, "sequences_wrong": round(share * SENTENCES)})
            # a rate by values says another thing than sentences do
            scores[name] = Score(row["errors"], row["count"], SENTENCES, row["errors"] / row["count"], 0.0, 1.0)
        status = "diverged" if diverged else "finished"
        known.append(
            Replicate(condition["name"], stage, key, init_seed, data_seed, status, 0.1, None, {} if diverged else scores)
        )
    return known, pa.Table.from_pylist(table, SCHEMAS["evaluations"])


def attention(
    lengths: Sequence[int] = (5, 10, 20, 40, 80, 160),
    epsilon: float = 0.02,
    share: float = 0.6,
    growth: float = 1.0,
    falls: tuple[float, float] = (-0.01, -0.001),
) -> dict[Name, float]:
    """Rows of the probe concentration, of two heads alike: ε at the first length, the predicate's share of the rest, odds that grow
    `growth` times as fast as the other clauses, and slopes of the two masses over the answers."""
    found: dict[Name, float] = {}
    first = epsilon / (1 - epsilon) if epsilon < 1 else 1e9
    for length in lengths:
        ratio = 1.0 if length == lengths[0] else growth * others(length) / others(lengths[0])
        odds = first * ratio
        held = 1 / (1 + odds)
        for item, value in (("epsilon", 1 - held), ("gap", held * (2 * share - 1)), ("odds", odds)):
            found |= {("concentration", 0, head, f"L={length} {item}"): value for head in (None, 0, 1)}
        for answer in range(1, length + 1):
            for name, slope in zip(("predicate", "itself"), falls, strict=True):
                found["concentration", 0, None, f"L={length} l={answer} {name}"] = 0.4 + slope * answer + 5 * (answer == 1)
    return found
