"""VGB1, VGB2 and VGB2-target on rows of every verdict and of their opposites; the studies that are named have what they ask for."""

import numpy as np
import pyarrow as pa
import pytest

from harness.study.load import load
from launch.families import find_study
from results.claims.claim import (
    NOT_REPRODUCED,
    NOT_RUN,
    PRECONDITION,
    REPRODUCED,
    TOO_FEW,
    Settled,
    Terms,
)
from results.claims.evidence import Condition, Evidence
from results.claims.generation import CLAIMS
from results.rows.summary import Replicate

LENGTHS = (4, 8, 16)
SEEDS = 24


def condition(sampler, horizon, **settings):
    name = f"{sampler} {horizon}"
    every = {
        "name": "verified_sampling",
        "sampler": sampler,
        "horizon": horizon,
        "noise": 1.0,
        "leaf_noise": 0.0,
        "process": "tree",
    }
    flat = {f"experiment.{option}": value for option, value in (every | settings).items()}
    replicates = tuple(Replicate(name, 0, f"{name}-{seed}", seed, seed, "finished", None, None, {}) for seed in range(SEEDS))
    return Condition(name, flat, replicates)


def judged(claim, found, value, needs=20):
    """found: pairs of a condition and {metric: values}; the verdict, with rows in the order of the replicates."""
    rows = [
        {"key": each.key, "metric": metric, "value": float(number), "step": 0}
        for own, metrics in found
        for metric, values in metrics.items()
        for each, number in zip(own.replicates, values, strict=False)
    ]
    evaluations = pa.Table.from_pylist(
        rows, pa.schema([("key", "string"), ("metric", "string"), ("value", "float64"), ("step", "int64")])
    )
    evidence = Evidence(tuple(own for own, _ in found), {}, {}, evaluations=evaluations)
    try:
        return CLAIMS[claim].judge(evidence, Terms(value), needs).verdict
    except Settled as settled:
        return settled.finding.verdict


def spread(middle, number=SEEDS, width=0.3):
    """Values about `middle`, some of each seed."""
    return middle * np.exp(width * (np.arange(number) / (number - 1) - 0.5))


def growing(guided, walk, unfinished=0.0, lengths=LENGTHS, **settings):
    found = []
    for h in lengths:
        found.append((condition("guided", h, **settings), {"divergence": spread(guided(h))}))
        found.append(
            (
                condition("vgb_first_leaf", h, **settings),
                {
                    "divergence": spread(walk(h))[::-1],
                    "unfinished": np.full(SEEDS, unfinished),
                },
            )
        )
    return found


