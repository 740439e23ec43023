"""A6, on words with few or many ones: each verdict where the rows deserve it."""

import pytest

from results.claims.claim import NOT_REPRODUCED, NOT_RUN, PRECONDITION, REPRODUCED, TOO_FEW
from tests.results.claims.automata.automata_rows import flat, is_steady, judged, renamed
from tests.results.claims.planned_rows import planned


def _parity(rare=0.4, often=0.2, steady=0.001, trained=0.001):
    def rates(settings, definition):
        if is_steady(settings):
            return steady
        p = definition.get("p_one", 0.5)
        return trained if p == 0.5 else rare if p < 0.5 else often

    return rates


def test_parity_out_of_distribution(plans):
    study = plans("a6")
    assert judged(study, "A6", _parity()).verdict == REPRODUCED
    assert judged(study, "A6", _parity(rare=0.0005, often=0.0005)).verdict == NOT_REPRODUCED
    assert judged(study, "A6", _parity(steady=0.05), gate=0.0).verdict == NOT_REPRODUCED
    assert judged(study, "A6", _parity(trained=0.1)).verdict == PRECONDITION
    for lost in ({"rare": 0.002, "often": 0.002}, {"rare": 0.002}, {"often": 0.002}):  # it errs more, and is right all the same
        assert judged(study, "A6", _parity(**lost)).verdict == NOT_REPRODUCED
    assert judged(study, "A6", _parity(rare=0.01)).verdict == TOO_FEW
    frequent = {name: each for name, each in study["sets"].items() if each["definition"].get("p_one", 0.5) >= 0.5}
    assert judged(study | {"sets": frequent}, "A6", _parity()).verdict == NOT_RUN  # words of rarer ones are part of the claim


def _counts(few=0.4, many=0.2, trained=0.001):
    """Errors on words of 40 tokens by the number of ones; where ones have another probability, the other way round."""

    def rates(settings, definition):
        if "ones" in definition:
            ones = definition["ones"]
            return few if ones < 20 else many if ones > 20 else trained
        p = definition.get("p_one", 0.5)
        return trained if p == 0.5 else many if p < 0.5 else few

    return rates


def test_parity_with_few_ones(plans):
    """The thesis says so of words by their number of ones (figure 3.20, right), and not by the probability of a one."""
    study = plans("a6")
    assert judged(study, "A6-low", _counts()).verdict == REPRODUCED
    assert judged(study, "A6-low", _counts(few=0.1)).verdict == NOT_REPRODUCED
    assert judged(study, "A6-low", _counts(many=0.4)).verdict == TOO_FEW
    assert judged(study, "A6-low", _counts(few=0.003, many=0.001)).verdict == NOT_REPRODUCED  # no side lost
    assert judged(study, "A6-low", _counts(trained=0.1)).verdict == PRECONDITION
    few = {name: each for name, each in study["sets"].items() if each["definition"].get("ones", 0) < 20}
    found = judged(study | {"sets": few}, "A6-low", _counts())
    assert (found.verdict, found.finding.reason) == (NOT_RUN, "no two sets have n and 40 - n ones")


@pytest.mark.parametrize("name", ["a6", "a7"])
def test_nothing_is_said_of_words_elsewhere_where_training_has_covered_all(name):
    """At T = 10 parity has 1,024 words and training 384,000 strings; at T = 20 a million words."""
    whole = planned("length_generalization", name, "laptop")
    for length, covered in ((10, True), (20, False)):
        manifest = renamed(whole, {}, length=length)
        for claim in manifest["claims"]:
            found = judged(manifest, claim, flat(0.002))
            assert (found.verdict == NOT_RUN) == covered, found.finding
            assert ("1,024 words of 10 tokens" in found.finding.reason) == covered
