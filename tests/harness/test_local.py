"""A manifest that is run twice, or in a store that holds other rows of its study: `python -m harness.local`."""

from pathlib import Path

import pytest
import torch

from harness import local
from harness.executing import run_pack
from harness.local import run_manifest
from harness.machine.device import planned_numerics
from harness.planning.manifest import build, to_bytes
from harness.planning.plan import plan
from harness.study.load import load
from results.errors import StudyError
from results.store.manifest import compress
from results.store.tables import committed, open_store
from tests.harness.killed import out_of_memory, without_report
from tests.harness.tiny import files, tables, write_study

SHORT = ("only=[lstm]", "train.steps=3", "evaluate.sets.online.every=2")


@pytest.fixture
def written(tmp_path, monkeypatch):
    """A function that plans the study for an empty store and writes the manifest. renamed: the set `dense`."""
    without_report(monkeypatch)

    def write(*overrides, name="manifest.yaml", renamed="dense"):
        source = Path(write_study(tmp_path))
        source.write_text(source.read_text().replace("dense: {p_ignore: 0.1", f"{renamed}: {{p_ignore: 0.1"))
        study, numerics = load(source, [*SHORT, *overrides]), planned_numerics("cpu")
        path = tmp_path / name
        path.write_bytes(to_bytes(build(plan(study, None, 2, numerics=numerics), numerics, {})))
        return path

    return write


def _run(manifest, store):
    return run_manifest(manifest, str(store), "cpu")


def _no_training(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("something is trained again")

    monkeypatch.setattr(run_pack, "train", refuse)


@pytest.mark.parametrize(
    "change",
    ["evaluate.sets.dense={p_ignore: 0.5, sequences: 50}", "evaluate.sets.dense.sequences=60"],
)
def test_a_set_that_means_something_else_now_is_refused_before_anything_is_written(written, tmp_path, change):
    """The ids of packs hash how many sets there are, and not what they are."""
    store = tmp_path / "runs"
    assert _run(written(), store) == 0
    manifests = sorted((store / "tiny" / "manifests").iterdir())
    before = files(store)
    with pytest.raises(StudyError, match=r"the evaluation set 'dense' .* give the new set another name"):
        _run(written(change, name="other.yaml"), store)
    assert files(store) == before
    assert sorted((store / "tiny" / "manifests").iterdir()) == manifests


def test_a_set_that_is_exchanged_for_another_is_refused(written, tmp_path):
    assert _run(written(), tmp_path / "runs") == 0
    other = written("evaluate.sets.denser.p_ignore=0", name="other.yaml", renamed="denser")
    with pytest.raises(StudyError, match="committed with the evaluation set dense, which the study no longer has"):
        _run(other, tmp_path / "runs")


def test_a_compressed_manifest_is_run_and_its_store_holds_what_it_did(written, tmp_path, monkeypatch):
    store = tmp_path / "runs"
    assert _run(written(), store) == 0
    compress(open_store(store, "tiny"))
    (compressed,) = (store / "tiny" / "manifests").iterdir()
    with monkeypatch.context() as patch:
        _no_training(patch)
        assert _run(compressed, store) == 0
    assert _run(compressed, tmp_path / "other") == 0
    assert tables(tmp_path / "other") == tables(store)


def test_packs_that_were_committed_as_halves_are_not_trained_again(written, tmp_path, monkeypatch, capsys):
    manifest, store = written(), tmp_path / "runs"
    with monkeypatch.context() as patch:
        out_of_memory(patch)
        assert _run(manifest, store) == 0
    before = files(store)
    _no_training(monkeypatch)
    assert _run(manifest, store) == 0
    assert "tiny: 0 of 4 replicates in 0 packs" in capsys.readouterr().out
    assert files(store) == before


def _measures_at_most(monkeypatch, most):
    """Let the device hold no more than `most` replicates where packs are timed."""
    real = local.measure

    def measure(pack, device):
        if len(pack.replicates) > most:
            raise torch.OutOfMemoryError("planted")
        return real(pack, device)

    monkeypatch.setattr(local, "measure", measure)


def test_packs_that_were_planned_for_a_larger_device_go_on_as_smaller_ones(written, tmp_path, monkeypatch, capsys):
    _measures_at_most(monkeypatch, 1)
    out_of_memory(monkeypatch)
    assert _run(written(), tmp_path / "runs") == 0
    assert committed(open_store(tmp_path / "runs", "tiny")).num_rows == 4
    said = capsys.readouterr().out
    assert said.count("a pack of 2 of lstm does not fit on this device: it goes on as smaller ones") == 1


def test_a_replicate_that_the_device_does_not_hold_is_said_in_one_sentence(written, tmp_path, monkeypatch, capsys):
    _measures_at_most(monkeypatch, 0)
    assert local.main([str(written()), str(tmp_path / "runs"), "--device", "cpu"]) == 2
    said = capsys.readouterr().err
    assert "one replicate of lstm does not fit on the device: choose a smaller model or batch" in said
    assert "Traceback" not in said


def test_only_the_replicates_that_are_missing_of_a_pack_are_trained(written, tmp_path, capsys):
    """The store holds one replicate of the first pack, in a pack of its own."""
    manifest, store = written(), tmp_path / "runs"
    assert _run(written("replicates=1", name="one.yaml"), store) == 0
    assert _run(manifest, store) == 0
    assert "tiny: 3 of 4 replicates in 2 packs" in capsys.readouterr().out
    assert committed(open_store(store, "tiny")).num_rows == 4
    assert _run(manifest, tmp_path / "fresh") == 0
    assert tables(store) == tables(tmp_path / "fresh")
