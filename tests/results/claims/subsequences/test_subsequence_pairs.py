"""The claims on pairs give each verdict where rows of their studies deserve it, and the fit of times between looks is scipy's."""

from dataclasses import replace
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from scipy import stats

import harness.planning.manifest as manifests
from harness.planning.plan import plan
from harness.study.load import load
from launch.families import find_study
from results.claims import REGISTRY, verdicts
from results.claims.claim import NOT_REPRODUCED_SCALED, NOT_RUN, PRECONDITION, REPRODUCED, SCALED, TOO_FEW
from results.claims.subsequences.capacity import exceeds_times
from results.claims.subsequences.growth import arrays, learned_between
from results.errors import DamagedFile
from results.rows.options import flatten
from results.rows.probe_values import Items
from results.statistics.survival_slope import beyond_onset, fit
from results.store.schema import SCHEMAS
from tests.results.claims.planned_rows import replicates


def planned(name, scale="laptop", overrides=()):
    study = load(find_study("subsequences", name), [f"scale={scale}", *overrides])
    return manifests.build(plan(study, None, 16, numerics={}), {}, {}, None, None) | {"overrides": []}


def judged(manifest, claim, known, rows=None):
    (found,) = verdicts(manifest | {"claims": {claim: manifest["claims"][claim]}}, known, measured=rows)
    return found


@pytest.fixture(scope="module")
def capacity():
    return planned("capacity")


def holding(manifest, held):
    """Replicates whose error is 0 for as many pairs as `held` gives of width, inner width and seed, and 5 % beyond."""

    def rates(settings, definition):
        most = (held(settings["model.width"], settings["model.feed_forward"], seed) for seed in range(10))
        return [0.0 if settings["task.pairs"] <= pairs else 0.05 for pairs in most]

    return replicates(manifest, rates)


@pytest.mark.parametrize(
    ("held", "verdict"),
    [
        (lambda width, inner, seed: {4: 40, 8: 130, 16: 400}[width], SCALED),
        (lambda width, inner, seed: {4: 0, 8: 130, 16: 1100}[width], SCALED),  # the ends of the sweep say enough here
        (lambda width, inner, seed: {4: 40, 8: 130, 16: 400}[width] if seed else 32, SCALED),
        (lambda width, inner, seed: {4: 40, 8: 130, 16: 400}[width] if seed > 3 else 32, TOO_FEW),
        (lambda width, inner, seed: 10 * width, NOT_REPRODUCED_SCALED),  # in proportion
        (
            lambda width, inner, seed: {4: 40, 8: 130, 16: 200}[width],
            NOT_REPRODUCED_SCALED,
        ),  # it stops, and not at the inner width
        (
            lambda width, inner, seed: {4: 40, 8: 130, 16: 200}[width] if inner > 32 else 40,
            PRECONDITION,
        ),  # it stops, perhaps at the inner width
        (lambda width, inner, seed: inner, PRECONDITION),  # which may bind throughout
        (
            lambda width, inner, seed: width * inner // 8,
            NOT_REPRODUCED_SCALED,
        ),  # in proportion to both: no inner width stops it
        (lambda width, inner, seed: {4: 600, 8: 1200, 16: 1200}[width], TOO_FEW),  # beyond the sweep
        (lambda width, inner, seed: 0, TOO_FEW),  # before it
    ],
)
def test_capacity(capacity, held, verdict):
    found = judged(capacity, "S2", holding(capacity, held))
    assert found.verdict == verdict, found.finding


