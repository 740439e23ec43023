"""What a study states of a claim, and what its command line changes: wrong terms are refused in a sentence."""

import re

import pytest

from results.claims import REGISTRY, reductions, terms_of
from results.claims.claim import NOT_REPRODUCED, TOO_FEW, Part, decide_all
from results.claims.compare import above


@pytest.mark.parametrize(
    ("override", "changes"),
    [
        ("task.length=16", True),
        ("task={length: 16}", True),
        ("train={steps: 5}", True),
        ("model={name: lstm}", True),
        ("evaluate={sets: {dense: {sequences: 20}}}", True),
        ("conditions={a: {}}", True),
        ("grid={train.lr: [1]}", True),
        ("only=[a]", True),
        ("experiment.samples=10", True),
        ("sweeps=[]", True),
        ("stages=[]", True),
        ("reductions=[]", True),  # what the file lists as smaller is smaller still
        ("claims.R2.gate=null", True),
        ("claims.R2.value=0.1", True),
        ("claims={R2: {value: 0.1}}", True),
        ("claims.R2=null", False),  # a claim less changes none of the others
        ("store=elsewhere", False),
        ("replicates=50", False),
        ("trainer=x", False),
    ],
)
def test_what_the_command_line_changed_is_known_however_it_is_written(override: str, changes: bool) -> None:
    assert reductions({"scale": "paper", "reductions": [], "overrides": [override]}) == ([override] if changes else [])


@pytest.mark.parametrize(
    ("node", "sentence"),
    [
        (1.0, "must be a mapping"),
        ({"of": 3}, "must be a mapping with the paper's value"),
        ({"value": "all"}, r"R4\.value = 'all' must be a number"),
        ({"value": 2.0, "of": 25}, "must be a share"),
        ({"value": 0.2, "of": 0}, "of = 0 must be a whole number"),
        ({"value": 0.2, "gate": 2}, "gate = 2 must be a share"),
    ],
)
def test_wrong_terms_are_one_sentence(node: object, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence) as raised:
        terms_of(REGISTRY["R4"], node)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", ["A3", "L4", "PD-track"])
def test_a_factor_that_is_divided_by_is_at_least_1(name: str) -> None:
    for value in (0, 0.5):
        with pytest.raises(
            ValueError, match=rf"claims\.{name}\.value = {value} must be a factor of at least 1: it is the .*factor"
        ):
            terms_of(REGISTRY[name], {"value": value})
    assert terms_of(REGISTRY[name], {"value": 1}).value == 1


def test_nothing_that_was_compared_shows_nothing() -> None:
    assert above([], 0.5) == (False, False)
    assert decide_all([], "", "").verdict == TOO_FEW


def test_what_decides_a_claim_is_told_first() -> None:
    parts = [
        Part(True, False, "held"),
        Part(False, False, "open"),
        Part(False, True, "refuting"),
        Part(True, False, "held too"),
    ]
    found = decide_all(parts, "", "")
    assert (found.verdict, found.measured) == (NOT_REPRODUCED, "refuting; open; held; held too")


@pytest.mark.parametrize(("name", "value"), [("A4", 99), ("R1", 50), ("A1-seeds", 10), ("DY7", 1.5), ("PD-P13", -2.3)])
def test_a_share_in_percent_is_refused(name, value):
    """Such a claim would be refuted by any rows."""
    with pytest.raises(ValueError, match=rf"claims\.{name}\.value = {value} must be at most 1, and not in percent: it is the "):
        terms_of(REGISTRY[name], {"value": value})
    assert terms_of(REGISTRY[name], {"value": value / 100}).value == value / 100


def test_what_is_called_a_share_an_accuracy_or_a_correlation_is_checked_as_one():
    called = {
        name for name, claim in REGISTRY.items() if re.match("share|accuracy|correlation|gain|fall|part ", claim.quantity)
    }
    assert len(called) > 40
    assert all(REGISTRY[name].of_share for name in called)


def test_a_verdict_tells_the_number_of_replicates_that_was_typed():
    manifest = {"scale": "half", "reductions": ["replicates: 100 -> 25"], "overrides": ["replicates=100"]}
    assert reductions(manifest) == ["scale: half"]
