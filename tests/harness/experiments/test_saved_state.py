"""Functions that are saved between two results, and arrays that they return: a run that was killed ends as one that was not."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

import harness.executing.run_pack
import harness.training.checkpoint as checkpoints
import results
from harness.experiments.entries import BadResult
from harness.experiments.measure import measure, saved_seconds
from harness.experiments.saved_state import decode, encode
from harness.machine.interrupt import Interrupt
from harness.replicates.rerun import rerun
from harness.run import run
from harness.study.load import load
from models.custom import custom
from results.errors import DamagedFile, StudyError
from results.report.replicate_page import write_replicate_page
from results.report.report import write_report
from results.store.manifest import newest_manifest
from results.store.merge import merge
from results.store.tables import committed, list_names, open_store, read
from results.store.verify import verify
from tests.harness.experiments import own_functions
from tests.harness.killed import without_report
from tests.harness.tiny import tables

MODULE = own_functions.__name__
STUDY = """
name: own
question: q
experiment: {{name: "{module}:{function}"}}
replicates: 3
executor: local
wandb: off
"""


@pytest.fixture(autouse=True)
def _patched(monkeypatch):
    monkeypatch.setattr(custom, "_allowed", {MODULE})
    monkeypatch.setattr(harness.executing.run_pack, "measure", partial(measure, checkpoint_s=0.0))
    for name, empty in (("kill_at", set()), ("stop_at", set()), ("walked", [])):
        monkeypatch.setattr(own_functions, name, empty)
    without_report(monkeypatch)


def start(folder, function, *overrides, store="runs"):
    path = folder / "own.yaml"
    path.write_text(STUDY.format(module=MODULE, function=function))
    return run(load(path, [f"store={folder / store}", *overrides]), say=lambda text: None)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The store of three walks, six steps each, that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(custom, "_allowed", {MODULE})
        without_report(patch)
        assert start(folder, "walk") == 0
    return folder / "runs"


def kept(root, **chosen):
    return [(*each[:2], *each[3:5], each.values.tolist()) for each in results.arrays(root, "own", **chosen)]


@pytest.mark.parametrize(("function", "packed"), [("walk", False), ("walks", True)])
def test_a_call_that_was_saved_in_its_middle_counts_as_long_as_it_took(tmp_path, function, packed):
    own_functions.stop_at.add((1, 3))
    own_functions.kill_at.add(3)
    with pytest.raises(own_functions.Gone):
        start(tmp_path, function, "pack.size=3")
    store = open_store(tmp_path / "runs", "own")
    (pack,) = list_names(store, "checkpoints")
    state = checkpoints.newest(store, pack)[1]
    begun, done = state["begun"]["seconds"], len(state["done"])
    assert saved_seconds(store, pack, state["keys"], packed, 1000.0) == pytest.approx(1000.0 * done + begun)
    assert saved_seconds(store, pack, state["keys"], packed, 1e-9) <= 1e-9 * len(state["keys"])
    assert saved_seconds(store, pack, state["keys"][1:], packed, 1000.0) == 0


def test_a_function_with_save_and_load_goes_on_between_two_results(tmp_path, whole):
    """It dies in each replicate, once or twice; no step is taken twice, and all generators go on where they were."""
    moments = [(seed, step) for seed in range(3) for step in range(6)]
    for moment in moments[1::4]:
        own_functions.stop_at.add(moment)
        with pytest.raises(own_functions.Gone):
            start(tmp_path, "walk")
        own_functions.stop_at.clear()
    assert start(tmp_path, "walk") == 0
    assert own_functions.walked == moments
    assert tables(tmp_path / "runs", "own") == tables(whole, "own")
    assert kept(tmp_path / "runs") == kept(whole)


def test_a_function_of_many_seeds_goes_on_between_two_results(tmp_path):
    assert start(tmp_path, "walks", store="whole") == 0
    own_functions.walked.clear()
    for step in (1, 3):
        own_functions.kill_at.add(step)
        with pytest.raises(own_functions.Gone):
            start(tmp_path, "walks")
        own_functions.kill_at.clear()
    assert start(tmp_path, "walks") == 0
    assert own_functions.walked == [(0, step) for step in range(4)]
    assert tables(tmp_path / "runs", "own") == tables(tmp_path / "whole", "own")
    assert kept(tmp_path / "runs") == kept(tmp_path / "whole")


@pytest.mark.parametrize(("saves", "again"), [(True, []), (False, [(1, 0)])], ids=["saved", "not saved"])
def test_a_request_to_stop_is_answered_between_two_results(tmp_path, monkeypatch, whole, saves, again):
    """After the first step of the second walk: nothing is lost where it can be saved, else that walk begins again."""
    monkeypatch.setattr(harness.executing.run_pack, "measure", partial(measure, checkpoint_s=1000.0))
    if not saves:
        monkeypatch.delattr(own_functions.Walk, "save")
        monkeypatch.delattr(own_functions.Walk, "load")
    with monkeypatch.context() as patch:
        patch.setattr(Interrupt, "requested", lambda self: (1, 0) in own_functions.walked)
        assert start(tmp_path, "walk") == 130
    assert own_functions.walked[-1] == (1, 0)
    assert start(tmp_path, "walk") == 0
    steps = [(seed, step) for seed in range(3) for step in range(6)]
    assert own_functions.walked == [*steps[:7], *again, *steps[7:]]
    assert tables(tmp_path / "runs", "own") == tables(whole, "own")


def test_what_is_saved_comes_back_as_it_was():
    state = {
        "nan": float("nan"),
        3: [True, None, "text", 2**100, 0.1],
        "numpy": np.arange(4, dtype=np.int16).reshape(2, 2),
        "scalar": np.float32(0.5),
        "torch": torch.tensor([[1.5]], dtype=torch.bfloat16),
        "pair": ({}, ()),
    }
    tensors = {}
    data = encode(state, tensors)
    state["numpy"][0, 0] = 9  # what is saved does not change any more
    back = decode(data, tensors)
    assert np.isnan(back.pop("nan"))
    assert back["numpy"].dtype == np.int16
    assert back.pop("numpy").tolist() == [[0, 1], [2, 3]]
    assert torch.equal(back["torch"], state["torch"])
    assert back.pop("torch").dtype == torch.bfloat16
    assert back == {3: [True, None, "text", 2**100, 0.1], "scalar": np.float32(0.5), "pair": ({}, ())}


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        ("odd_state", "what save() returned['deep'][1] is of type set: save numbers, texts, arrays and tensors"),
        ("half_a_pair", "the function returned a Walk with save alone: write both save() and load(state)"),
        ("arrays_alone", "there are arrays alone: return at least one number too"),
        ("texts", "the array names has elements of <U1: return whole numbers, floats or booleans"),
        ("array_once", "the metric place is a number here and was an array in the replicates before"),
    ],
)
def test_what_can_not_be_kept_fails_with_its_reason(tmp_path, function, sentence):
    assert start(tmp_path, function) == 1
    assert any(sentence in row["exception"] for row in read(open_store(tmp_path / "runs", "own"), "failures").to_pylist())


def test_a_state_with_keys_of_another_kind_is_refused():
    with pytest.raises(BadResult, match=r"has the key \(1, 2\), and a key is a text or a whole number"):
        encode({(1, 2): 3}, {})


def test_arrays_are_read_by_name_and_key(whole):
    found = kept(whole)
    assert [each[:4] for each in found] == [("walk", seed, step, "place") for seed in range(3) for step in range(1, 7)]
    values = {row["key"]: row for row in read(open_store(whole, "own"), "evaluations").to_pylist() if row["metric"] == "x"}
    last = {each.key: each.values for each in results.arrays(whole, "own", "place") if each.step == 6}
    assert {key: place[0] for key, place in last.items()} == {key: row["value"] for key, row in values.items()}
    key = next(iter(last))
    assert len(kept(whole, key=key)) == 6
    with pytest.raises(StudyError, match=r"no replicate of own has an array 'plac'; arrays: place; did you mean place\?"):
        kept(whole, name="plac")
    assert kept(whole, key=key[:9]) == kept(whole, key=key)
    for other, sentence in (
        ("zz", "no key of the 3 replicates of the study own begins with 'zz'"),
        ("", "no key of the 3 replicates of the study own begins with ''"),
    ):
        with pytest.raises(StudyError, match=sentence):
            kept(whole, key=other)


def test_arrays_of_no_study_are_refused(whole, tmp_path):
    assert [each.key for each in results.arrays(whole, name="place")] == [each.key for each in results.arrays(whole, "own")]
    for store, study, sentence in (
        (whole, "own-study", "there is no study 'own-study' in "),
        (tmp_path / "none", "own", "there is no study in "),
    ):
        with pytest.raises(StudyError, match=sentence):
            list(results.arrays(store, study))


def test_a_manifest_knows_arrays_and_a_report_names_them(whole):
    store = open_store(whole, "own")
    assert newest_manifest(store)[1]["metrics"]["place"] == {"better": "", "kind": "array"}
    page = write_report(store).read_text()
    assert "<code>place</code> (18)" in page
    assert "place is" not in page  # no number of the summary


def test_a_replicate_of_an_experiment_has_a_page_with_its_values_and_arrays(whole):
    store = open_store(whole, "own")
    row = committed(store).to_pylist()[0]
    page = Path(write_replicate_page(store, row["key"])).read_text()
    assert page.count(">place</th>") == 6
    assert "float64[2]" in page
    assert page.count(">x</th>") == 6
    assert f"walk: seed {row['init_seed']}" in page


def test_a_damaged_array_is_refused_and_found_and_made_again(whole, tmp_path):
    """In a store that was merged from another one, arrays and all."""
    store = open_store(tmp_path / "runs", "own")
    merge(store, [open_store(whole, "own")])
    assert kept(tmp_path / "runs") == kept(whole)
    key = committed(store)["key"][0].as_py()
    path = Path(store.shared("artifacts", key, "0", "3.safetensors"))
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)
    with pytest.raises(
        DamagedFile, match=rf"3.safetensors is damaged, .*manyseeds rerun {store.shell_word} {key[:12]} --keep weights"
    ):
        kept(tmp_path / "runs")
    assert any("3.safetensors is damaged" in what for what, _ in verify(store).damage)
    path.unlink()
    with pytest.raises(DamagedFile, match=r"3.safetensors, which holds arrays of a replicate, is gone"):
        kept(tmp_path / "runs")
    assert rerun(store, key, keep=True).agrees
    assert kept(tmp_path / "runs") == kept(whole)
