"""A7 and A8, on words longer than in training: each verdict where the rows deserve it."""

import pytest

from results.claims.claim import NOT_REPRODUCED, NOT_RUN, PRECONDITION, REPRODUCED, TOO_FEW
from tests.results.claims.automata.automata_rows import is_steady, judged, renamed
from tests.results.claims.planned_rows import spread


def _longer(sinusoidal=0.4, other=0.1, scratchpad=0.4, steady=0.001, within=0.002, shifted=None, unplaced=None):
    """shifted, unplaced: errors within the training length of models with shifted positions and without any; by default as the others."""

    def rates(settings, definition):
        if definition.get("length", 40) <= 40:
            given = shifted if settings.get("model.shift") else unplaced if settings.get("model.positions") == "none" else None
            return within if given is None else given
        if is_steady(settings):
            return steady
        if settings["task.scratchpad"]:
            return scratchpad
        return sinusoidal if settings["model.positions"] == "sinusoidal" and not settings["model.shift"] else other

    return rates


def test_longer_words(plans):
    study = plans("a7")
    for claim in ("A7", "A7-shift", "A7-recency"):
        assert judged(study, claim, _longer()).verdict == REPRODUCED
        assert judged(study, claim, _longer(within=0.2)).verdict == PRECONDITION
        only = lambda settings: settings["task"]["automaton"] == "none"  # noqa: E731
        assert judged(study, claim, _longer(), only).verdict == NOT_RUN
    for machine in ("C2", "Dyck_4_2"):  # the claim is of both
        alone = lambda settings, machine=machine: settings["task"]["automaton"] == machine  # noqa: E731
        assert judged(study, "A7", _longer(), alone).verdict == NOT_RUN
    seen = judged(study, "A7", _longer()).finding.measured
    assert seen.index("Dyck_lstm: best") < seen.index(" errs "), "every median comes first"
    assert judged(study, "A7", _longer(sinusoidal=0.001)).verdict == NOT_REPRODUCED
    assert judged(study, "A7", _longer(steady=0.1)).verdict == NOT_REPRODUCED
    assert judged(study, "A7", _longer(sinusoidal=0.003)).verdict == NOT_REPRODUCED  # it errs more, and is right all the same
    assert judged(study, "A7", _longer(sinusoidal=0.01)).verdict == TOO_FEW
    assert judged(study, "A7-shift", _longer(other=0.45, sinusoidal=0.2)).verdict == NOT_REPRODUCED
    assert judged(study, "A7-shift", _longer(other=0.4)).verdict == TOO_FEW
    assert judged(study, "A7-shift", _longer(sinusoidal=0.003, other=0.001)).verdict == PRECONDITION  # itself right
    assert judged(study, "A7-shift", _longer(shifted=0.05)).verdict == PRECONDITION
    assert judged(study, "A7-shift", _longer(unplaced=0.015)).verdict == REPRODUCED  # what repeats one token cannot be told
    assert judged(study, "A7-shift", _longer(unplaced=0.05)).verdict == PRECONDITION  # and this is more than that
    assert judged(study, "A7-recency", _longer(scratchpad=0.001)).verdict == NOT_REPRODUCED
    assert judged(study, "A7-recency", _longer(steady=0.01)).verdict == TOO_FEW
    padded = lambda settings: settings["task"]["scratchpad"]  # noqa: E731
    assert judged(study, "A7-recency", _longer(), padded).verdict == REPRODUCED  # a transformer without one is no part of it


@pytest.mark.parametrize("label", ["shifted positions", "no positions"])
def test_an_improvement_is_of_one_automaton(plans, label):
    """Where plain and changed transformers share none there is nothing to compare, and nothing must be said to hold."""

    def kept(settings):
        shift, positions = settings["model"].get("shift"), settings["model"].get("positions")
        kind = "shifted positions" if shift else "no positions" if positions == "none" else "plain"
        return settings["task"]["automaton"] == ("Dyck_4_2" if kind == label else "C2")

    found = judged(plans("a7"), "A7-shift", _longer(), kept)
    assert (found.verdict, label in found.finding.reason) == (NOT_RUN, True), found.finding


def _positions(grid, abab, trained=0.005, best=0.05):
    """grid, abab: errors of the one that the claim calls worse; best: of the other."""

    def rates(settings, definition):
        linear = settings["model.positions"] == "linear"
        if settings["task.automaton"] == "Grid9":
            return (best if linear else grid) if definition else trained
        return abab if linear else best

    return rates


def test_sinusoidal_against_linear_positions(plans):
    assert judged(plans("a8"), "A8", _positions(0.3, 0.2)).verdict == REPRODUCED
    assert judged(plans("a8"), "A8", _positions(0.01, 0.2)).verdict == NOT_REPRODUCED
    assert judged(plans("a8"), "A8", _positions(0.3, 0.05)).verdict == TOO_FEW
    assert judged(plans("a8"), "A8", _positions(0.3, 0.2, best=0.003)).verdict == REPRODUCED
    for right in ((0.003, 0.2), (0.3, 0.003)):  # the one that errs more is right all the same
        assert judged(plans("a8"), "A8", _positions(*right, best=0.001)).verdict == NOT_REPRODUCED
    longer = {"definition": {"length": 120}}
    sets = {name: each | (longer if each["definition"] else {}) for name, each in plans("a8")["sets"].items()}
    assert judged(plans("a8") | {"sets": sets}, "A8", _positions(0.3, 0.2)).verdict == NOT_RUN  # not twice the length
    assert (
        judged(plans("a8"), "A8", _positions(0.3, 0.2, trained=0.05)).verdict == PRECONDITION
    )  # of those not learned nothing is said


@pytest.mark.parametrize(("length", "verdict"), [(10, NOT_RUN), (40, REPRODUCED)])
def test_gridworlds_have_two_letters_too(plans, length, verdict):
    """Training has 600,000 strings; of 10 tokens there are 1,024 words."""
    twice = {
        name: each | {"definition": each["definition"] and {"length": 2 * length}} for name, each in plans("a8")["sets"].items()
    }
    found = judged(renamed(plans("a8"), {}, length=length) | {"sets": twice}, "A8", _positions(0.3, 0.2))
    assert found.verdict == verdict
    assert ("at most 1,024 words of 10 tokens" in found.finding.reason) == (verdict == NOT_RUN)


def test_each_gridworld_is_a_comparison_more(plans):
    """(abab)*, just shown beside one gridworld at 97.5 %, is open beside two, at 98.3 %."""
    study = plans("a8")

    def rates(settings, definition):
        if settings["task.automaton"] != "abab":
            return _positions(0.3, 0.2)(settings | {"task.automaton": "Grid9"}, definition)
        return [*spread(0.3, 19), *spread(0.01, 6)] if settings["model.positions"] == "linear" else spread(0.05, 25)

    assert judged(study, "A8", rates).verdict == REPRODUCED
    more = [
        each for each in renamed(study, {"Grid9": "Grid4"})["conditions"] if each["settings"]["task"]["automaton"] == "Grid4"
    ]
    places = len(study["conditions"])
    two = study | {
        "conditions": [*study["conditions"], *(each | {"name": f"{each['name']}_4"} for each in more)],
        "replicates": [
            *study["replicates"],
            *([f"{key}-4", at + places, *seeds] for key, at, *seeds in study["replicates"] if at < len(more)),
        ],
    }
    assert judged(two, "A8", rates).verdict == TOO_FEW
