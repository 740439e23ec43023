"""The claims on subsequences give each verdict on rows that deserve it; the rows are of the studies as their files plan them."""

import pytest

import harness.planning.manifest as manifests
from harness.planning.plan import plan
from harness.study.load import load
from launch.families import find_study
from results.claims import verdicts
from results.claims.claim import NOT_REPRODUCED, NOT_REPRODUCED_SCALED, NOT_RUN, PRECONDITION, REPRODUCED, SCALED, TOO_FEW
from results.claims.subsequences.depth import layers_needed, length_of
from tests.results.claims.planned_rows import replicates


def planned(*overrides):
    """The study of depth; as many replicates as it has, or fewer."""
    return manifests.build(
        plan(load(find_study("subsequences", "depth"), list(overrides)), None, 16, numerics={}), {}, {}, None, None
    )


@pytest.fixture(scope="module")
def whole():
    return planned()


def judged(manifest, claim, rate, keep=lambda length, layers: True):
    """The finding where rate(η, layers) are the replicates' error rates, or one for all of them."""
    about = [(length(each["settings"]), each["settings"]["model"]["layers"]) for each in manifest["conditions"]]
    wanted = [index for index, each in enumerate(about) if keep(*each)]
    number = {old: new for new, old in enumerate(wanted)}
    cut = manifest | {
        "claims": {claim: manifest["claims"][claim]},
        "conditions": [manifest["conditions"][index] for index in wanted],
        "replicates": [[key, number[index], *seeds] for key, index, *seeds in manifest["replicates"] if index in number],
    }

    def rates(settings, _definition):
        found = rate(len(settings["task.automaton.table"]) - 1, settings["model.layers"])
        return [found] * 20 if isinstance(found, float) else found

    (found,) = verdicts(cut | {"overrides": []}, replicates(cut, rates))
    assert found.finding.reason
    return found.finding


def length(settings):
    return len(settings["task"]["automaton"]["table"]) - 1


def solves_from(least):
    """0.5 % wrong with least(η) layers or more, 10 % with fewer."""
    return lambda length, layers: 0.005 if layers >= least(length) else 0.1


def with_shares(share):
    """share(η, layers) of 20 replicates solve."""
    return lambda length, layers: [0.005] * share(length, layers) + [0.1] * (20 - share(length, layers))


LOG = {2: 1, 3: 2, 4: 2, 8: 3, 16: 4}


def test_lengths_are_read_from_the_tables_and_nothing_else_is_a_piece():
    assert {each: layers_needed(each) for each in LOG} == LOG
    piece = {"task.automaton.start": 0, "task.automaton.table": [[1, 0], [1, 2], [2, 2]], "task.observe": [0, 0, 1]}
    others = [
        {"task.automaton": "C2"},
        piece | {"task.automaton.table": [[1, 0], [1, 0], [2, 2]]},  # forgets
        piece | {"task.automaton.table": [[1, 0], [2, 2], [2, 2]]},  # either token
        piece | {"task.automaton.table": [[1, 0], [1, 2], [2, 0]]},  # begins anew
        piece | {"task.automaton.start": 1},
        piece | {"task.observe": "state"},
    ]
    assert length_of(piece) == 2
    assert [length_of(each) for each in others] == [None] * len(others)


@pytest.mark.parametrize(
    ("claim", "verdict", "rate"),
    [
        ("S1", REPRODUCED, solves_from(lambda length: LOG[length] + 1)),
        ("S1", REPRODUCED, solves_from(lambda length: 1)),
        ("S1", REPRODUCED, with_shares(lambda length, layers: 17 if layers == LOG[length] + 1 else 0)),
        ("S1", TOO_FEW, with_shares(lambda length, layers: 16 if layers == LOG[length] + 1 else 0)),  # the interval has 1/2
        ("S1", NOT_REPRODUCED, solves_from(lambda length: LOG[length] + 2)),
        ("S1", NOT_REPRODUCED, solves_from(lambda length: LOG[length] + 1 + (length == 8))),  # one length is enough
        ("S1", NOT_REPRODUCED, with_shares(lambda length, layers: 3)),
        ("S1-below", REPRODUCED, solves_from(lambda length: LOG[length])),
        ("S1-below", PRECONDITION, solves_from(lambda length: 6)),  # no depth at all solves anything
        ("S1-below", PRECONDITION, solves_from(lambda length: 6 if length == 16 else LOG[length])),  # nor the longest
        ("S1-below", REPRODUCED, solves_from(lambda length: LOG[length] + 1)),
        ("S1-below", TOO_FEW, with_shares(lambda length, layers: 10)),
        ("S1-below", NOT_REPRODUCED, solves_from(lambda length: LOG[length] - (length == 16))),
    ],
)
def test_depths_give_the_verdict_that_they_deserve(whole, claim, verdict, rate):
    assert judged(whole, claim, rate).verdict == verdict


def test_what_was_measured_has_the_smallest_depth_and_its_interval(whole):
    found = judged(
        whole, "S1", with_shares(lambda length, layers: (3, 10, 15, 20, 20)[layers - 1]), lambda length, layers: length == 4
    )
    assert found.measured == (
        "length 4 (⌈log2 η⌉ = 2): most solve it with 3 layers [2, 4]; "
        "length 4: solved by 3 of 20 with 1, 10 of 20 with 2, 15 of 20 with 3, 20 of 20 with 4, 20 of 20 with 5"
    )


def test_depths_that_were_not_run_refute_nothing(whole):
    shallow = lambda length, layers: layers <= 3  # noqa: E731
    found = judged(whole, "S1", solves_from(lambda length: LOG[length] + 1), shallow)
    assert found.verdict == NOT_RUN
    assert "solve length 8 or 16, and one up to 1 + ⌈log2 η⌉ was not run" in found.reason
    assert judged(whole, "S1", solves_from(lambda length: 4), shallow).verdict == NOT_REPRODUCED  # lengths 2 to 4 are refuted
    assert (
        judged(whole, "S1-below", lambda length, layers: 0.1, lambda length, layers: layers >= LOG[length]).verdict == NOT_RUN
    )


@pytest.mark.parametrize("claim", ["S1", "S1-below"])
def test_lengths_of_one_bound_are_no_law(whole, claim):
    """One length, and two of one ⌈log2 η⌉, hold and show no growth; they can refute."""
    for lengths in ((4,), (3, 4)):
        alone = lambda length, layers: length in lengths  # noqa: B023, E731
        found = judged(whole, claim, solves_from(lambda length: LOG[length]), alone)
        assert found.verdict == NOT_RUN
        assert "how it grows" in found.reason
        refuting = solves_from(lambda length: 5 if claim == "S1" else 1)
        assert judged(whole, claim, refuting, alone).verdict == NOT_REPRODUCED


def test_ten_replicates_are_waited_for_and_the_laptop_has_them():
    few = planned("replicates=9", "only=[length_2]")
    assert judged(few, "S1", lambda length, layers: 0.0).verdict == TOO_FEW
    laptop = planned("scale=laptop")
    assert judged(laptop, "S1", solves_from(lambda length: LOG[length] + 1)).verdict == SCALED
    assert judged(laptop, "S1", solves_from(lambda length: 5)).verdict == NOT_REPRODUCED_SCALED
    assert judged(laptop, "S1-below", solves_from(lambda length: LOG[length])).verdict == SCALED