class TestVGB1:
    def test_errors_that_add_up_and_a_walk_that_keeps_them_down(self):
        assert judged("VGB1", growing(lambda h: 0.1 * h, lambda h: 0.1), 2.0) == REPRODUCED

    @pytest.mark.parametrize(
        ("guided", "walk"),
        [
            (lambda h: 0.4, lambda h: 0.1 / h),  # guided does not grow
            (lambda h: 0.1 * h, lambda h: 0.2 * h),  # the walk is worse
            (lambda h: 0.1 * h, lambda h: 0.002 * h * h),  # the walk catches up, though it is never worse
        ],
        ids=["no growth", "worse", "catches up"],
    )
    def test_each_part_of_the_sentence_can_fail(self, guided, walk):
        assert judged("VGB1", growing(guided, walk), 2.0) == NOT_REPRODUCED

    def test_samplers_that_are_alike_prove_nothing(self):
        assert judged("VGB1", growing(lambda h: 0.1 * h, lambda h: 0.1 * h), 2.0) == TOO_FEW

    def test_without_an_error_there_is_nothing_that_could_grow(self):
        assert judged("VGB1", growing(lambda h: 1e-13 * h, lambda h: 1e-13), 2.0) == PRECONDITION

    def test_a_walk_without_an_error_is_infinitely_better(self):
        found = growing(lambda h: 0.1 * h, lambda h: 0.1)
        own, metrics = found[-1]
        found[-1] = own, metrics | {"divergence": np.where(np.arange(SEEDS) == 3, 0.0, metrics["divergence"])}
        assert judged("VGB1", found, 2.0) == REPRODUCED

    def test_walks_that_were_given_up_do_not_count(self):
        assert judged("VGB1", growing(lambda h: 0.1 * h, lambda h: 0.1, unfinished=0.1), 2.0) == PRECONDITION

    def test_fewer_seeds_than_it_needs(self):
        found = growing(lambda h: 0.1 * h, lambda h: 0.1)
        assert judged("VGB1", [(own, {m: v[:19] for m, v in metrics.items()}) for own, metrics in found], 2.0) == TOO_FEW

    def test_a_ratio_is_of_one_seed_where_others_have_no_value(self):
        """The walk errs as much as guided sampling on each seed, which spans five orders of magnitude; one seed less of each, and two
        samplers would be paired by their places: with another seed's divergence, the ratios would be of two seeds."""
        found = growing(lambda h: 0.1 * h, lambda h: 0.1)
        for gone in ((0,), (0, 1), (0, 0)):  # of guided sampling and of the walk at the largest length
            cut = list(found)
            for place, which in zip((-2, -1), gone, strict=False):
                own, metrics = cut[place]
                left = Condition(own.name, own.settings, own.replicates[:which] + own.replicates[which + 1 :])
                cut[place] = left, {name: np.delete(values, which) for name, values in metrics.items()}
            assert judged("VGB1", cut, 2.0) == REPRODUCED

    def test_seeds_that_only_one_sampler_has_do_not_count(self):
        found = growing(lambda h: 0.1 * h, lambda h: 0.1)
        for place, kept in ((-2, slice(0, 20)), (-1, slice(4, 24))):
            own, metrics = found[place]
            left = Condition(own.name, own.settings, own.replicates[kept])
            found[place] = left, {name: values[kept] for name, values in metrics.items()}
        assert judged("VGB1", found, 2.0) == TOO_FEW  # 20 of each, and 16 in common

    @pytest.mark.parametrize(
        ("lengths", "settings"),
        [((4, 8), {}), (LENGTHS, {"leaf_noise": 0.5}), (LENGTHS, {"noise": 0.0}), (LENGTHS, {"name": "another"})],
        ids=["short span", "wrong rewards", "exact value", "another experiment"],
    )
    def test_rows_that_the_sentence_is_not_about(self, lengths, settings):
        assert judged("VGB1", growing(lambda h: 0.1 * h, lambda h: 0.1, lengths=lengths, **settings), 2.0) == NOT_RUN


def walking(mass, excess=0.0, guided=0.2, expected=None, lengths=LENGTHS, **settings):
    """Walks that are at leaves for `mass(h)` of the time, and are farther than chance from the target by `excess`."""
    found = []
    for h in lengths:
        floor = spread(0.1)
        found.append((condition("guided", h, **settings), {"distance": floor + spread(guided), "distance_of_target": floor}))
        walk = spread(mass(h), width=0.02)
        found.append(
            (
                condition("vgb_uniform_time", h, **settings),
                {
                    "leaf_mass": walk,
                    "expected_leaf_mass": walk if expected is None else spread(expected(h)),
                    "distance": floor + excess + spread(0.001),
                    "distance_of_target": floor,
                    "unfinished": np.zeros(SEEDS),
                },
            )
        )
    return found


