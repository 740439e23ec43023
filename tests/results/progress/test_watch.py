"""The live view: what it shows, that it reads a file once, that it ends cleanly, and the commands beside it."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import results.progress.watch as watching
from launch.cli import main
from results.progress.snapshot import COLUMNS, take
from results.progress.watch import Follower, drawn, lines, watch
from results.store.manifest import manifest_of, write_manifest
from results.store.merge import compact
from results.store.tables import commit, open_store, read
from tests.results.store.sample_rows import commit_pack, failure, in_order, manifest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def at(tmp_path):
    """A store with two of three replicates, one diverged, and a failure."""
    made = open_store(tmp_path / "runs", "quick")
    write_manifest(made, json.dumps(manifest({"transformer": ["a", "d"], "lstm": ["k"]})).encode())
    commit_pack(made, "p1", ["a", "d"])
    commit(made, "p2-1", {"failures": failure("p2", 1)})
    return made


def test_a_look_names_packs_conditions_nodes_and_failures(at):
    text = "\n".join(lines(take(at, manifest_of(at))))
    assert "quick: 2 of 3 replicates committed, 1 failed" in text
    assert "packs: 1 committed, 0 in flight, 0 waiting, 0 failed" in text
    assert "no commit in the last hour; the last was 2026-11-01 12:00:00 UTC" in text
    assert "condition transformer: 2 of 2, 1 diverged" in text
    assert "condition lstm: 0 of 1, 1 failed" in text
    assert "node here: 2 replicates, 0 in the last hour" in text


def test_a_file_is_read_once_and_again_when_it_changed(at, monkeypatch):
    reads = []
    real = watching.read_file
    monkeypatch.setattr(watching, "read_file", lambda *arguments: reads.append(arguments[1]) or real(*arguments))
    follower = Follower(at)
    assert follower.take().committed == 2
    assert follower.take().committed == 2
    assert len(reads) == 1
    commit_pack(at, "p3", ["k"])
    assert (follower.take().committed, follower.take().failed) == (3, 0)
    assert len(reads) == 2
    commit_pack(at, "p3", ["k", "x"])
    assert follower.rows().num_rows == 4
    assert len(reads) == 3


KEYS = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=4, unique=True)
ACTS = st.lists(st.one_of(st.just("compact"), st.tuples(st.sampled_from(["p1", "p2", "p3"]), KEYS)), min_size=1, max_size=6)


@settings(max_examples=15, deadline=None)
@given(ACTS)
def test_a_follower_sees_what_a_reader_does_whatever_happens(tmp_path_factory, acts):
    store = open_store(tmp_path_factory.mktemp("store"), "quick")
    follower, known = Follower(store), {}
    for act in acts:
        if act == "compact":
            compact(store)
        else:
            name, keys = act
            commit_pack(store, name, known.setdefault(name, keys))  # a pack's keys follow from its id
        assert in_order(follower.rows()) == in_order(read(store, "replicates", COLUMNS))


def test_a_look_that_fails_is_shown_and_the_next_one_tries_again(at, monkeypatch):
    said, looks = [], []

    def sleep(seconds):
        looks.append(seconds)
        if len(looks) == 1:
            Path(at.path("replicates", "p9.parquet")).write_bytes(b"no table")
        elif len(looks) == 2:
            assert "p9.parquet" in said[-1]
            os.unlink(at.path("replicates", "p9.parquet"))
        else:
            raise KeyboardInterrupt

    monkeypatch.setattr(watching.time, "sleep", sleep)
    watch([at], 2.0, False, said.append)
    assert looks == [2.0, 2.0, 2.0]
    assert sum("2 of 3 replicates committed" in line for line in said) == 2


def test_a_store_that_is_moved_away_is_said_to_be_away(at, monkeypatch):
    said, looks = [], []

    def sleep(seconds):
        looks.append(seconds)
        if len(looks) == 1:
            os.rename(at.root, f"{at.root}.away")
        elif len(looks) == 2:
            assert said[-1] == f"quick: the store {at.root} is away: it shows no manifest of quick, which has one there"
            os.rename(f"{at.root}.away", at.root)
        else:
            raise KeyboardInterrupt

    monkeypatch.setattr(watching.time, "sleep", sleep)
    watch([at], 2.0, False, said.append)
    assert sum("2 of 3 replicates committed" in line for line in said) == 2


def test_packs_of_an_earlier_plan_are_not_counted(at):
    write_manifest(at, json.dumps(manifest({"lstm": ["x", "y"]})).encode())
    text = "\n".join(lines(take(at, manifest_of(at))))
    assert "quick: 0 of 2 replicates committed; 2 other replicates" in text
    assert "packs: 0 committed" in text
    commit_pack(at, "p4", ["x", "z"], condition="lstm")
    assert "packs: 1 committed" in "\n".join(lines(take(at, manifest_of(at))))


def test_the_table_shows_names_as_they_are_and_says_what_it_leaves_out(at):
    from rich.console import Console

    names = {f"[bold]c{index}": [f"k{index}"] for index in range(30)}
    write_manifest(at, json.dumps(manifest(names)).encode())
    out = io.StringIO()
    console = Console(file=out, width=120, force_terminal=True)
    console.print(drawn(take(at, manifest_of(at))))
    console.print(drawn("quick: the store is gone"))
    text = out.getvalue()
    assert "[bold]c0" in text
    assert "more conditions: --once lists all" in text
    assert "the store is gone" in text


def test_no_interval_of_nothing(at):
    for every in (0.0, -1.0, float("nan"), float("inf"), 1e12):
        with pytest.raises(ValueError, match="must be at least"):
            watch([at], every, False, print)


def test_a_wrong_interval_is_said_once_for_all_studies(at, capsys):
    write_manifest(open_store(at.root, "slow"), json.dumps(manifest({"lstm": ["k"]})).encode())
    with pytest.raises(SystemExit):
        main(["watch", at.root, "--once", "--every", "0"])
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("must be at least") == 1


def test_once_prints_one_look_and_failures_and_compact_say_what_they_did(at, capsys):
    store = at.root
    main(["watch", store, "quick", "--once"])
    assert "condition lstm: 0 of 1, 1 failed" in capsys.readouterr().out
    main(["failures", store, "--full"])
    text = capsys.readouterr().out
    assert "replicate k lstm, seeds" in text
    assert "| …" in text
    commit_pack(at, "p3", ["x"])
    before = in_order(read(at, "evaluations"))
    main(["compact", store])
    assert "quick: 11 files are now 6" in capsys.readouterr().out
    assert in_order(read(at, "evaluations")) == before


def test_ctrl_c_ends_the_watching_with_status_0_and_no_traceback(at):
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", "from launch.cli import main; main()", "watch", at.root, "--every", "0.2"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # tests that a shell runs in the background ignore Ctrl-C, and so would what they start
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    seen = ""
    until = time.monotonic() + 120
    while seen.count("replicates committed") < 2 and time.monotonic() < until:
        seen += process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (0, "")
    assert seen.count("2 of 3 replicates committed") == 2


def test_an_empty_store_has_a_look(tmp_path):
    store = open_store(tmp_path, "quick")
    assert Follower(store).rows().schema.names == COLUMNS
    assert isinstance(Follower(store).rows(), pa.Table)
    assert "no commit in the last hour" in "\n".join(lines(Follower(store).take()))
