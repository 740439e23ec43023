"""The study that a flip-flop claim names can decide it: its plan has every condition, set and probe that the claim asks for."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from harness.study.load import load
from launch.families import find_study
from results.claims import reductions, verdicts
from results.claims.claim import REPRODUCED
from results.claims.flipflop import CLAIMS
from results.claims.flipflop.context import floor
from results.rows.probe_values import Name
from results.rows.summary import Replicate
from results.store.schema import SCHEMAS
from tests.results.claims.planned_rows import planned, replicates, spread

NAMED = {name: claim.study for name, claim in CLAIMS.items() if claim.study}
PROBED = {"R8": "attention", "T3": "drift"}
DRIFT = ("margin", "b p=90 recent", "b p=90 early")


def rates(settings: Mapping[str, Any], definition: Mapping[str, Any]) -> float | list[float]:
    """Errors that every claim but T3 can be decided by: what was trained on is read, and a baseline errs elsewhere.

    A model that sees the last tokens alone errs as often as the best guess does.
    """
    law = definition.get("p_ignore", settings.get("task.p_ignore"))
    if settings["model.name"] == "ngram_mlp":
        return spread(floor(law, settings["model.context"], settings["task.length"]), 10, width=0.02)
    trained = settings.get("task.p_ignore")
    if settings["model.name"] == "lstm" or law == trained or isinstance(trained, list | tuple):
        return 0.0
    dense, steps = law < trained, settings["train.steps"]
    if steps > 10_000:
        return spread(5e-2 * steps / 30_000 if dense else 5e-3 * 30_000 / steps, 500)
    if dense:
        return spread(4e-3, 500) if settings["model.positions"] != "learned" else [8e-3, 0.11] * 250
    fewer = settings.get("model.embedding_dropout") or settings.get("train.sharpen.weight")
    return spread(1e-4, 500) if fewer else [1e-2, 0.3] * 250


def counted(replicate: Replicate) -> Replicate:
    """With intervals of a tenth around each rate."""
    scores = {name: replace(score, low=0.9 * score.rate, high=1.1 * score.rate) for name, score in replicate.scores.items()}
    return replace(replicate, scores=scores)


def looks(manifest: Mapping[str, Any], name: str) -> pa.Table | None:
    """Two looks at the sets that are scored on the way, the second with errors on sparse strings."""
    online = {name: each["definition"] for name, each in manifest["sets"].items() if each["every"]}
    if name != "R1-iterates":
        return None
    rows = [
        {"key": key, "stage": 0, "pack": "p", "step": step, "weights": "raw", "set": each, "metric": "read", "sequences": 500}
        | {
            "set_hash": manifest["conditions"][index]["sets"][each]["hash"],
            "count": 1000,
            "errors": wrong,
            "sequences_wrong": wrong,
        }
        for key, index, *_ in manifest["replicates"]
        for each, definition in online.items()
        for step, wrong in ((100, 0), (200, 100 * bool(definition)))
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMAS["evaluations"])


def probes(manifest: Mapping[str, Any], probe: str | None) -> dict[str, dict[Name, float]]:
    if probe == "attention":
        sharp = [bool(each["settings"]["train"].get("sharpen")) for each in manifest["conditions"]]
        return {key: {("attention", 0, 0, "largest"): 0.4 + 0.4 * sharp[index]} for key, index, *_ in manifest["replicates"]}
    if probe == "drift":
        own = [i for i, each in enumerate(manifest["conditions"]) if each["settings"]["model"]["positions"] == "linear"]
        found = {}
        for i, (key, index, *_) in enumerate(manifest["replicates"]):
            values = (1.0, 0.9, 0.0) if i % 3 else (-1.0, 0.0, 0.9)
            if index in own:
                found[key] = {("drift", 0, 0, item): value for item, value in zip(DRIFT, values, strict=True)}
        return found
    return {}


@pytest.mark.parametrize("name", NAMED)
def test_the_study_that_a_claim_names_decides_it(name: str) -> None:
    family, _, study = NAMED[name].partition("/")
    manifest = planned(family, study)
    assert name in manifest["claims"], f"{NAMED[name]} does not state {name}"
    assert CLAIMS[name].study_reduced == bool(reductions(manifest)), "a reduced study gives verdicts (scaled) alone"
    if name in PROBED:
        assert load(find_study(family, study)).keep == "all", "a probe needs the weights"
    manifest["claims"] = {name: manifest["claims"][name]}
    known = [counted(each) for each in replicates(manifest, rates)]
    (found,) = verdicts(manifest, known, probes=probes(manifest, PROBED.get(name)), evaluations=looks(manifest, name))
    assert found.verdict == REPRODUCED, found.finding


def test_each_claim_on_language_tasks_names_a_study() -> None:
    assert CLAIMS.keys() - NAMED.keys() == {"R3", "T2"}  # needs models, and any study of simulation
