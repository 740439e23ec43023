"""How a study starts."""

import sys
from pathlib import Path

if sys.path[:1] != [str(Path(__file__).resolve().parents[1])]:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # before a `harness` of the current folder

import harness as harness  # puts our packages before others of their names
