import time
from dataclasses import replace

import pytest

from harness.executing.progress import Progress, with_progress
from harness.executing.run_pack import Outcome, halves
from harness.study.experiment import Experiment
from tests.harness.packs import condition, pack


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr("harness.executing.progress.time.monotonic", lambda: now[0])
    return now


def _two_packs():
    return [pack(condition(steps=100), [(seed, seed), (seed + 1, seed + 1)]) for seed in (0, 2)]


def test_the_rate_and_end_are_of_the_work_done_here(clock):
    one, two = _two_packs()
    progress = Progress([one, two], {one.id: 100.0, two.id: 100.0}, committed=4, total=8)
    clock[0] += 50
    progress.step(one.id, 50)
    progress.step(one.id, 51)
    assert progress.line().startswith("102/400 steps · 0/2 packs · 4/8 replicates")
    clock[0] += 50
    progress.step(one.id, 100)
    progress.end(Outcome(one.id, "committed", 2))
    assert progress.committed == 6
    assert "1/2 packs · 6/8 replicates · 1.2 a minute" in progress.line()


def test_after_the_last_step_the_evaluations_are_named(clock):
    one, two = _two_packs()
    progress = Progress([one, two], {one.id: 100.1, two.id: 0.3}, committed=0, total=4)
    progress.step(one.id, 1)
    clock[0] += 50
    progress.step(one.id, 100)
    assert "left)" in progress.line()
    progress.step(two.id, 100)
    assert progress.line() == "400/400 steps · 0/2 packs · 0/4 replicates · every step is done, the last evaluations run"
    progress.end(Outcome(one.id, "committed", 2))
    progress.end(Outcome(two.id, "committed", 2))
    assert progress.line().endswith("a minute")


def test_of_experiments_nothing_is_said_of_evaluations_that_they_lack(clock):
    """An experiment may do more after the last step that it told of, as one does whose steps are not known before."""
    one, _ = _two_packs()
    run = replace(one.replicates[0].condition, experiment=Experiment(command=("true",)))
    walks = replace(one, replicates=tuple(replace(replicate, condition=run) for replicate in one.replicates))
    progress = Progress([walks], {walks.id: 1.0}, committed=0, total=2)
    progress.step(walks.id, walks.steps)
    assert progress.line() == "0/1 packs · 0/2 replicates"


def test_parts_of_a_second_are_not_counted_down_and_a_fast_pace_has_no_exponent(clock):
    one, two = _two_packs()
    progress = Progress([one, two], {one.id: 1.0, two.id: 1.0}, committed=0, total=4)
    progress.step(one.id, 1)
    clock[0] += 0.05
    progress.step(one.id, 100)
    progress.end(Outcome(one.id, "committed", 2))
    assert "2,400 a minute" in progress.line()
    assert progress.line().endswith("(under 1 s left)")


def test_what_a_checkpoint_brings_is_no_work_of_this_run(clock):
    one, two = _two_packs()
    progress = Progress([one, two], {one.id: 100.0, two.id: 100.0}, committed=0, total=4)
    progress.step(one.id, 0)  # started, not yet resumed
    progress.step(one.id, 91)
    clock[0] += 9
    progress.step(one.id, 100)
    assert "(99 s left)" in progress.line() or "(100 s left)" in progress.line() or "(2 min left)" in progress.line()


@pytest.mark.parametrize("ends", ["failed", "split"])
def test_what_a_checkpoint_brought_is_forgotten_with_a_pack_that_fails_or_is_split(ends, clock):
    """Steps that are lost with it are no work that the others lack."""
    one, two = _two_packs()
    progress = Progress([one, two], {one.id: 100.0, two.id: 100.0}, committed=0, total=4)
    progress.step(one.id, 91)
    if ends == "failed":
        progress.end(Outcome(one.id, "failed", 2, step=91, message="planted"))
    else:
        progress.split(one.id, list(halves(one)))
    progress.step(two.id, 1)
    clock[0] += 50
    progress.step(two.id, 51)
    left = 49 if ends == "failed" else 149
    assert progress.seconds_left() == pytest.approx(left * 50 / 51)


def test_steps_are_shown_from_the_start_and_often_in_the_first_minute(clock, capsys):
    """A step of a pack counts for each of its replicates; packs that run, ended, failed or were halved all count."""
    one, two = _two_packs()
    progress = Progress([one, two], {one.id: 100.0, two.id: 100.0}, committed=0, total=4)
    assert capsys.readouterr().out == "0/400 steps · 0/2 packs · 0/4 replicates\n"
    for step in range(1, 101):
        clock[0] += 1
        progress.step(one.id, step)
        if step == 30:
            progress.step(two.id, 1)
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(" steps")[0] for line in lines[:3]] == ["12/400", "24/400", "36/400"]
    assert len(lines) == 11  # nine in the first minute, then one every 15 seconds
    progress.end(Outcome(one.id, "committed", 2))
    progress.split(two.id, list(halves(two)))
    assert progress.line().startswith("200/400 steps · 1/3 packs · 2/4 replicates")
    first, second = halves(two)
    progress.step(first.id, 7)
    progress.end(Outcome(second.id, "failed", 1, step=3, message="planted"))
    assert progress.line().startswith("207/300 steps · 2/3 packs")


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


def test_a_log_of_hours_gets_a_line_a_minute(clock, capsys):
    one, two = _two_packs()
    progress = Progress([one, two], {one.id: 100.0, two.id: 100.0}, committed=0, total=4)
    clock[0] += 600
    progress.step(one.id, 1)
    capsys.readouterr()
    for _ in range(610):
        clock[0] += 1
        progress.step(one.id, 50)
    said = capsys.readouterr().out
    assert said.count("\n") == 10
    assert not set("\r\x1b") & set(said)


def test_a_watcher_is_told_the_numbers_of_the_line(clock):
    one, two = _two_packs()
    told = []
    progress = Progress([one, two], {one.id: 100.0, two.id: 100.0}, committed=4, total=8, watcher=told.append)
    assert told == [{"committed": 4, "planned": 8, "running": 0, "failed": 0, "diverged": 0, "packs_ended": 0, "packs": 2}]
    clock[0] += 50
    progress.step(one.id, 50)
    progress.step(one.id, 60)
    assert told[-1]["running"] == 2
    assert told[-1]["minutes_left"] == pytest.approx(progress.seconds_left() / 60)
    assert told[-1]["ends"] == pytest.approx(time.time() + progress.seconds_left(), abs=5)
    clock[0] += 50
    progress.end(Outcome(one.id, "committed", 2, diverged=1))
    assert (told[-1]["committed"], told[-1]["diverged"], told[-1]["packs_ended"]) == (6, 1, 1)
    assert told[-1]["replicates_per_minute"] == pytest.approx(1.2)


def test_a_long_loop_says_how_far_it_is_and_a_short_one_says_nothing(clock):
    said = []
    for _ in with_progress(range(40), said.append):
        clock[0] += 2.0  # lines come 6 s apart in the first minute, then 16
    assert [line.split(" · ")[0] for line in said] == [
        f"{done}/40 replicates" for done in (3, 6, 9, 12, 15, 18, 21, 24, 27, 35)
    ]
    assert said[0].endswith("(74 s left)")
    assert said[-1].endswith("(10 s left)")
    assert list(with_progress(range(3), said.append)) == [0, 1, 2]
    assert len(said) == 10
