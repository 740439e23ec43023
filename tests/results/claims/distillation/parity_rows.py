"""Rows of distilled parities, as a study's file plans it, with the steps at which a test wants each replicate to be right."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

import harness.planning.manifest as manifests
from harness.planning.plan import plan
from harness.study.load import load
from launch.families import find_study
from results.claims import Verdict, verdicts
from results.rows.summary import Replicate, Score
from results.store.manifest import label, stage_of
from results.store.schema import SCHEMAS

COUNT = 1000
M = 1_000_000
NEVER, DIVERGED, LOST, FAILED, MISSING = None, "diverged", "no_transition", "failed", "missing"
Times = Callable[
    [str, int], Any
]  # condition and its stage, number of the seed → the step at which it is right, or one of the above
Contrast = Callable[
    [int, int, int], float
]  # degree, number of the seed, steps after the transition in 0.1M → inside over outside


def planned(name: str, scale: str = "paper", overrides: Sequence[str] = ()) -> dict[str, Any]:
    """The manifest of a study of this family."""
    study = load(find_study("progressive_distillation", name), [f"scale={scale}", *overrides])
    return manifests.build(plan(study, None, 16, numerics={}), {}, {}, None, None) | {"overrides": []}


def rows(manifest: Mapping[str, Any], times: Times) -> tuple[list[Replicate], pa.Table]:
    """Every planned replicate, and looks at the set `curve`: a guess up to 0.2M steps before it is right, 0.95 then, 1 from 0.4M later."""
    known, table, seen = [], [], {}
    for key, index, init_seed, data_seed in manifest["replicates"]:
        condition = manifest["conditions"][index]
        stage = stage_of(condition)
        at = seen[index] = seen.get(index, -1) + 1
        time, last = times(label(condition["name"], stage), at), condition["settings"]["train"]["steps"]
        status = time if time in (DIVERGED, LOST, FAILED, MISSING) else "finished"
        scores = {"test": Score(0, COUNT, COUNT, 0.0, 0.0, 1.0)} if status == "finished" else {}
        known.append(Replicate(condition["name"], stage, key, init_seed, data_seed, status, 0.1, None, scores))
        if status in (FAILED, MISSING):
            continue
        rise = last + 1 if isinstance(time, str) or time is NEVER else time
        looks = {last: 1.0 if rise < last else 0.5, 100_000: 0.5, max(rise - 200_000, 200_000): 0.5}
        looks |= {rise: 0.95, rise + 400_000: 1.0}
        row = {"key": key, "stage": stage, "pack": "p", "weights": "raw", "set": "curve", "set_hash": "0", "metric": "read"}
        for step, accuracy in looks.items():
            errors, count = (None, None) if status in (DIVERGED, LOST) else (round((1 - accuracy) * COUNT), COUNT)
            if step <= last:
                table.append(row | {"step": step, "errors": errors, "count": count, "sequences": COUNT})
    return known, pa.Table.from_pylist(table, SCHEMAS["evaluations"])


def monomials(known: Sequence[Replicate], times: Times, contrast: Contrast, places: Sequence[int] = range(-5, 9)) -> pa.Table:
    """Rows of the probe for every replicate of the teacher, at steps in 0.1M from its transition on."""
    found = []
    for at, each in enumerate(replicate for replicate in known if label(replicate.condition, replicate.stage) == "teacher"):
        time = times("teacher", at)
        for place in places if isinstance(time, int) else ():
            row = {"key": each.key, "stage": 0, "pack": "p", "step": time + place * 100_000, "probe": "monomials"}
            for degree in (1, 2, 3):
                outside = 0.01 / degree
                found += [row | {"item": f"degree={degree} outside", "value": outside}]
                found += [row | {"item": f"degree={degree} inside", "value": outside * contrast(degree, at, place)}]
    return pa.Table.from_pylist(found, SCHEMAS["probes"])


def judged(manifest: Mapping[str, Any], claim: str, times: Times, contrast: Contrast | None = None, **options: Any) -> Verdict:
    cut = dict(manifest) | {"claims": {claim: manifest["claims"][claim]}}
    known, evaluations = rows(cut, times)
    measured = None if contrast is None else monomials(known, times, contrast, **options)
    (found,) = verdicts(cut, known, evaluations=evaluations, measured=measured)
    assert found.finding.reason
    assert "nan" not in found.finding.measured + found.finding.reason
    return found
