"""A2, on accuracy that is lost again, and A3, on where heads look: each verdict where the rows deserve it."""

from dataclasses import replace

import pyarrow as pa
import pytest

from results.claims import verdicts
from results.claims.claim import NOT_REPRODUCED, NOT_RUN, PRECONDITION, REPRODUCED, TOO_FEW
from results.store.schema import SCHEMAS
from tests.results.claims.automata.automata_rows import flat, renamed
from tests.results.claims.planned_rows import replicates


def _run(shape, seeds, steps=20):
    """Evaluations of an online set: `shape(seed, look)` is an accuracy."""
    rows = [
        {
            "key": key,
            "stage": 0,
            "step": look,
            "weights": "raw",
            "set": "online",
            "metric": "read",
            "errors": round((1 - shape(i, look)) * 1000),
            "count": 1000,
        }
        for i, key in enumerate(seeds)
        for look in range(1, steps + 1)
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMAS["evaluations"])


@pytest.mark.parametrize(
    ("shape", "steps", "verdict"),
    [
        (lambda seed, look: min(0.6 + 0.04 * look, 1) - (0.2 if (seed, look) == (3, 15) else 0), 20, REPRODUCED),
        (lambda seed, look: 0.6 + 0.02 * look - (0.2 if look == 15 else 0), 20, NOT_REPRODUCED),  # before it was right
        (lambda seed, look: 0.6 + 0.02 * look, 20, NOT_REPRODUCED),
        (lambda seed, look: 0.9 - 0.02 * look, 20, PRECONDITION),
        (lambda seed, look: 0.2 + 0.1 * (look % 2 == 0), 20, PRECONDITION),  # near its best at the end, and that is a guess
        (lambda seed, look: 0.6 + 0.02 * look, 9, NOT_RUN),
    ],
)
def test_accuracy_that_is_lost_again(plans, shape, steps, verdict):
    manifest = plans("a2")
    known = replicates(manifest, flat(0.1))
    (found,) = verdicts(manifest, known, evaluations=_run(shape, [each.key for each in known], steps))
    assert found.verdict == verdict, found.finding
    (found,) = verdicts(manifest, known[:5] + [replace(each, status="missing", scores={}) for each in known[5:]])
    assert found.verdict == TOO_FEW


def _heads(*heads, layers=4):
    """Rows of the probe boundaries: (visits, before) of the last layer's heads; the first layer's are even."""
    rows = {("boundaries", None, None, "uniform visits"): 0.3, ("boundaries", None, None, "uniform before"): 0.6}
    for layer, of_layer in ((0, [(0.3, 0.6)] * len(heads)), (layers - 1, heads)):
        for head, (visits, before) in enumerate(of_layer):
            rows |= {("boundaries", layer, head, "visits"): visits, ("boundaries", layer, head, "before"): before}
    return rows


_LOOKS, _EVEN = _heads((0.3, 0.6), (0.9, 0.05)), _heads((0.3, 0.6), (0.31, 0.5))


@pytest.mark.parametrize(
    ("verdict", "error", "rows"),
    [
        (REPRODUCED, 0.001, lambda seed: _LOOKS),
        (REPRODUCED, 0.001, lambda seed: _LOOKS if seed else _EVEN),
        (NOT_REPRODUCED, 0.001, lambda seed: _EVEN),
        (NOT_REPRODUCED, 0.001, lambda seed: _heads((0.9, 0.55), (0.31, 0.0))),  # no head has both
        (TOO_FEW, 0.001, lambda seed: _LOOKS if seed < 6 else _EVEN),
        (TOO_FEW, 0.001, lambda seed: _LOOKS if seed else None),  # one was not probed
        (NOT_RUN, 0.001, lambda seed: None),
        (PRECONDITION, 0.05, lambda seed: _LOOKS),  # not right where it was trained
    ],
)
def test_heads_that_look_for_the_ends_give_each_verdict(plans, verdict, error, rows):
    manifest = plans("a3")
    known = replicates(manifest, lambda settings, definition: error)
    probes = {each.key: found for each in known if (found := rows(each.init_seed)) is not None}
    (found,) = verdicts(manifest | {"overrides": []}, known, probes=probes)
    assert found.verdict == verdict
    assert found.finding.reason


def test_heads_are_asked_of_gridworlds(plans):
    manifest = plans("a8") | {"claims": {"A3": {"value": 2}}}
    manifest = renamed(manifest, {}, automaton="C2")
    (found,) = verdicts(manifest, replicates(manifest, lambda settings, definition: 0.001))
    assert found.verdict == NOT_RUN
    assert "gridworld" in found.finding.reason