class TestVGB2:
    def test_a_mass_that_falls_as_one_over_the_length(self):
        assert judged("VGB2", walking(lambda h: 0.4 / h), 0.1) == REPRODUCED

    def test_a_mass_that_falls_faster(self):
        assert judged("VGB2", walking(lambda h: 1 / h**2), 0.1) == NOT_REPRODUCED

    def test_a_mass_that_falls_faster_and_is_still_above_the_bound(self):
        """1 / H² is above 0.1 / H on strings of fewer than 10 tokens."""
        assert judged("VGB2", walking(lambda h: 1 / h**2, lengths=(2, 4, 8)), 0.1) == NOT_REPRODUCED
        assert judged("VGB2", walking(lambda h: h**-1.4, lengths=(2, 4, 8)), 0.1) == NOT_REPRODUCED
        assert judged("VGB2", walking(lambda h: 0.4 / h, lengths=(2, 4, 8)), 0.1) == REPRODUCED

    def test_of_two_walks_of_one_length_none_is_chosen(self):
        both = [*walking(lambda h: 0.01 / h, noise=0.5), *walking(lambda h: 0.4 / h)]
        assert judged("VGB2", both, 0.1) == NOT_RUN

    def test_walks_that_have_not_mixed_say_nothing(self):
        assert judged("VGB2", walking(lambda h: 0.4 / h, expected=lambda h: 0.5 / h), 0.1) == PRECONDITION

    def test_a_bound_within_the_spread_is_undecided(self):
        assert judged("VGB2", walking(lambda h: 0.1 / h), 0.1) == TOO_FEW

    def test_an_exact_value_is_no_test_of_it(self):
        assert judged("VGB2", walking(lambda h: 0.4 / h, noise=0.0), 0.1) == NOT_RUN


class TestVGB2Target:
    def test_leaves_that_are_drawn_as_the_target_is(self):
        assert judged("VGB2-target", walking(lambda h: 0.4 / h), 0.02) == REPRODUCED

    def test_leaves_that_are_not(self):
        assert judged("VGB2-target", walking(lambda h: 0.4 / h, excess=0.1), 0.02) == NOT_REPRODUCED

    def test_of_two_walks_of_one_length_none_is_chosen(self):
        both = [*walking(lambda h: 0.4 / h, excess=0.3, steps=10), *walking(lambda h: 0.4 / h, steps=20)]
        assert judged("VGB2-target", both, 0.02) == NOT_RUN

    def test_a_value_that_is_hardly_wrong_cannot_tell(self):
        assert judged("VGB2-target", walking(lambda h: 0.4 / h, guided=0.01), 0.02) == PRECONDITION

    def test_rewards_that_are_wrong_at_leaves_are_another_sentence(self):
        assert judged("VGB2-target", walking(lambda h: 0.4 / h, leaf_noise=0.5), 0.02) == NOT_RUN

    def test_an_excess_about_the_margin_is_undecided(self):
        assert judged("VGB2-target", walking(lambda h: 0.4 / h, excess=np.linspace(0, 0.04, SEEDS)), 0.02) == TOO_FEW


@pytest.mark.parametrize(("name", "claims"), [("error_growth", ["VGB1"]), ("long_run", ["VGB2", "VGB2-target"])])
def test_the_studies_have_the_conditions_that_their_claims_ask_for(name, claims):
    """With made-up rows of every condition that is planned, each claim comes to its test."""
    study = load(find_study("generation", name))
    assert list(study.claims) == claims
    found = []
    for each in study.conditions:
        settings = {f"experiment.{option}": value for option, value in each.experiment.all_settings.items()}
        own = condition(settings["experiment.sampler"], settings["experiment.horizon"])
        own = Condition(each.name, settings | {"experiment.name": each.experiment.name}, own.replicates)
        h = settings["experiment.horizon"]
        found.append(
            (
                own,
                {
                    "divergence": spread(0.1 * h if settings["experiment.sampler"] == "guided" else 0.05),
                    "leaf_mass": spread(0.4 / h, width=0.02),
                    "expected_leaf_mass": spread(0.4 / h, width=0.02),
                    "distance": spread(0.5 if settings["experiment.sampler"] == "guided" else 0.1),
                    "distance_of_target": spread(0.1),
                    "unfinished": np.zeros(SEEDS),
                },
            )
        )
    for claim in claims:
        assert len(study.conditions[0].seeds) >= CLAIMS[claim].needs
        assert judged(claim, found, study.claims[claim]["value"]) == REPRODUCED
