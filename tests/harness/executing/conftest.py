"""Fixtures of tests of where packs run."""

import subprocess
import sys

import pytest

from results.store.tables import open_store
from tests.harness.executing.clusters import ROOT, SLOW, environment_without_ray
from tests.harness.packs import condition, pack
from tests.harness.tiny import tables, write_study


@pytest.fixture
def store(tmp_path):
    return open_store(tmp_path / "runs", "tiny")


@pytest.fixture
def packs():
    one = condition("lstm")
    return [pack(one, [0, 1]), pack(one, [2])]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An undisturbed local run of the slow study."""
    folder = tmp_path_factory.mktemp("whole")
    study = write_study(folder)
    command = [sys.executable, "-m", "launch", "run", study, f"store={folder / 'runs'}", *SLOW]
    subprocess.run(command, cwd=ROOT, env=environment_without_ray(), check=True, capture_output=True, timeout=500)
    return tables(folder / "runs")
