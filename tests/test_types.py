"""mypy finds no type error. It runs beside the other tests, since before them it took 40 s and left one core idle."""

import subprocess
import sys

from tests.page_code import ROOT


def test_mypy_finds_no_error():
    # one process and no cache: a fifth less processor time, and the other core has tests to run
    alone = ["--num-workers=0", "--no-incremental", "--cache-dir=/dev/null"]
    checked = subprocess.run([sys.executable, "-m", "mypy", *alone], cwd=ROOT, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
