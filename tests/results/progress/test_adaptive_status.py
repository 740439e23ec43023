"""The lines about an adaptive study, from replicates that are written out here."""

import math

import pytest

from results.progress.adaptive_status import lines
from results.rows.summary import Replicate, Score


def _replicates(condition: str, rates: list[float | None]) -> list[Replicate]:
    """One replicate of each seed; infinity: diverged, None: not ended."""
    return [
        Replicate(
            condition,
            0,
            f"{condition}{seed}",
            seed,
            seed,
            "missing" if rate is None else "diverged" if math.isinf(rate) else "finished",
            None,
            None,
            {} if rate is None or math.isinf(rate) else {"sparse": Score(1, 10, 10, rate, 0.0, 1.0)},
        )
        for seed, rate in enumerate(rates)
    ]


def _lines(replicates: list[Replicate], **rule: float | str) -> list[str]:
    names = dict.fromkeys(replicate.condition for replicate in replicates)
    conditions = [{"name": name, "replicates": 10} for name in names]
    stated = {"minimum": 10, "maximum": 11, "step": 1, "set": "sparse", "baseline": None, "budget": None} | rule
    return lines({"adaptive": stated, "conditions": conditions}, replicates)[1:]


def test_an_interval_that_is_just_too_wide_does_not_read_as_the_limit() -> None:
    """The interval of 10 of 10 is ±0.15425 wide."""
    clean = [0.0] * 10
    assert _lines(_replicates("a", clean), limit=0.154, minimum=9, maximum=10) == [
        "a: 2 looks, stopped at 10, the maximum, with the interval still at ±0.1542"
    ]
    assert _lines(_replicates("a", clean), limit=0.155) == ["a: 1 look, stopped at 10: the interval was narrow enough (±0.154)"]


def test_one_seed_is_one_and_a_ratio_without_a_bound_has_no_number() -> None:
    assert _lines(_replicates("a", [*[0.0] * 9, None]), limit=0.154) == [
        "a: 0 looks, goes on to 10, 1 seed to end before the next look"
    ]
    half = [0.1] * 5 + [math.inf] * 6
    told = _lines(_replicates("base", [0.1] * 11) + _replicates("a", half), limit=2.0, baseline="base")
    assert told[1] == "a: 2 looks, stopped at 11, the maximum, with the interval still at upper/lower ∞"


@pytest.mark.parametrize("adaptive", [None, {}])
def test_a_fixed_number_of_replicates_needs_no_line(adaptive: dict | None) -> None:
    assert lines({"adaptive": adaptive, "conditions": []}, []) == []
