"""Fixtures of tests of where packs run."""

import pytest

from harness.run import run
from harness.study.load import load
from results.store.tables import open_store
from tests.harness.executing.clusters import SLOW
from tests.harness.killed import without_report
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
    study = load(write_study(folder), [f"store={folder / 'runs'}", *SLOW])
    with pytest.MonkeyPatch.context() as patch:
        without_report(patch)
        assert run(study, say=lambda text: None) == 0
    return tables(folder / "runs")
