"""BT1 to BT5 give each verdict where the rows of the study that decides them deserve it."""

import pytest

from results.claims import verdicts
from results.claims.claim import NOT_REPRODUCED, NOT_RUN, PRECONDITION, REPRODUCED, TOO_FEW
from tests.results.claims.planned_rows import planned, replicates

N = 48
HEADLINE = "Q=4 B=4"


@pytest.fixture(scope="module")
def manifest():
    return planned("generation", "trained_generators")


def items(
    quota=0.1, stride=0.1, once=0.2, nucleus=0.6, everything=0.3, flagged=0.3, random=0.8, sampled=1.3, diverse=0.95,
    distinct=6.0, wrong=0.04, accuracy=0.9, alone=0.3,
):  # fmt: skip
    """The probe's values of a generator as the thesis has them, or otherwise where an argument says so."""
    found = {"error plain right": alone, "error once B=1 right": 0.3, "error once B=8 right": 0.3 + once}
    found |= {"diverse top=1 plain distinct": distinct}
    for top, ratio in (("0.9", nucleus), ("1", everything)):
        found[f"fresh top={top} plain wrong"] = wrong
        for verifier in range(2):
            where = f"verifier={verifier}"
            spread = 1 + 0.2 * (verifier - 0.5)
            found[f"fresh top={top} thesis {HEADLINE} {where} wrong"] = wrong * ratio * spread
            found[f"fresh top={top} sampled {HEADLINE} {where} wrong"] = wrong * ratio * sampled * spread
            found[f"fresh top={top} thesis {HEADLINE} {where} flagged_nucleus_right"] = flagged
            found[f"fresh top={top} thesis {HEADLINE} random={verifier} flagged_nucleus_right"] = random
            found[f"diverse top=1 thesis {HEADLINE} {where} distinct"] = max(1.0, distinct * diverse)
            found[f"{where} accuracy"] = accuracy
    for place, q in enumerate((1, 2, 4)):
        for other, b in enumerate((2, 4, 6)):
            for verifier in range(2):
                where = f"error thesis Q={q} B={b} verifier={verifier}"
                found[f"{where} right"] = 0.4 + quota * place + stride * other
                found[f"{where} flagged_nucleus_right"] = found[f"{where} flagged_greedy_right"] = flagged
    return found


def judged(manifest, claim, values, errors=0.0, missing=0):
    return found(manifest, claim, values, errors, missing).verdict


def found(manifest, claim, values, errors=0.0, missing=0):
    """values(number of the generator) → its values by item, None where it was not probed."""
    known = replicates(manifest, lambda settings, changed: errors)
    assert len(known) == N
    probes = {}
    for number, each in enumerate(known[: N - missing]):
        own = values(number)
        if own is not None:
            probes[each.key] = {("backtracking", None, None, item): value for item, value in own.items()}
    stated = manifest | {"claims": {claim: manifest["claims"][claim]}, "overrides": [], "reductions": []}
    (verdict,) = verdicts(stated, known[: N - missing] if missing else known, probes=probes)
    return verdict.finding


def of(**changed):
    return lambda number: items(**changed)


def some(count, **changed):
    """The first `count` generators have these values."""
    return lambda number: items(**changed) if number < count else items()


@pytest.mark.parametrize("claim", ["BT1", "BT2", "BT2-all", "BT3", "BT4", "BT5"])
def test_rows_like_the_thesis(manifest, claim):
    assert judged(manifest, claim, of()) == REPRODUCED


@pytest.mark.parametrize(
    ("claim", "changed"),
    [
        ("BT1", {"quota": -0.1}),
        ("BT1", {"stride": -0.05}),
        ("BT1", {"once": -0.1}),
        ("BT1", {"alone": 0.95}),  # no verifier is better
        ("BT2", {"nucleus": 1.0}),  # errors stay
        ("BT2", {"nucleus": 1.5}),
        ("BT2-all", {"everything": 1.5}),
        ("BT3", {"flagged": 0.7}),  # most of them would have ended well
        ("BT3", {"flagged": 0.3, "random": 0.1}),  # chance refuses as well
        ("BT4", {"sampled": 0.8}),
        ("BT5", {"diverse": 0.7}),
    ],
)
def test_the_opposite(manifest, claim, changed):
    assert judged(manifest, claim, of(**changed)) == NOT_REPRODUCED


