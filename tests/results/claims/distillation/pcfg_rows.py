"""Rows of the studies of distillation on grammars as their files plan them, with the accuracies and the probes that a test wants."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

import harness.planning.manifest as manifests
from harness.planning.plan import plan
from harness.study.load import load
from launch.families import find_study
from results.claims import Verdict, verdicts
from results.rows.options import flatten
from results.rows.summary import Replicate, Score
from results.store.manifest import label, stage_of
from results.store.schema import SCHEMAS

READS = 1_000_000
Accuracy = Callable[
    [str, Mapping[str, Any]], Sequence[float | None] | float
]  # condition and its options → at the end, by seed; None: diverged
Look = Callable[[str, int], float]  # condition, step → on the way
Probes = Callable[[str, int, int], Mapping[str, Mapping[str, float]]]  # condition, step, seed → values by probe and item


def planned(name: str, scale: str = "paper", overrides: Sequence[str] = ()) -> dict[str, Any]:
    """The manifest of a study of this family."""
    study = load(find_study("progressive_distillation", name), [f"scale={scale}", *overrides])
    return manifests.build(plan(study, None, 16, numerics={}), {}, {}, None, None) | {"overrides": []}


def known(manifest: Mapping[str, Any], accuracy: Accuracy) -> list[Replicate]:
    """Every planned replicate, with these accuracies on the sets that are scored at the end; numbers for all seeds differ in nothing."""
    found, seen = [], {}
    for key, index, init_seed, data_seed in manifest["replicates"]:
        condition = manifest["conditions"][index]
        at = seen[index] = seen.get(index, -1) + 1
        wanted = accuracy(label(condition["name"], stage_of(condition)), flatten(condition["settings"]))
        share = wanted if isinstance(wanted, int | float) else wanted[at]
        errors = None if share is None else round((1 - share) * READS)
        names = [name for name, each in manifest["sets"].items() if each["every"] is None]
        scores = {} if errors is None else {name: Score(errors, READS, 1000, errors / READS, 0.0, 1.0) for name in names}
        status = "diverged" if share is None else "finished"
        found.append(Replicate(condition["name"], stage_of(condition), key, init_seed, data_seed, status, 0.1, None, scores))
    return found


def looked(replicates: Sequence[Replicate], look: Look, steps: Sequence[int], name: str = "online") -> pa.Table:
    """A table of looks at these steps."""
    about = {"pack": "p", "weights": "raw", "set": name, "set_hash": "0", "metric": "read", "count": READS, "sequences": 1000}
    rows = [
        about
        | {"key": each.key, "stage": each.stage, "step": step}
        | {"errors": round((1 - look(label(each.condition, each.stage), step)) * READS)}
        for each in replicates
        for step in steps
    ]
    return pa.Table.from_pylist(rows, SCHEMAS["evaluations"])


def lost(replicates: Sequence[Replicate], loss: Look, steps: Sequence[int]) -> pa.Table:
    """A table of training losses at these steps."""
    rows = [
        {"key": each.key, "stage": each.stage, "pack": "p", "step": step, "metric": "loss"}
        | {"value": loss(label(each.condition, each.stage), step)}
        for each in replicates
        for step in steps
    ]
    return pa.Table.from_pylist(rows, SCHEMAS["curves"])


def probed(replicates: Sequence[Replicate], probes: Probes, steps: Callable[[Replicate], Sequence[int]]) -> pa.Table:
    """A table of probes at these steps."""
    first = min((each.init_seed for each in replicates), default=0)
    rows = [
        {"key": each.key, "stage": each.stage, "pack": "p", "step": step, "probe": probe, "item": item, "value": value}
        for each in replicates
        for step in steps(each)
        for probe, items in probes(label(each.condition, each.stage), step, each.init_seed - first).items()
        for item, value in items.items()
    ]
    return pa.Table.from_pylist(rows, SCHEMAS["probes"])


def judged(
    manifest: dict[str, Any],
    claim: str,
    accuracy: Accuracy,
    look: Look | None = None,
    steps: Sequence[int] = (),
    probes: Probes | None = None,
    probe_steps: Callable[[Replicate], Sequence[int]] = lambda each: (1,),
    loss: Look | None = None,
    **terms: float,
) -> Verdict:
    """The verdict on one claim of a study; looks and losses are at `steps`."""
    cut = manifest | {"claims": {claim: manifest["claims"][claim] | terms}}
    mine = known(cut, accuracy)
    evaluations = None if look is None else looked(mine, look, steps)
    measured = None if probes is None else probed(mine, probes, probe_steps)
    losses = None if loss is None else lost(mine, loss, steps)
    (verdict,) = verdicts(cut, mine, evaluations=evaluations, measured=measured, curves=losses)
    assert verdict.finding.reason
    assert "nan" not in f"{verdict.finding.measured} {verdict.finding.reason}"
    return verdict
