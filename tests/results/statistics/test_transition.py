"""Where a training makes its transition, against curves written down by hand."""

import pytest

from results.statistics.transition import Transition, first_step, transition

# the teacher of figure 4.5, read off by eye, in units of 0.1M steps: 0.50 at 9.7M, 0.75 at 10.2M, 1.00 at 10.8M
TEACHER = [(step * 100_000, 0.5) for step in range(1, 100)] + [
    (step * 100_000, value)
    for step, value in zip(range(100, 112), (0.51, 0.6, 0.75, 0.9, 0.97, 0.99, 0.999, 1, 1, 1, 1, 1), strict=True)
]


def test_the_candidates_of_the_thesis_are_those_of_figure_4_5():
    assert transition(TEACHER, before=500_000, after=600_000) == Transition(9_700_000, 10_200_000, 10_800_000)


def test_without_distances_begin_and_end_are_the_nearest_steps_beyond_the_thresholds():
    assert transition(TEACHER) == Transition(10_000_000, 10_200_000, 10_600_000)
    assert transition(reversed(TEACHER)) == transition(TEACHER), "the order of the pairs means something"


def test_thresholds_count_as_reached_where_they_are_equalled():
    assert first_step([(1, 0.7499), (2, 0.75), (3, 0.8)], 0.75) == 2
    assert transition([(1, 0.55), (2, 0.75), (3, 0.999)]) == Transition(1, 2, 3)


def test_a_replicate_that_never_transitions_has_none():
    assert first_step([(1, 0.5), (2, 0.74)], 0.75) is None
    assert transition([(1, 0.5), (2, 0.74)]) is None
    assert transition([]) is None
    assert transition([(1, None), (2, float("nan"))]) is None


def test_a_begin_or_an_end_that_is_not_on_the_curve_is_none():
    assert transition([(1, 0.8), (2, 0.9)]) == Transition(None, 1, None)
    assert transition([(1, 0.5), (2, 0.8), (3, 1.0)], before=2, after=2) == Transition(None, 2, None)


def test_a_curve_that_falls_back_has_its_first_rise_as_middle():
    assert transition([(1, 0.5), (2, 0.76), (3, 0.5), (4, 1.0)]) == Transition(1, 2, 4)


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"low": 0.8}, "ascend"),
        ({"high": 0.7}, "ascend"),
        ({"high": 1.5}, "threshold"),
        ({"before": -1}, "before = -1"),
    ],
)
def test_what_is_no_rule_is_refused(given, word):
    with pytest.raises(ValueError, match=word):
        transition(TEACHER, **given)


def test_two_curves_at_once_are_refused():
    with pytest.raises(ValueError, match="step 5 has two accuracies"):
        first_step([(5, 0.5), (5, 0.6)], 0.75)
