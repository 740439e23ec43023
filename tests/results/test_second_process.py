"""The second process answers what it is asked, in order, and an error there is an error here."""

import json
import os
from pathlib import Path

import pytest

from results import second_process
from results.errors import DamagedFile
from results.store.tables import check_name


def test_calls_are_answered_in_another_process_and_their_errors_are_raised_here(capfd):
    second_process.stop()  # one that an earlier test started writes elsewhere
    try:
        other = second_process.submit(os.getpid).result()
        assert other != os.getpid()
        assert second_process.submit(print, "not an answer").result() is None
        with pytest.raises(json.JSONDecodeError, match="line 1 column 1"):
            second_process.submit(json.loads, "no JSON").result()
        with pytest.raises(DamagedFile, match="can't be the name of a pack"):
            second_process.submit(check_name, "../x", "a pack").result()
        assert second_process.submit(second_process.worthwhile).result() is False
        assert second_process.submit(os.getpid).result() == other
    finally:
        second_process.stop()
    assert "not an answer" in capfd.readouterr().err
    with pytest.raises(ProcessLookupError):
        os.kill(other, 0)


def test_a_process_with_a_call_to_carry_out_is_not_worthwhile(tmp_path, monkeypatch):
    monkeypatch.setattr(second_process, "cores", lambda: 2)
    waits = tmp_path / "waits"
    os.mkfifo(waits)
    try:
        assert second_process.worthwhile()
        later = second_process.submit(Path.read_text, waits)  # until someone writes
        assert not second_process.worthwhile()
        waits.write_text("now")
        assert later.result() == "now"
        assert second_process.worthwhile()
    finally:
        second_process.stop()
