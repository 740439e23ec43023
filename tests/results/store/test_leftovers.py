"""Temporary files of killed writers go, and nothing else does."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from results.store.leftovers import OLD_S, remove_leftovers
from results.store.tables import open_store
from tests.results.store.sample_rows import commit_pack


def test_what_killed_writers_left_is_removed_when_it_is_old_and_nothing_else_is(tmp_path):
    at = open_store(tmp_path, "study")
    commit_pack(at, "fd-1", ["a"])
    code = "import sys, os; from results.store import filesystem; os.replace = lambda *a: os.kill(os.getpid(), 9)\n" + (
        "filesystem.write_local(sys.argv[1], b'rows')"
    )
    for path in (at.path("curves/fd-2.parquet"), at.shared("artifacts", "k", "0", "5.safetensors")):
        assert subprocess.run([sys.executable, "-c", code, path], check=False).returncode == -signal.SIGKILL
    kept = [Path(at.path(name)) for name in ("curves/.fd-3.parquet.mine.tmp", "curves/notes.tmp", ".gitkeep")]
    for path in kept:
        path.write_bytes(b"mine")
    before = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    assert remove_leftovers(at) == 0  # as young as those of a writer at work
    for path in before:
        os.utime(path, (time.time() - OLD_S - 60,) * 2)
    assert remove_leftovers(at) == 2
    left = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    assert [path.suffix for path in before if path not in left] == [".tmp", ".tmp"]
    assert set(kept) <= set(left)
