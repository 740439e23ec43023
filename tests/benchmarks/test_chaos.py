"""The chaos test in short: one worker and one driver killed on a real cluster. Many seeds of it: docs/reference/chaos.md."""

import json

import pytest

from benchmarks.chaos import __main__ as chaos
from benchmarks.chaos.attempt import attempt
from benchmarks.chaos.machines import machines
from benchmarks.chaos.scenario import Event, Scenario, scenario
from benchmarks.chaos.study import NAME, train_alone, write
from tests.harness.tiny import tables


def test_a_scenario_follows_from_its_seed_and_every_kind_of_event_occurs():
    found = [scenario(seed, 20.0) for seed in range(100)]
    assert found == [scenario(seed, 20.0) for seed in range(100)]
    kinds = {"worker", "raylet", "driver", "notice", "interrupt", "memory", "outage"}
    assert {event.kind for plan in found for event in plan.events} == kinds
    assert all(0 <= event.at <= 20 for plan in found for event in plan.events)
    assert {plan.leases for plan in found} == {True, False}
    assert {plan.second_at is None for plan in found} == {True, False}
    assert {first != second for first, second in (plan.sizes for plan in found)} == {True, False}


def test_a_hundred_seeds_go_on_where_their_log_ends(tmp_path, monkeypatch, capsys):
    """Only after a whole line, and only where the commit and the settings are those of the line."""
    ran, log, code = [], tmp_path / "chaos.jsonl", ["c0ffee", False]

    def attempts(seeds, settings, keep, limit, place):
        for seed in seeds:
            ran.append(seed)
            yield {"seed": seed, "passed": seed != 2}

    monkeypatch.setattr(chaos, "attempts", attempts)
    monkeypatch.setattr(chaos, "code_state", lambda: tuple(code))
    assert chaos.main(["--seeds", "0..2", "--out", str(log)]) == 1
    assert chaos.main(["--seeds", "1..4", "--out", str(log)]) == 1
    assert ran == [0, 1, 2, 3, 4]
    assert capsys.readouterr().out.splitlines()[-2:] == [f"2 of 4 seeds are in {log}", "3 of 4 seeds passed"]
    assert chaos.main(["--seeds", "3..4", "--out", str(log)]) == 0
    for changed in (["--steps", "400"], ["--window", "3"], ["--replicates", "3"], ["--store", "s3"]):
        ran.clear()
        assert chaos.main(["--seeds", "3", "--out", str(log), *changed]) == 0
        assert ran == [3]
    for code[:] in (["ca5cade", False], ["c0ffee", True]):
        ran.clear()
        assert chaos.main(["--seeds", "3", "--out", str(log)]) == 0
        assert ran == [3]


@pytest.mark.slow
def test_tables_after_chaos_are_those_of_an_undisturbed_run(tmp_path, monkeypatch):
    study = write(tmp_path, steps=200, replicates=2)
    plan = Scenario(0, (2, 2), None, True, (Event(0.5, "worker", 0.5), Event(2.0, "driver")))
    monkeypatch.syspath_prepend(tmp_path)
    train_alone(study, str(tmp_path / "alone"))
    with machines(tmp_path) as cluster, attempt(plan, study, tmp_path / "0", cluster) as running:
        running.run(seconds=900)
        verdict = running.verdict(tables(tmp_path / "alone", NAME))
    told = json.dumps({"verdict": verdict, "events": running.log, "drivers": running.words()}, indent=1)
    assert verdict["passed"], told
    assert verdict["replicates"] == 6, told
    assert [(entry["kind"], entry["done"]) for entry in running.log] == [("worker", True), ("driver", True)], told
