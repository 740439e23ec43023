"""A4 and A5, on labels that show a part of the state or are hidden: each verdict where the rows deserve it."""

from results.claims.claim import NOT_REPRODUCED, NOT_RUN, PRECONDITION, REPRODUCED, TOO_FEW
from tests.results.claims.automata.automata_rows import flat, judged, renamed
from tests.results.claims.planned_rows import planned, spread


def _parts(settings, _definition):
    return 0.3 if settings.get("model.positions") == "linear" else 0.005


def test_indirect_supervision(plans):
    assert judged(plans("a4"), "A4", _parts).verdict == REPRODUCED
    found = judged(plans("a4"), "A4", flat(0.2))
    assert found.verdict == NOT_REPRODUCED
    assert "thesis: best 0.996" in found.finding.measured
    few = planned("length_generalization", "a4", overrides=["replicates=10"])
    assert judged(few, "A4", _parts).verdict == REPRODUCED
    assert judged(few, "A4", flat(0.2)).verdict == TOO_FEW  # the best of 10, where the thesis has the best of 25
    for model in ("lstm", "transformer"):  # the claim is of both
        without = lambda settings, model=model: settings["model"]["name"] != model  # noqa: E731
        assert judged(plans("a4"), "A4", _parts, without).verdict == NOT_RUN
    assert judged(plans("a4"), "A4-positions", _parts).verdict == REPRODUCED
    assert judged(plans("a4"), "A4-positions", flat(0.2)).verdict == PRECONDITION  # sinusoidal ones have not learned it
    swapped = lambda settings, definition: 0.305 - _parts(settings, definition)  # noqa: E731
    assert judged(plans("a4"), "A4-positions", swapped).verdict == NOT_REPRODUCED
    for learned, verdict in ((1, REPRODUCED), (12, TOO_FEW), (25, NOT_REPRODUCED)):  # seeds with linear positions

        def some(settings, definition, learned=learned):
            linear = _parts(settings, definition) == 0.3
            return [*spread(0.3, 25 - learned), *spread(0.005, learned)] if linear else 0.003

        found = judged(plans("a4"), "A4-positions", some)  # they err more, also those that learn it
        assert found.verdict == verdict
        assert f"by {learned} of 25 with linear ones" in found.finding.measured
    bent = lambda settings: settings["model"].get("positions") != "linear"  # noqa: E731
    assert judged(plans("a4"), "A4-positions", _parts, bent).verdict == NOT_RUN


def _labels(s5, lstm=0.001, machine="S5"):
    def rates(settings, _definition):
        if settings["model.name"] == "lstm":
            return lstm
        few = settings["task.p_reveal"] <= 0.03 and settings["task.automaton"] == machine
        return s5 if few else 0.002

    return rates


def test_incomplete_supervision(plans):
    assert judged(plans("a5"), "A5", _labels(0.4)).verdict == REPRODUCED
    assert judged(plans("a5"), "A5", _labels(0.001)).verdict == NOT_REPRODUCED
    assert judged(plans("a5"), "A5", _labels(0.4, lstm=0.1)).verdict == NOT_REPRODUCED
    assert judged(plans("a5"), "A5", _labels(0.003)).verdict == NOT_REPRODUCED  # it errs more, and is right all the same
    assert judged(plans("a5"), "A5", _labels(0.01)).verdict == TOO_FEW
    assert judged(plans("a5"), "A5", flat(0.3)).verdict == PRECONDITION
    for other in ("Grid9", "Dyck_4_2", "abab"):  # no groups, so they say nothing of S5
        study = renamed(plans("a5"), {"S5": other})
        assert judged(study, "A5", _labels(0.4, machine=other)).verdict == NOT_RUN
    groups = lambda settings: settings["task"]["automaton"] == "S5"  # noqa: E731
    assert judged(plans("a5"), "A5", _labels(0.4), groups).verdict == NOT_RUN  # parity is part of the claim
    for name in ("lstm", "C2"):  # they were shown every label

        def shown(settings, name=name):
            asked = name in (settings["model"]["name"], settings["task"]["automaton"])
            return settings["task"]["p_reveal"] == 1 or not asked

        assert judged(plans("a5"), "A5", _labels(0.4), shown).verdict == NOT_RUN
