"""Types are checked beside the other tests, which often wait: before them it takes 40 s in which one core does nothing."""

import subprocess
import sys

from tests.page_code import ROOT


def test_mypy_finds_no_error():
    checked = subprocess.run([sys.executable, "-m", "mypy"], cwd=ROOT, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
