"""The claim on the theorem's scaling gives each verdict where the rows of its study deserve it."""

from dataclasses import replace

import pyarrow as pa
import pytest

from results.claims import verdicts
from results.claims.claim import NOT_REPRODUCED, NOT_RUN, PRECONDITION, REPRODUCED, TOO_FEW
from tests.results.claims.planned_rows import planned, replicates


@pytest.fixture(scope="module")
def study():
    return planned("ngrams", "stationarity")


def row(settings, seed, decay=1.0, root=0.5, noise=0.01, others=1e-6, unigram=0.0, odd=0):
    """The numbers of one replicate; of the first `odd` seeds the norm is that of strings of 64 at every length."""
    k, length, c = (settings[name] for name in ("k", "length", "c"))
    if k == 1:
        return {"key": unigram, "floor": 0.0, "squared": unigram**2, "others": 0.0}
    norm = 0.1 * (1 + seed / 100) * (c / 32) ** root * ((64 if seed < odd else length) / 64) ** -decay
    return {"key": norm, "floor": noise, "squared": norm**2 - noise**2, "others": others}


def judged(manifest, keep=lambda name, seed: True, **changes):
    rows = []
    known = replicates(manifest, lambda settings, definition: 0.5)
    settings = {each["name"]: each["settings"]["experiment"] for each in manifest["conditions"]}
    for each in known:
        if keep(each.condition, each.init_seed):
            for metric, value in row(settings[each.condition], each.init_seed, **changes).items():
                rows.append((each.key, 0, metric, value, "value"))
    names = ("key", "step", "metric", "value", "kind")
    table = pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))) if rows else None
    (found,) = verdicts(manifest, known, evaluations=table)
    return found.verdict


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, REPRODUCED),
        ({"root": 1.0}, NOT_REPRODUCED),  # in proportion to c
        ({"root": 0.0}, NOT_REPRODUCED),
        ({"decay": -0.5}, NOT_REPRODUCED),  # it grows with the strings
        ({"others": 0.05}, NOT_REPRODUCED),  # other weights are pulled as well
        ({"unigram": 0.01}, NOT_REPRODUCED),
        ({"odd": 3, "decay": 0.5}, TOO_FEW),  # three seeds see no decay
        ({"noise": 0.09}, PRECONDITION),
        ({"keep": lambda name, seed: seed < 20 or name != "bigram_64"}, TOO_FEW),
        ({"keep": lambda name, seed: False}, NOT_RUN),
    ],
)
def test_the_theorems_scaling(study, changes, verdict):
    assert judged(study, **changes) == verdict


def test_before_any_replicate_has_ended_there_are_too_few(study):
    """Nothing but replicates is missing, so the study is not one that can't be judged."""
    waiting = [replace(each, status="missing", scores={}) for each in replicates(study, lambda settings, definition: 0.5)]
    (found,) = verdicts(study, waiting)
    assert found.verdict == TOO_FEW
