"""R3 gives each verdict on rows that deserve it."""

import json

import pyarrow as pa
import pytest

from results.claims import scoreboard
from results.claims.claim import NOT_REPRODUCED, NOT_RUN, PRECONDITION, REPRODUCED, SCALED, TOO_FEW
from results.store.schema import SCHEMAS
from results.store.tables import commit, open_store, write_bytes
from tests.results.synthetic import START, digest

GOOD = {16: 450, 64: 350, 256: 300}  # right of 500


def board(folder, models, strings=500, reductions=()):
    """models: (billions of parameters, {length: right}) each."""
    store = open_store(folder, "models")
    conditions, keys, sets = [], [], {}
    for number, (billions, right) in enumerate(models):
        parameters = round(billions * 1e9)
        key, name, pack = digest(str(number)), f"m{number}", f"pack{number}"
        hashes = {f"length-{length}": digest(str(length)) for length in right}
        sets |= {each: {"definition": {"length": 1}, "sequences": strings, "every": None, "seed": 0} for each in hashes}
        settings = {
            "task": {"name": "english_flipflop"},
            "model": {"name": "language_model", "parameters": parameters},
            "train": {},
        }
        each = {"hash": ""}
        conditions.append(
            {"name": name, "config": {}, "settings": settings, "replicates": 1, "scored": 1}
            | {"sets": {set_name: each | {"hash": found, "task": {}} for set_name, found in hashes.items()}}
        )
        keys.append([key, number, 0, 0])
        row = {"key": key, "stage": 0, "pack": pack}
        replicate = row | {
            **{
                "condition": name,
                "config": "{}",
                "init_seed": 0,
                "data_seed": 0,
                "status": "finished",
                "steps": 0,
                "samples": 0,
            },
            **{"tokens": 0, "parameters": parameters, "loss": float("nan"), "pack_size": 1, "slot": 0, "attempt": 1},
            **{"started": START, "ended": START, "train_s": 0.0, "evaluate_s": 0.0, "host": "", "device": "cpu"},
            **{"numerics": "{}", "versions": "{}", "sets": list(hashes.values())},
        }
        evaluations = [
            row
            | {"step": 0, "weights": "raw", "set": f"length-{length}", "set_hash": digest(str(length)), "metric": "read"}
            | {"errors": strings - good, "count": strings, "sequences": strings, "sequences_wrong": strings - good}
            | {"errors_sq": strings - good, "errors_x_count": strings - good, "count_sq": strings}
            for length, good in right.items()
        ]
        tables = {"replicates": [replicate], "evaluations": evaluations}
        commit(store, pack, {table: pa.Table.from_pylist(rows, SCHEMAS[table]) for table, rows in tables.items()})
    manifest = {
        "study": "models",
        "question": "?",
        "source": {},
        "scale": "paper",
        "reductions": list(reductions),
        "overrides": [],
    }
    manifest |= {"claims": {"R3": {"value": 0.5}}, "sets": sets, "conditions": conditions, "replicates": keys, "curve_every": 1}
    write_bytes(store, "manifests/0.yaml", json.dumps(manifest).encode())
    (found,) = scoreboard(store)
    return found


@pytest.mark.parametrize(
    ("verdict", "models"),
    [
        (REPRODUCED, [(10, GOOD)]),
        (REPRODUCED, [(10, GOOD), (5, {16: 200, 256: 500})]),  # the largest decides
        (NOT_REPRODUCED, [(10, GOOD), (20, {16: 200, 256: 150})]),  # below chance
        (NOT_REPRODUCED, [(10, {16: 450, 64: 500, 256: 500})]),  # perfect at the longest
        (NOT_REPRODUCED, [(10, {16: 500, 256: 500})]),
        (NOT_REPRODUCED, [(10, {16: 350, 64: 400, 256: 450})]),  # rises
        (PRECONDITION, [(0.124, {16: 350, 64: 400, 256: 450})]),  # as above, of a model that the thesis does not speak of
        (PRECONDITION, [(9.9, GOOD)]),
        (TOO_FEW, [(10, {16: 350, 64: 350, 256: 349})]),  # no trend shown
        (TOO_FEW, [(10, {16: 260, 64: 240, 256: 200})]),  # chance not told from above it
        (NOT_RUN, [(10, {16: 350})]),
        (NOT_RUN, []),
    ],
)
def test_rows_give_the_verdict_that_they_deserve(verdict, models, tmp_path):
    found = board(tmp_path, models)
    assert found.verdict == verdict, found.finding
    assert found.finding.reason
    assert "nan" not in found.finding.measured


def test_few_strings_and_another_scale(tmp_path):
    assert board(tmp_path / "few", [(10, {16: 90, 256: 40})], strings=99).verdict == TOO_FEW
    assert board(tmp_path / "less", [(10, {16: 90, 256: 60})], 100, ["strings: 500 -> 100"]).verdict == SCALED


def test_the_measured_line_has_the_counts_and_the_trend(tmp_path):
    measured = board(tmp_path, [(10, GOOD)]).finding.measured
    assert "450 of 500" in measured
    assert "length 16" in measured
    assert "300 of 500" in measured
    assert "p = " in measured
