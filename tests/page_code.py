"""The code that a page of documentation prints, and an environment to run its commands in."""

import os
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
ANYWHERE = os.environ | {"PYTHONPATH": str(ROOT)}  # `python -m launch` from any folder


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)


# `python -c` of it is `python -m launch` that times a few steps of each model before a study, instead of half a second of them
UNTIMED = """
import sys
import harness.planning.throughput
harness.planning.throughput._BUDGET_S = 0.0
from launch.cli import main
main(sys.argv[1:])
"""
