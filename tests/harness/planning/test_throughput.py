"""How long steps and evaluations are timed before a study, with the real budget."""

import statistics
from types import SimpleNamespace

import pytest

from harness.machine.device import resolve
from harness.planning import throughput
from harness.planning.throughput import PRECISION, measure
from tests.harness.packs import condition, pack

pytestmark = pytest.mark.measures


@pytest.fixture
def timed(monkeypatch):
    """timed(seconds): (mean, relative error) of steps that take these seconds, one after the other, and how many of them were timed;
    draw_s: of the draw of so many steps' strings."""

    def call(seconds, draw_s=0.0, steps=4):
        left, taken = iter(seconds), []
        feed = SimpleNamespace(at=lambda step: None, draw=lambda first: None, drawn=[None] * steps)
        training = SimpleNamespace(loop=None, advance=lambda: None, step=0, feed=feed)

        def seconds_of(device, action):
            if action is not training.advance:
                return draw_s
            taken.append(next(left))
            return taken[-1]

        monkeypatch.setattr(throughput, "_timed", seconds_of)
        return throughput._step_seconds(training, resolve("cpu")), taken

    return call


def test_even_steps_are_timed_three_times(timed):
    assert timed([0.01] * 100) == ((pytest.approx(0.01), pytest.approx(0)), [0.01] * 3)


def test_each_step_has_its_share_of_a_draw_that_none_of_those_that_are_timed_makes(timed):
    assert timed([0.01] * 100, draw_s=0.2, steps=8) == ((pytest.approx(0.035), pytest.approx(0)), [0.01] * 3)


def test_uneven_steps_are_timed_until_their_mean_is_known(timed):
    (mean, error), taken = timed([0.001, 0.002] * 100)
    assert len(taken) > 3
    assert mean == pytest.approx(statistics.mean(taken))
    assert error == pytest.approx(statistics.stdev(taken) / len(taken) ** 0.5 / mean)
    assert error <= PRECISION
    before = taken[:-1]
    assert statistics.stdev(before) / len(before) ** 0.5 / statistics.mean(before) > PRECISION


def test_uneven_steps_are_timed_no_longer_than_the_budget(timed):
    _, taken = timed([0.01, 0.4] * 100)
    assert sum(taken[:-1]) < 0.5 <= sum(taken)


def test_a_batch_is_timed_twice_where_it_is_quick_and_once_where_it_is_not(monkeypatch):
    """The first time includes what a first pass costs."""
    small, real, seconds = pack(condition("lstm"), [0, 1]), throughput._seconds_of_a_string, {}
    calls = []

    def counted(training, sets, device, strings):
        calls.append(sets[0].task)
        return seconds.get("each") or real(training, sets, device, strings)

    monkeypatch.setattr(throughput, "_seconds_of_a_string", counted)
    measure(small, resolve("cpu"))
    quick = len(calls)
    calls.clear()
    seconds["each"] = 10.0
    rate = measure(small, resolve("cpu"))
    assert quick == 2 * len(calls)
    assert rate.evaluate_s >= 10.0 * sum(each.sequences for each in small.replicates[0].sets)
