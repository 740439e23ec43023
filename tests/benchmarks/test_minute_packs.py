"""The time between packs, from rows whose gaps are known."""

import datetime

import pytest

from benchmarks.minute_packs import pauses

START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def _row(pack, begins, ends, work):
    at = [START + datetime.timedelta(seconds=seconds) for seconds in (begins, ends)]
    return {"pack": pack, "host": "a", "started": at[0], "ended": at[1], "train_s": work - 1.0, "evaluate_s": 1.0}


def test_everything_but_steps_and_evaluations_until_the_next_pack_counts():
    rows = [_row("c", 10.5, 20.5, 9.5), _row("a", 0, 10, 9.0), _row("b", 1, 11, 9.25), _row("d", 12, 20, 8.0)]
    found = {each["pack"]: each for each in pauses(rows, 2)}
    assert found["a"] == {"pack": "a", "work_s": 9.0, "else_s": pytest.approx(1.5)}
    assert found["b"] == {"pack": "b", "work_s": 9.25, "else_s": pytest.approx(1.75)}
    assert len(found) == 2  # the last of each slot has no next


def test_more_packs_at_once_than_slots_are_no_measurement():
    with pytest.raises(ValueError, match="more than 1 packs ran at once"):
        pauses([_row("a", 0, 10, 9.0), _row("b", 1, 11, 9.0)], 1)
