import pytest

from harness.execute import Outcome
from harness.progress import Progress, words
from tests.harness.packs import condition, pack


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr("harness.progress.time.monotonic", lambda: now[0])
    return now


def _two_packs():
    return [pack(condition(steps=100), [(seed, seed), (seed + 1, seed + 1)]) for seed in (0, 2)]


def test_the_rate_and_end_are_of_the_work_done_here(clock):
    one, two = _two_packs()
    progress = Progress([one, two], {one.id: 100.0, two.id: 100.0}, committed=4, total=8)
    clock[0] += 50
    progress.step(one.id, 50)
    progress.step(one.id, 51)
    assert progress.line().startswith("4/8 replicates")
    clock[0] += 50
    progress.step(one.id, 100)
    progress.end(Outcome(one.id, "committed", 2))
    assert progress.committed == 6
    assert "6/8 replicates · 1.2 a minute" in progress.line()


def test_after_the_last_step_the_evaluations_are_named(clock):
    one, two = _two_packs()
    progress = Progress([one, two], {one.id: 100.1, two.id: 0.3}, committed=0, total=4)
    progress.step(one.id, 1)
    clock[0] += 50
    progress.step(one.id, 100)
    assert "left)" in progress.line()
    progress.step(two.id, 100)
    assert progress.line() == "0/4 replicates · every step is done, the last evaluations run"
    progress.end(Outcome(one.id, "committed", 2))
    progress.end(Outcome(two.id, "committed", 2))
    assert progress.line().endswith("a minute")


def test_what_a_checkpoint_brings_is_no_work_of_this_run(clock):
    one, two = _two_packs()
    progress = Progress([one, two], {one.id: 100.0, two.id: 100.0}, committed=0, total=4)
    progress.step(one.id, 0)  # started, not yet resumed
    progress.step(one.id, 91)
    clock[0] += 9
    progress.step(one.id, 100)
    assert "(99 s left)" in progress.line() or "(100 s left)" in progress.line() or "(2 min left)" in progress.line()


def test_a_failed_pack_is_counted_and_is_no_work(clock, capsys):
    one, two = _two_packs()
    progress = Progress([one, two], {one.id: 100.0, two.id: 100.0}, committed=0, total=4)
    progress.end(Outcome(one.id, "failed", 2, step=3, message="ArithmeticError: planted"))
    assert "failed at step 3: ArithmeticError: planted" in capsys.readouterr().out
    clock[0] += 20
    progress.step(two.id, 1)
    progress.step(two.id, 21)
    assert "2 failed" in progress.line()
    assert "left" in progress.line()


@pytest.mark.parametrize(("seconds", "text"), [(12, "12 s"), (600, "10 min"), (9000, "2.5 h"), (400_000, "4.6 days")])
def test_durations_are_said_as_people_do(seconds, text):
    assert words(seconds) == text
