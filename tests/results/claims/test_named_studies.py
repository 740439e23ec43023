"""The study that a claim names can decide it: its plan has every condition, set and probe that the claim's query asks for.

Of all families but the first, whose own test of this is in its folder.
"""

import functools
import re
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import harness.planning.manifest as manifests
from harness.planning.plan import plan
from harness.probes.registry import PROBES
from harness.study.load import load
from launch.families import find_study
from results.claims import FAMILIES, reductions, verdicts
from results.claims.claim import NOT_RUN
from results.rows.summary import Replicate, Score
from results.store.manifest import stage_of
from results.store.schema import SCHEMAS

COUNT = 1000
NAMED = [claim for family in FAMILIES[1:] for claim in family.CLAIMS.values() if claim.study]
LOOKS = 10


@functools.cache
def planned(name: str) -> tuple[Any, dict[str, Any]]:
    """The study, and its plan for as many seeds as its claims need: the others would take seconds."""
    study = load(find_study(*name.split("/")), ["scale=paper"])
    most = max(claim.needs for claim in NAMED if claim.study == name)
    fewer = replace(study, conditions=tuple(replace(each, seeds=each.seeds[:most]) for each in study.conditions))
    return study, manifests.build(plan(fewer, None, 16, numerics={}), {}, {}, None, None) | {"overrides": []}


@functools.cache
def rows(name: str) -> tuple[list[Replicate], pa.Table, pa.Table]:
    """Every planned replicate with one error in 1,000 on every set, LOOKS looks at those that are looked at, and a falling loss; of
    an experiment 0.5 of every number."""
    _, manifest = planned(name)
    known, looks, losses = [], [], []
    for key, index, init_seed, data_seed in manifest["replicates"]:
        condition = manifest["conditions"][index]
        if "experiment" in condition["settings"]:
            known.append(Replicate(condition["name"], 0, key, init_seed, data_seed, "finished", 0.1, None, {}))
            row = {"key": key, "stage": 0, "pack": "p", "step": 0, "value": 0.5, "kind": "value"}
            looks += [row | {"metric": metric} for metric in manifest["metrics"]]
            continue
        stage, steps = stage_of(condition), condition["settings"]["train"]["steps"]
        scores = {each: Score(1, COUNT, COUNT, 1 / COUNT, 0.0, 1.0) for each in manifest["sets"]}
        known.append(Replicate(condition["name"], stage, key, init_seed, data_seed, "finished", 0.1, None, scores))
        row = {"key": key, "stage": stage, "pack": "p", "weights": "raw", "set_hash": "0", "metric": "read", "count": COUNT}
        for title, each in manifest["sets"].items():
            about = row | {"set": title, "errors": 1, "sequences": COUNT, "sequences_wrong": 1}
            looks += [
                about | {"step": step}
                for step in (range(LOOKS * each["every"], 0, -each["every"]) if each["every"] else [steps])
            ]
        losses += [
            {"key": key, "stage": stage, "pack": "p", "step": steps * part // 4, "metric": "loss", "value": 1.0 - part / 5}
            for part in range(1, 5)
        ]
    return known, pa.Table.from_pylist(looks, SCHEMAS["evaluations"]), pa.Table.from_pylist(losses, SCHEMAS["curves"])


@pytest.mark.parametrize("claim", NAMED, ids=lambda claim: claim.id)
def test_the_study_of_a_claim_decides_it(claim):
    study, manifest = planned(claim.study)
    assert claim.id in study.claims, f"{claim.study} does not state {claim.id}"
    assert min(len(each.seeds) for each in study.conditions) >= claim.needs
    assert claim.study_reduced == bool(reductions(manifest)), "a reduced study gives verdicts (scaled) alone"
    cut = manifest | {"claims": {claim.id: manifest["claims"][claim.id]}}
    known, looks, losses = rows(claim.study)
    (verdict,) = verdicts(
        cut, known, probes={}, evaluations=looks, measured=pa.Table.from_pylist([], SCHEMAS["probes"]), curves=losses
    )
    asked = re.search(r"manyseeds (?:trace|probe STORE --probe (\w+))", verdict.finding.reason)
    if asked:  # rows of weights: they must be kept, and the probe must be one that can be run on them
        assert asked[1] is None or asked[1] in PROBES
        assert study.keep != "none" or any(each.stage for each in study.conditions)
    elif watched := re.search(
        r"set evaluate\.watch\.(\w+)", verdict.finding.reason
    ):  # weights that are watched while they train
        assert study.watch is not None
        assert getattr(study.watch, watched[1])
    else:
        assert verdict.verdict != NOT_RUN, verdict.finding.reason
