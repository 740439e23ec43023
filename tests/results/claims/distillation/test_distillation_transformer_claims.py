"""PD-R6 gives each verdict where the rows deserve it, also where runs never make their transition; the rows are of p6 as planned."""

import math

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import harness.planning.manifest as manifests
from harness.planning.plan import plan as planned
from harness.study.load import load
from launch.families import find_study
from results.claims import AT_ANOTHER_SIZE, verdicts
from results.claims.claim import NOT_REPRODUCED, NOT_RUN, PRECONDITION, REPRODUCED, SCALED, TOO_FEW
from results.claims.distillation.transformers import trend
from results.rows.summary import Replicate, Score
from results.store.schema import SCHEMAS

STEPS = 250_000
NEVER = math.inf
SPREAD = (0.9, 1.05, 1.0, 0.95, 1.1)


def manifest(scale="paper", *words):
    study = load(find_study("progressive_distillation", "p6"), [f"scale={scale}", *words])
    return manifests.build(planned(study, None, 16, numerics={}), {}, {}, None, None) | {"overrides": list(words)}


@pytest.fixture(scope="module")
def plan():
    return manifest()


def rows(plan, steps, last=STEPS, every=2500):
    """steps(settings of the model) → the step of each seed's transition; None: it diverges; "failed": it has none."""
    known, table, seen = [], [], {}
    for key, index, init_seed, data_seed in plan["replicates"]:
        condition = plan["conditions"][index]
        at = seen[index] = seen.get(index, -1) + 1
        wanted = steps(condition["settings"]["model"])
        step = wanted[at] if isinstance(wanted, list | tuple) else wanted
        status = {None: "diverged", "failed": "failed", "missing": "missing"}.get(step, "finished")
        row = {"key": key, "stage": 0, "pack": "fd-0", "weights": "raw", "set_hash": "0", "metric": "read", "count": 100}
        if status in ("finished", "diverged"):
            for look in range(every, last + 1, every):
                right = 50 if status == "diverged" or look < step else 76
                table.append(row | {"set": "online", "step": look, "errors": 100 - right})
        error = 0.5 if status == "finished" and step > last else 0.0
        scores = {"test": Score(int(error * 100), 100, 100, error, 0.0, 1.0)} if status == "finished" else {}
        known.append(Replicate(condition["name"], 0, key, init_seed, data_seed, status, 0.1, None, scores))
    return known, pa.Table.from_pylist(table, SCHEMAS["evaluations"])


def judged(plan, steps, **fields):
    known, table = rows(plan, steps, **fields)
    (found,) = verdicts(plan, known, evaluations=table)
    return found.finding


def spread(middle):
    return [each * middle for each in SPREAD]


def power(exponent, first=100_000):
    return lambda model: spread(first * (model["heads"] / 4) ** exponent)


def test_the_study_has_the_three_axes_of_the_card(plan):
    models = [each["settings"]["model"] for each in plan["conditions"]]
    found = [(model["heads"], model["width"], model["head_dim"], model["join"]) for model in models]
    heads = (4, 8, 16, 32)
    size, width = ({(each, wide(each), None, "concatenate") for each in heads} for wide in (lambda h: 8 * h, lambda h: 256))
    assert set(found) == size | width | {(each, 256, 256, "average") for each in heads}
    assert len(found) == 11
    assert {each["replicates"] for each in plan["conditions"]} == {5}


@pytest.mark.parametrize(
    ("steps", "verdict"),
    [
        (power(-0.5), REPRODUCED),
        (power(0.4, 60_000), NOT_REPRODUCED),
        (power(0.0), TOO_FEW),  # no order
        (lambda model: NEVER if model["heads"] < 16 else spread(100_000), REPRODUCED),  # fewer heads never get there
        (lambda model: NEVER, PRECONDITION),
        (lambda model: [NEVER] * 3 + [50_000] * 2 if model["heads"] == 32 else spread(100_000), PRECONDITION),
        (lambda model: [NEVER] * 2 + [50_000] * 3 if model["heads"] == 32 else NEVER, TOO_FEW),  # few are above all others
        (lambda model: None if model["heads"] < 16 else spread(100_000), REPRODUCED),  # diverged: never
        (lambda model: 100_000, TOO_FEW),  # all at one look
        (lambda model: ["missing", *spread(100_000)[1:]], TOO_FEW),
        (lambda model: ["failed", *spread(100_000)[1:]], TOO_FEW),
        # along one axis the other way round
        (lambda model: power(0.5 if model["join"] == "average" else -0.5, 60_000)(model), NOT_REPRODUCED),
        (lambda model: power(0 if model["join"] == "average" else -0.5)(model), TOO_FEW),
    ],
)
def test_the_order_of_the_steps_decides(plan, steps, verdict):
    assert judged(plan, steps).verdict == verdict


@pytest.mark.parametrize("sweeps", [[0], [1], [0, 1], [1, 2]])
def test_one_axis_can_refute_and_not_show(sweeps):
    """The sentence is of the three. Sweeps of the command line may be of smaller models, so the verdict is (scaled)."""
    texts = [
        "{zip: {model.heads: [4, 8, 16, 32], model.width: [32, 64, 128, 256]}}",
        "{grid: {model.heads: [4, 8, 16, 32]}}",
        "{grid: {model.heads: [4, 8, 16, 32], model.join: [average], model.head_dim: [256]}}",
    ]
    some = manifest("paper", f"sweeps=[{', '.join(texts[each] for each in sweeps)}]")
    found = judged(some, power(-0.5))
    assert found.verdict == NOT_RUN
    assert "held fixed, of which the claim is too" in found.reason
    assert judged(some, power(0.4, 60_000)).verdict == AT_ANOTHER_SIZE[NOT_REPRODUCED]


def test_what_was_measured_names_medians_and_the_runs_that_never_did(plan):
    found = judged(plan, lambda model: [NEVER, *[200_000 // model["heads"] * 4] * 4])
    assert "8 dimensions a head: 4 heads 200,000 (1 of 5 never), 8 heads 100,000 (1 of 5 never)" in found.measured
    assert "256 dimensions a head and width 256, heads averaged" in found.measured
    assert "width 256: " in found.measured
    never = judged(plan, lambda model: NEVER if model["heads"] < 16 else spread(100_000))
    assert "4 heads never (5 of 5 never)" in never.measured


def test_a_scale_is_said_and_a_study_of_one_number_of_heads_is_not_run(plan):
    smaller = manifest("laptop")
    found = judged(smaller, power(-0.5, 2000), last=4000, every=50)
    assert found.verdict == SCALED
    one = manifest("paper", "sweeps=[{grid: {model.heads: [32]}}]")
    assert judged(one, power(-0.5)).verdict == NOT_RUN
    known, _ = rows(plan, power(-0.5))
    (unseen,) = verdicts(plan, known, evaluations=SCHEMAS["evaluations"].empty_table())
    assert unseen.verdict == NOT_RUN


def test_the_permutation_test_keeps_its_level_and_agrees_with_the_exact_one():
    rng = np.random.default_rng(0)
    values = rng.permutation(8).astype(float)
    tau, lower, _ = trend([values[at : at + 1] for at in range(8)])
    exact = stats.kendalltau(range(8), values, method="exact", alternative="less")
    assert tau == pytest.approx(exact.statistic)
    assert lower == pytest.approx(exact.pvalue, abs=0.01)
    assert trend([np.full(3, math.inf)] * 2)[1:] == (1.0, 1.0)
    high = trend([np.array([1.0, math.inf]), np.array([2.0, math.inf])])
    assert high[0] > 0