def test_capacity_counts_by_seed(capacity):
    """Seeds differ by more than widths do, and each of them grows in proportion or by more."""
    steep = holding(capacity, lambda width, inner, seed: (32 if seed % 2 else 48) * (width // 4) ** 1.6)
    found = judged(capacity, "S2", steep)
    assert found.verdict == SCALED
    assert "width 4 to 8: 32 to 96 pairs, more than twice in 10 of 10" in found.finding.measured
    even = holding(capacity, lambda width, inner, seed: (32 if seed % 2 else 48) * (width // 4))
    assert judged(capacity, "S2", even).verdict == NOT_REPRODUCED_SCALED
    assert judged(capacity | {"scale": "paper", "reductions": []}, "S2", steep).verdict == REPRODUCED


def test_capacity_waits_for_every_replicate_and_a_diverged_one_holds_nothing(capacity):
    known = holding(capacity, lambda width, inner, seed: {4: 40, 8: 130, 16: 400}[width])
    assert judged(capacity, "S2", [replace(known[0], status="missing", scores={}), *known[1:]]).verdict == TOO_FEW
    sizes = {
        each["name"]: (each["settings"]["model"]["width"], each["settings"]["model"]["feed_forward"])
        for each in capacity["conditions"]
    }
    diverged = [replace(each, status="diverged", scores={}) if sizes[each.condition] == (16, 128) else each for each in known]
    assert judged(capacity, "S2", diverged).verdict == NOT_REPRODUCED_SCALED


def _changed(manifest, option, old, new):
    """The manifest with another value of an option in every condition that has the old one; None: without these conditions."""
    kind, name = option.split(".")
    conditions = []
    for each in manifest["conditions"]:
        settings = each["settings"]
        if settings[kind][name] == old:
            if new is None:
                continue
            settings = settings | {kind: settings[kind] | {name: new}}
        conditions.append(each | {"settings": settings})
    return manifest | {"conditions": conditions, "replicates": []}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ([("model.width", 8, 7), ("model.width", 16, 12)], "at twice that"),
        ([("model.feed_forward", 32, None)], "two inner widths"),
        ([("task.pairs", 128, None)], "128 are not"),
        ([("task.zipf", 0.0, 1.0)], "equally frequent"),
        ([("model.layers", 1, 2), ("task.pairs", 32, None)], ""),
    ],
)
def test_capacity_is_not_run_where_nothing_could_be_told(capacity, changes, why):
    manifest = capacity
    for change in changes:
        manifest = _changed(manifest, *change)
    found = judged(manifest, "S2", [])
    assert found.verdict == (NOT_RUN if why else TOO_FEW)
    assert why in found.finding.reason


def test_capacity_is_of_sizes_alone(capacity):
    conditions = [dict(each) for each in capacity["conditions"]]
    conditions[0]["settings"] = conditions[0]["settings"] | {"train": conditions[0]["settings"]["train"] | {"lr": 0.5}}
    found = judged(capacity | {"conditions": conditions, "replicates": []}, "S2", [])
    assert (found.verdict, "differ in train.lr too" in found.finding.reason) == (NOT_RUN, True)


@pytest.mark.parametrize(
    ("large", "small", "factor", "answer"),
    [
        (64, 32, 2, False),
        (96, 32, 2, True),
        (128, 64, 2, None),  # 128 is the end: 128 or more
        (128, 48, 2, True),
        (64, 0, 2, True),  # 0: below 32
        (48, 0, 2, None),
        (0, 0, 1, None),
        (32, 0, 1, True),
        (128, 128, 1, None),
        (0, 32, 1, False),
    ],
)
def test_what_the_ends_of_a_sweep_leave_open(large, small, factor, answer):
    assert exceeds_times(large, small, factor, [32, 48, 64, 96, 128]) is answer


@pytest.fixture(scope="module")
def tail():
    return planned("long_tail", overrides=["task.pairs=24"])


@cache
def kept():
    study = load(find_study("subsequences", "long_tail"), ["scale=laptop"])
    return sorted(int(step) for step in study.keep.removeprefix("steps(").rstrip(")").split(","))


def grown(manifest, slope, spread=0.1, noise=0.05, pull=lambda frequency, gap: frequency * gap, scale=100.0, onset=0.0):
    """Rows of pairs whose gap falls below 0.1 at a time in proportion to frequency^slope after an onset, and whose gradient is `pull`, with
    noise."""
    known = replicates(manifest, lambda settings, definition: 0.01)
    rng, rows = np.random.default_rng(0), []
    settings = {each["name"]: flatten(each["settings"]) for each in manifest["conditions"]}
    for each in known:
        options = settings[each.condition]
        frequency = np.arange(1, options["task.pairs"] + 1) ** -options["task.zipf"]
        frequency /= frequency.sum()
        own = slope + rng.normal(0, spread)
        time = onset + scale * (frequency / frequency[0]) ** own * np.exp(rng.normal(0, noise, len(frequency)))
        for step in kept():
            gap = 0.95 * np.exp(-np.log(9.5) * step / time)
            gradient = pull(frequency, gap) * np.exp(rng.normal(0, noise, len(gap)))
            for name, values in (("frequency", frequency), ("gap", gap), ("gradient", gradient)):
                rows += [
                    {"key": each.key, "stage": 0, "pack": "p", "step": step, "probe": "associations"}
                    | {"item": f"pair={pair} {name}", "value": float(value)}
                    for pair, value in enumerate(values)
                ]
    return known, pa.Table.from_pylist(rows, SCHEMAS["probes"])


@pytest.mark.parametrize(
    ("options", "verdict"),
    [
        ({"slope": -1.0}, SCALED),
        ({"slope": -1.0, "scale": 300.0, "spread": 0.05}, SCALED),  # a fifth of the pairs is not learned
        ({"slope": 0.3, "scale": 200.0}, NOT_REPRODUCED_SCALED),
        ({"slope": -1.9, "scale": 3.0}, NOT_REPRODUCED_SCALED),
        ({"slope": -0.8}, TOO_FEW),
        ({"slope": -0.6}, NOT_REPRODUCED_SCALED),  # rarer pairs take longer, and not in proportion
        ({"slope": -1.0, "onset": 150.0, "scale": 20.0, "spread": 0.02}, SCALED),  # looks like another exponent, and is none
        (
            {"slope": -1.5, "onset": 150.0, "scale": 6.0, "spread": 0.02},
            NOT_REPRODUCED_SCALED,
        ),  # an onset makes no other exponent right
        ({"slope": -1.5, "onset": 60.0, "scale": 10.0, "spread": 0.02}, NOT_REPRODUCED_SCALED),
        ({"slope": -2.0, "onset": 300.0, "scale": 2.0, "spread": 0.02}, NOT_REPRODUCED_SCALED),
        ({"slope": -2.0, "onset": 100.0, "scale": 2.0, "spread": 0.02}, NOT_REPRODUCED_SCALED),
        ({"slope": -1.0, "scale": 3000.0}, PRECONDITION),  # hardly any is
        ({"slope": -1.0, "scale": 0.1}, PRECONDITION),  # all are before the first look
    ],
)
def test_exponent_of_frequency_in_the_steps(tail, options, verdict):
    known, rows = grown(tail, **options)
    for claim in ("S3", "S3-adam"):
        found = judged(tail, claim, known, rows)
        assert found.verdict == verdict, found.finding


@pytest.mark.parametrize(
    ("pull", "verdict"),
    [
        (lambda frequency, gap: frequency * gap, SCALED),
        (lambda frequency, gap: frequency, NOT_REPRODUCED_SCALED),  # the gap adds nothing
        (lambda frequency, gap: frequency**0 + 1e-3 * frequency, NOT_REPRODUCED_SCALED),
        (lambda frequency, gap: 1 / (frequency * gap), NOT_REPRODUCED_SCALED),
        (lambda frequency, gap: frequency * 0, NOT_REPRODUCED_SCALED),
    ],
)
def test_order_of_gradients(tail, pull, verdict):
    found = judged(tail, "S4", *grown(tail, -1.0, pull=pull))
    assert found.verdict == verdict, found.finding


def test_claims_of_growth_want_their_rows(tail):
    known, rows = grown(tail, -1.0)
    for claim, at in (("S3", "sgd"), ("S3-adam", "adamw"), ("S4", "adamw")):
        one = next(each for each in known if each.condition == at)
        assert judged(tail, claim, known).verdict == NOT_RUN
        assert judged(tail, claim, known, rows.filter(pc.not_equal(rows["key"], one.key))).verdict == TOO_FEW
        assert judged(tail, claim, known, rows.filter(pc.less(rows["step"], 8))).verdict == NOT_RUN
        assert judged(tail | {"conditions": [], "replicates": []}, claim, [], rows).verdict == NOT_RUN
        missing = [replace(each, status="missing", scores={}) if each is one else each for each in known]
        assert judged(tail, claim, missing, rows).verdict == TOO_FEW


def test_the_fit_is_scipys_where_the_slope_is_nought():
    """Every interval at x = 1 and at x = -1: the slope is 0, and a and σ are those of scipy's censored normal."""
    rng = np.random.default_rng(1)
    times = np.exp(rng.normal(3, 0.8, 200))
    edges = np.array([0.0, 8, 16, 32, 40])
    at = np.searchsorted(edges, times)
    low, high = edges[at - 1], np.append(edges, np.inf)[at]
    twice = lambda each: np.concatenate([each, each])  # noqa: E731
    a, b, spread = fit(np.repeat([1.0, -1.0], 200), twice(low), twice(high))
    with np.errstate(divide="ignore"):
        ends = np.log(np.stack([low, high], axis=-1))
    middle, sigma = stats.norm.fit(
        stats.CensoredData(
            interval=ends[np.isfinite(ends).all(1)], left=ends[np.isinf(ends[:, 0]), 1], right=ends[np.isinf(ends[:, 1]), 0]
        )
    )
    assert b == pytest.approx(0, abs=1e-3)
    assert (a, spread) == (pytest.approx(middle, abs=1e-3), pytest.approx(sigma, abs=1e-3))


@pytest.mark.parametrize("last", [10_000.0, 400.0])
def test_the_fit_finds_a_slope_though_half_of_the_times_have_not_come(last):
    rng = np.random.default_rng(2)
    x = -np.log(np.arange(1, 401))
    times = 10 * np.exp(-x) * np.exp(rng.normal(0, 0.3, 400))
    edges = np.append([0.0], 8 * 2 ** np.arange(0, np.log2(last / 8), 0.5))
    at = np.searchsorted(edges, times)
    low, high = edges[np.minimum(at, len(edges)) - 1], np.append(edges, np.inf)[at]
    assert np.isinf(high).any() == (last < 1000)
    a, b, spread = fit(x, low, high)
    assert (a, b, spread) == (pytest.approx(np.log(10), abs=0.3), pytest.approx(-1, abs=0.06), pytest.approx(0.3, abs=0.06))
    with pytest.raises(ValueError, match="2 times have come"):
        fit(x[:3], low[:3], np.array([1.0, 2.0, np.inf]))


@pytest.mark.parametrize(("began", "exponent"), [(0.0, -0.6), (200.0, -1.0), (200.0, -2.0)])
def test_an_onset_and_an_exponent_are_told_apart(began, exponent):
    rng = np.random.default_rng(3)
    x = -np.log(np.arange(1, 257)) / 2
    times = began + 40 * np.exp(exponent * x) * np.exp(rng.normal(0, 0.02, len(x)))
    edges = np.append([0.0], 8 * 2 ** np.arange(0, 12, 0.1))
    at = np.searchsorted(edges, times)
    low, high = edges[at - 1], edges[at]
    assert beyond_onset(x, low, high) == (pytest.approx(began, abs=12), pytest.approx(exponent, abs=0.1))


def test_a_pair_is_learned_between_two_looks():
    gaps = {0: [0.9, 0.9, 0.05, 0.9], 10: [0.05, 0.9, 0.9, 0.5], 40: [0.2, 0.09, 0.0, 0.3]}
    low, high = learned_between({step: {"gap": np.array(each)} for step, each in gaps.items()})
    assert low.tolist() == [0, 10, 0, 40]
    assert high.tolist() == [10, 40, 0, np.inf]


@pytest.mark.parametrize("scale", ["paper", "laptop"])
@pytest.mark.parametrize("name", ["S2", "S3", "S3-adam", "S4"])
def test_every_claim_on_pairs_has_a_study_that_decides_it(name, scale):
    claim = REGISTRY[name]
    manifest = planned(claim.study.removeprefix("subsequences/"), scale)
    assert all(each["replicates"] >= claim.needs for each in manifest["conditions"])
    assert judged(manifest, name, []).verdict == TOO_FEW  # all conditions and sets are there, no replicate yet


def test_pairs_that_lack_a_row_are_refused():
    whole = Items({f"pair={pair} {name}": 1.0 for pair in range(3) for name in ("frequency", "gap", "gradient")})
    assert {len(values) for values in arrays(whole).values()} == {3}
    for gone in whole:
        with pytest.raises(DamagedFile, match=gone):
            arrays(Items({item: value for item, value in whole.items() if item != gone}))
    with pytest.raises(DamagedFile, match="pair=0 frequency"):
        arrays(Items())
