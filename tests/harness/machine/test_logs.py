"""What a pack prints and logs is found from its failed row, and nothing of it is held back from where it went."""

import errno
import io
import logging
import sys

import pytest

from harness.executing.run_pack import Outcome
from harness.machine.logs import captured, logged
from launch.cli import main
from results.store.tables import log_path, open_store, read, read_bytes
from results.terminal import say
from tests.harness.packs import condition, pack
from tests.harness.tiny import write_study


def test_prints_and_logs_are_kept_and_still_shown(capsys):
    before = sys.stdout, sys.stderr
    with captured() as kept:
        print("printed")
        sys.stderr.writelines(["to ", "stderr\n"])
        logging.getLogger("one").warning("logged")
    print("afterwards")
    assert (sys.stdout, sys.stderr) == before
    for word in ("printed", "to stderr", "logged"):
        assert word in kept.text()
    assert "afterwards" not in kept.text()
    shown = capsys.readouterr()
    assert "printed" in shown.out
    assert "to stderr" in shown.err


def test_of_a_flood_the_end_is_kept():
    with captured() as kept:
        for index in range(400):
            sys.stdout.write(f"{index:04d}" * 1000)
    assert len(kept.text()) == 2**18
    assert kept.text().endswith("0399")


def test_a_terminal_that_is_gone_fails_no_replicate(monkeypatch):
    """What a pack prints is kept, and the output's error is left to the line after the pack."""

    class Gone(io.StringIO):
        def write(self, text):
            raise OSError(errno.EIO, "Input/output error")

        def flush(self):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stdout", Gone())
    with captured() as kept:
        say("20/240 steps")
    assert kept.text() == "20/240 steps\n"
    with pytest.raises(OSError, match="Input/output error"):
        say("1/12 packs")


def test_the_log_of_a_failed_pack_alone_is_in_the_store(tmp_path):
    at, one = open_store(tmp_path, "tiny"), pack(condition(), [(0, 0)])

    @logged
    def run(pack, store, status):
        print(f"this one {status}")
        return Outcome(pack.id, status, 1)

    assert run(one, at, "committed").status == "committed"
    assert not (tmp_path / "tiny").exists()
    assert run(one, at, "failed").status == "failed"
    text = read_bytes(at, log_path(one.id, one.attempt)).decode()
    assert text.startswith("host: ")
    assert f"pack: {one.id}, attempt {one.attempt}" in text
    assert text.endswith("this one failed\n")


def test_the_commands_lead_from_a_failed_row_to_its_log(tmp_path, capsys, monkeypatch):
    def broken(*arguments, **named):
        logging.getLogger("user").error("a word of warning before the end")
        raise ArithmeticError("planted")

    monkeypatch.setattr("harness.executing.run_pack.train", broken)
    store = str(tmp_path / "runs")
    with pytest.raises(SystemExit, match="1"):
        main(["run", write_study(tmp_path), f"store={store}", "replicates=1"])
    capsys.readouterr()
    main(["failures", store, "tiny", "--full"])
    text = capsys.readouterr().out
    assert "2 replicates failed, in 2 failures" in text
    assert "ArithmeticError: planted" in text
    assert 'raise ArithmeticError("planted")' in text
    for row in read(open_store(store, "tiny"), "failures").to_pylist():
        path = f"{store}/tiny/{log_path(row['pack'], row['attempt'])}"
        assert f"log: {path}" in text
        with open(path) as stream:
            assert "a word of warning before the end" in stream.read()
