"""Measurements are kept for the same shape, size, machine and numerics, used by the next command, and never trusted blindly."""

import json
from dataclasses import replace

import pytest
import torch

import harness.prepare
from harness.local import Local
from harness.planning.kept_rates import KeptRates
from harness.planning.throughput import Rate
from harness.prepare import executor_of, planner_of, prepare, starter_of
from harness.study.load import load
from results.errors import StudyError
from tests.harness.packs import condition, pack
from tests.harness.tiny import write_study

RATE = Rate(2, 0.25, 3.0, 1000, 0, 0.04)


class _Counting(Local):
    """Counts what it measures, and measures nothing."""

    def __init__(self, machine="cpu: one"):
        super().__init__("cpu")
        self.name, self.count = machine, 0

    def machine(self, kind=None):
        return self.name

    def measure(self, one, kind=None):
        self.count += 1
        return replace(RATE, size=len(one.replicates))


@pytest.fixture
def prepared(tmp_path, monkeypatch):
    """prepared(executor, …): the sentences said while a study is prepared, with a cache folder of the test's own."""
    monkeypatch.setenv("MANYSEEDS_CACHE", str(tmp_path / "cache"))
    path = write_study(tmp_path)

    def call(executor, *overrides, fresh=False):
        said = []
        prepare(load(path, [f"store={tmp_path / 'runs'}", *overrides]), executor, say=said.append, fresh=fresh)
        return said

    return call


def _files(tmp_path):
    return sorted((tmp_path / "cache" / "rates").iterdir())


def test_a_shape_is_measured_once_and_again_where_anything_differs(prepared, tmp_path):
    first, again = _Counting(), _Counting()
    shapes = ("shape 1 of 2 (transformer)", "shape 2 of 2 (lstm)")  # each is announced, however little time lies between them
    assert [line for line in prepared(first) if "measuring" in line] == [f"measuring {shape}: a pack of 2" for shape in shapes]
    assert (first.count, len(_files(tmp_path))) == (2, 2)
    assert prepared(again) == []
    assert prepared(again, "replicates=30", "train.lr=1") == []  # neither changes what a pack costs
    assert again.count == 0
    for executor, *overrides in (
        (_Counting(), "pack.size=3"),
        (_Counting("cpu: two"),),
        (_Counting(), "train.batch=8"),
        (_Counting(), "evaluate.watch={every: 2}"),
    ):
        assert prepared(executor, *overrides)
        assert executor.count == 2
    prepared(again, fresh=True)
    assert again.count == 2


def _nested(text):
    return "[" * 10**5


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text[:-20],
        lambda text: text.replace("0.25", "NaN"),
        lambda text: text.replace("0.25", "-1"),
        lambda text: text.replace('"step_s":0.25', '"step_s":"0.25"'),
        lambda text: text.replace("cpu: one", "cpu: other"),
        lambda text: json.dumps([text]),
        lambda text: text + " " * 2**21,
        _nested,
    ],
)
def test_what_is_damaged_or_of_something_else_is_measured_again_and_said_once(prepared, tmp_path, damage):
    prepared(_Counting())
    for path in _files(tmp_path):
        before = path.read_text()
        path.write_text(damage(before))
        assert path.read_text() != before
    executor = _Counting()
    said = prepared(executor)
    assert executor.count == 2
    assert len([text for text in said if "can't be used and is measured again" in text]) == 1
    assert prepared(_Counting()) == []  # mended


def test_a_folder_that_cannot_be_written_is_said_once_and_costs_only_time(prepared, tmp_path):
    (tmp_path / "cache").write_text("a file")
    executor = _Counting()
    said = prepared(executor)
    assert executor.count == 2
    assert len([text for text in said if "cache" in text]) == 1


def test_packs_of_a_module_of_ones_own_are_not_kept(tmp_path):
    kept, own = KeptRates(tmp_path, print), condition(model_fields={})
    one = pack(own, [(0, 0), (1, 1)])
    kept.keep(one, "cpu", RATE)
    assert kept.find(one, "cpu") == RATE
    from models.custom.custom import Custom

    other = pack(replace(own, model=Custom("mine:Model")), [(0, 0), (1, 1)])
    kept.keep(other, "cpu", RATE)
    assert kept.find(other, "cpu") is None


def test_files_do_not_grow_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr("harness.planning.kept_rates._MOST", 6)
    kept, one = KeptRates(tmp_path, print), pack(condition(), [(0, 0), (1, 1)])
    for number in range(20):
        kept.keep(one, f"cpu {number}", RATE)
    assert len(list((tmp_path / "rates").iterdir())) <= 7
    assert kept.find(one, "cpu 19") == RATE


def test_a_plan_for_ray_on_this_machine_starts_no_ray(tmp_path, monkeypatch):
    study = load(write_study(tmp_path), ["executor=ray", "device=cpu"])
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr("harness.local.cores", lambda: 7)
    planner = planner_of(study)
    assert (type(planner), planner.slots, planner.device) == (Local, 7, "cpu")
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:1")
    monkeypatch.setattr(harness.prepare, "executor_of", lambda study, say: "the cluster")
    assert planner_of(study) == "the cluster"


@pytest.mark.parametrize("begin", [planner_of, starter_of, executor_of])
def test_a_gpu_by_its_number_is_one_slot_of_this_process(tmp_path, monkeypatch, begin):
    """Each of these took every GPU there is."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setattr("harness.machine.device.prepare", lambda device: None)
    executor = begin(load(write_study(tmp_path), ["executor=auto", "device=cuda:1"]))
    assert (type(executor), executor.slots, executor.torch_device) == (Local, 1, torch.device("cuda", 1))


class _Unlucky(_Counting):
    """Can't measure packs with these seeds."""

    def __init__(self, *seeds):
        super().__init__()
        self.seeds = set(seeds)

    def measure(self, one, kind=None):
        if self.seeds & {each.init_seed for each in one.replicates}:
            raise StudyError("the model broke")
        return super().measure(one, kind)


def test_one_unlucky_seed_is_a_warning_and_a_model_that_no_seed_can_train_is_refused(prepared):
    said = prepared(_Unlucky(1))
    assert said[1] == "warning: one of the seeds 0 to 1 can't be trained, and others can: the model broke"
    with pytest.raises(StudyError, match="the model broke"):
        prepared(_Unlucky(1, 1001, 2001), fresh=True)
