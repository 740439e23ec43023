"""Drivers of experiments that are killed with SIGKILL, and several at once: the tables are those of one that nothing disturbed."""

import itertools
import os
import signal

import pytest

import results
from results.store.manifest import newest_manifest
from results.store.tables import open_store, read
from tests.harness.experiments.drivers import ROOT, Drivers, running, wait_until
from tests.harness.tiny import tables

OWN = """
import os, pathlib, random, sys, time
import numpy

def measure(seed, settings):
    sys.audit("own.measure", seed)
    if settings.get("meet"):
        meet(pathlib.Path(settings["meet"]))
    yield {"step": 1, "score": settings["shift"] + seed / 2}
    sys.audit("own.measure", seed)
    yield {"step": 2, "score": settings["shift"] + seed, "drawn": random.random()}

class Walk:
    "Goes on between its results."

    def __init__(self, seed, settings):
        self.step, self.place, self.shift = 0, 0.0, settings["shift"]

    def __iter__(self):
        while self.step < 3:
            sys.audit("own.measure", self.step)
            self.place += random.random() + self.shift
            self.step += 1
            yield {"step": self.step, "place": self.place, "path": numpy.full(2, self.place)}

    def save(self):
        return {"step": self.step, "place": self.place}

    def load(self, state):
        self.step, self.place = state["step"], state["place"]

def walk(seed, settings):
    return Walk(seed, settings)

def meet(folder):
    "Wait until two processes are here."
    folder.mkdir(exist_ok=True)
    (folder / str(os.getpid())).touch()
    until = time.monotonic() + 200
    while len(list(folder.iterdir())) < 2:
        assert time.monotonic() < until, "the other driver never came"
        time.sleep(0.01)
"""
SCRIPT = """
import json, os, sys
shift, seed, folder = float(sys.argv[1]), int(sys.argv[2]), os.environ["MANYSEEDS_FOLDER"]
with open(folder + "/metrics.jsonl", "w") as stream:
    for step in (1, 2):
        stream.write(json.dumps({"step": step, "score": shift + seed * step}) + "\\n")
"""
WALK = 'experiment: {name: "own:walk"}'
FUNCTION = 'experiment: {name: "own:measure"}'
COMMAND = (
    'experiment: {command: [python, -S, work.py, "{shift}", "{seed}"], metrics: "{folder}/metrics.jsonl", sources: [work.py]}'
)
STUDY = """
name: own
question: q
evaluate: {metrics: {score: higher}}
grid: {experiment.shift: [0.5, 3]}
replicates: 3
pack: {size: 2}
wandb: off
"""


@pytest.fixture(scope="module", autouse=True)
def _path():
    """What is forked imports everything from this checkout."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        yield


@pytest.fixture(params=[FUNCTION, COMMAND], ids=["function", "script"])
def drivers(tmp_path, request):
    return _drivers(tmp_path, request.param)


@pytest.fixture(params=[FUNCTION, COMMAND, WALK], ids=["function", "script", "walk"])
def any_drivers(tmp_path, request):
    """Also of a function that is saved between its results and returns arrays."""
    return _drivers(tmp_path, request.param)


def _drivers(folder, experiment):
    (folder / "own.py").write_text(OWN)
    (folder / "work.py").write_text(SCRIPT)
    (folder / "study.yaml").write_text(experiment + STUDY)
    return Drivers(folder)


def _state(drivers, store):
    """The tables, and what the newest manifest says of metrics and replicates."""
    manifest = newest_manifest(open_store(drivers.folder / store, "own"))[1]
    arrays = [(*each[:5], each.values.tolist()) for each in results.arrays(drivers.folder / store, "own")]
    return tables(drivers.folder / store, "own"), manifest["metrics"], manifest["replicates"], arrays


DEATHS = [
    ("starts a seed", 2),
    ("os.rename /cut/own/evaluations", 1),
    ("os.rename /cut/own/replicates", 1),
    ("starts a seed", 1),
]


def test_a_driver_that_is_killed_again_and_again_ends_with_equal_tables(drivers):
    """In a replicate, and before and between the files of a pack; each of the four gets a little further."""
    assert drivers.end(drivers.start("whole")) == 0
    for death in DEATHS:
        assert drivers.end(drivers.start("cut", die_at=death)) == -signal.SIGKILL, death
    assert drivers.end(drivers.start("cut")) == 0
    assert _state(drivers, "cut") == _state(drivers, "whole")
    assert read(open_store(drivers.folder / "cut", "own"), "failures").num_rows == 0
    wait_until(lambda: not running(str(drivers.folder)))
    # of a script's folder at most links are left, where the driver was killed before the script was started
    wait_until(lambda: all(each.is_symlink() or each.is_dir() for each in drivers.folder.glob("manyseeds-*/**/*")))


@pytest.mark.slow
def test_a_driver_that_is_killed_at_any_one_moment_ends_with_equal_tables(any_drivers):
    drivers = any_drivers
    assert drivers.end(drivers.start("whole")) == 0
    whole = _state(drivers, "whole")
    for moment in itertools.count(1):
        store = f"cut-{moment}"
        if drivers.end(drivers.start(store, die_at=("", moment))) != -signal.SIGKILL:
            break
        assert drivers.end(drivers.start(store)) == 0
        assert _state(drivers, store) == whole, moment
    assert moment > 40


@pytest.mark.slow
@pytest.mark.skipif("RAY_ADDRESS" in os.environ, reason="it starts clusters of its own")
def test_a_killed_driver_on_ray_ends_with_the_tables_of_one_process(drivers):
    """Its cluster, workers and scripts end with it."""
    assert drivers.end(drivers.start("whole")) == 0
    for moment in (3, 6):
        assert drivers.end(drivers.start("cut", die_at=("os.rename", moment), executor="ray")) == -signal.SIGKILL
        wait_until(lambda: not running("ray::Slot", drivers.folder))
    assert drivers.end(drivers.start("cut", executor="ray")) == 0
    assert _state(drivers, "cut") == _state(drivers, "whole")


def test_two_drivers_of_one_experiment_end_with_equal_tables(tmp_path):
    """Both measure: each waits in its first replicate until the other has come to one."""
    drivers = _drivers(tmp_path, FUNCTION)
    meeting = f"experiment.meet={tmp_path / 'met'}"
    (tmp_path / "met").mkdir()
    for name in ("a", "b"):
        (tmp_path / "met" / name).touch()  # nobody waits in what is run alone
    assert drivers.end(drivers.start("whole", meeting)) == 0
    assert drivers.end(drivers.start("both", meeting, "replicates=1")) == 0
    for path in (tmp_path / "met").iterdir():
        path.unlink()
    two = [drivers.start("both", meeting) for _ in range(2)]
    assert [drivers.end(each) for each in two] == [0, 0]
    assert len(list((tmp_path / "met").iterdir())) == 2
    assert _state(drivers, "both") == _state(drivers, "whole")
    assert not (os.listdir(tmp_path / "both" / "own" / "leases"))