@pytest.mark.parametrize(
    ("claim", "changed"),
    [
        ("BT1", {"quota": -0.1}),
        ("BT2", {"nucleus": 1.5}),
        ("BT2-all", {"everything": 1.5}),
        ("BT3", {"flagged": 0.7}),
        ("BT4", {"sampled": 0.8}),
        ("BT5", {"diverse": 0.7}),
    ],
)
def test_generators_that_differ_decide_nothing(manifest, claim, changed):
    assert judged(manifest, claim, some(N // 2, **changed)) == TOO_FEW


@pytest.mark.parametrize(
    ("values", "errors", "verdict"),
    [
        (of(), 0.02, PRECONDITION),  # it has not learned its own strings
        (of(wrong=0.001), 0.0, PRECONDITION),  # nothing to lower
        (of(accuracy=0.6), 0.0, PRECONDITION),  # the verifiers judge no better than a coin, nearly
        (lambda number: None, 0.0, NOT_RUN),
        (lambda number: items() if number else None, 0.0, TOO_FEW),
    ],
)
@pytest.mark.parametrize("claim", ["BT1", "BT2", "BT2-all", "BT3", "BT4", "BT5"])
def test_gates(manifest, claim, values, errors, verdict):
    assert judged(manifest, claim, values, errors) == verdict


def test_a_generator_whose_verifiers_refuse_nothing_has_nothing_to_be_predicted(manifest):
    def unflagged(number):
        return {item: value for item, value in items().items() if "flagged" not in item}

    assert judged(manifest, "BT3", unflagged) == PRECONDITION
    assert judged(manifest, "BT2", unflagged) == REPRODUCED


@pytest.mark.parametrize(("distinct", "verdict"), [(1.0, PRECONDITION), (1.9, PRECONDITION), (2.1, REPRODUCED)])
def test_a_generator_with_one_completion_of_a_prompt_has_no_diversity_to_keep(manifest, distinct, verdict):
    assert judged(manifest, "BT5", of(distinct=distinct)) == verdict


@pytest.mark.parametrize("ratio", [0.433, 0.8])
def test_errors_that_fall_by_as_much_as_in_the_thesis_or_by_less_still_fall(manifest, ratio):
    def around(number):
        return items(nucleus=ratio + 0.02 * (number % 2 - 0.5), everything=ratio + 0.02 * (number % 2 - 0.5))

    assert judged(manifest, "BT2", around) == REPRODUCED
    assert judged(manifest, "BT2-all", around) == REPRODUCED


def test_what_was_measured_is_told_as_it_is(manifest):
    told = found(manifest, "BT2", of()).measured
    assert "a verifier multiplies them by a median of 0.600" in told
    assert told.endswith("in the thesis by 0.748 ± 0.017 (standard error)")
    assert found(manifest, "BT2-all", of()).measured.endswith("in the thesis by 0.433 ± 0.010 (standard error)")
    assert "48 of 48 [90.0%, 100.0%]" in found(manifest, "BT1", of()).measured  # four comparisons, at 98.75 %
    assert "2.400% → 3.120%, 1.30×" in found(manifest, "BT4", of()).measured
    assert "0.000% → 0.000%, 1.00×" in found(manifest, "BT4", of(nucleus=0.0)).measured  # no error is left, either way


def test_the_study_has_what_the_claims_ask_for(manifest):
    (condition,) = manifest["conditions"]
    assert condition["settings"]["task"]["name"] == "bracket_strings"
    assert condition["replicates"] == N
    assert set(manifest["claims"]) == {"BT1", "BT2", "BT2-all", "BT3", "BT4", "BT5"}
