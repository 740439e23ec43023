"""Advice that can be followed, and refusals that name the cure."""

import shutil

import pytest
from click.testing import CliRunner

import harness.prepare
from harness.local import run_manifest
from harness.prepare import starter_of
from harness.study.load import load
from launch.cli import cli
from results.errors import DamagedFile, StudyError
from results.output import output_folder
from tests.harness.tiny import write_study
from tests.page_code import ROOT


@pytest.mark.parametrize(("address", "begins"), [("127.0.0.1:6379", "cluster"), (None, "refused")])
def test_a_head_without_a_gpu_asks_its_cluster_for_cuda(tmp_path, monkeypatch, address, begins):
    """As in a Ray job, whose head is often a machine without a GPU."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    if address:
        monkeypatch.setenv("RAY_ADDRESS", address)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr(harness.prepare, "executor_of", lambda study, say: "cluster")
    study = load(write_study(tmp_path), ["executor=auto", "device=cuda"])
    if begins == "cluster":
        assert starter_of(study) == "cluster"
    else:
        with pytest.raises(StudyError, match="torch sees no CUDA device"):
            starter_of(study)


def test_a_head_asks_for_a_cpu_as_it_did(tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:6379")
    monkeypatch.setattr(harness.prepare, "planner_of", lambda study, say: "this process")
    assert starter_of(load(write_study(tmp_path), ["executor=auto", "device=cpu"])) == "this process"


@pytest.mark.parametrize("text", ["name: a study\n", '{"study": "a"}'])
def test_what_is_no_manifest_is_refused_with_where_manifests_come_from(tmp_path, text):
    path = tmp_path / "study.yaml"
    path.write_text(text)
    with pytest.raises(
        StudyError, match=r"study\.yaml is no manifest.*: give the file that `manyseeds plan STUDY --write FILE` made"
    ):
        run_manifest(path, str(tmp_path / "runs"), "cpu")


def test_pages_are_not_written_to_a_uri():
    with pytest.raises(StudyError, match="--out s3://bucket/report must be a local folder"):
        output_folder("s3://bucket/report")


def test_glitches_takes_the_option_that_it_names():
    assert "--allow-import" in CliRunner().invoke(cli, ["glitches", "--help"]).output


def test_a_store_is_compared_beyond_a_study_with_one_condition(tmp_path):
    for study in ("fflm-lstm", "fflm-quick"):
        shutil.copytree(ROOT / "docs/studies/flipflop" / study, tmp_path / study)
    both = CliRunner().invoke(cli, ["compare", str(tmp_path)])
    assert both.exit_code == 0
    assert "fflm-lstm: lstm is the only condition of the study" in both.output
    assert "P(errs more)" in both.output
    alone = CliRunner().invoke(cli, ["compare", str(tmp_path), "fflm-lstm"])
    assert isinstance(alone.exception, StudyError)
    assert "only condition" in str(alone.exception)


@pytest.mark.parametrize("command", ["report", "claims", "compare", "spread"])
def test_a_study_that_can_not_be_read_hides_no_other(tmp_path, command):
    for study, name in (("fflm-quick", "fflm-quick"), ("fflm-lstm", "fflm-lstm"), ("fflm-quick", "unreadable")):
        shutil.copytree(ROOT / "docs/studies/flipflop" / study, tmp_path / name)
    (manifest,) = (tmp_path / "unreadable" / "manifests").iterdir()
    manifest.write_text("{")
    both = CliRunner().invoke(cli, [command, str(tmp_path)])
    assert both.exit_code == 1
    assert f"unreadable: {manifest} " in both.output
    assert len(both.output.splitlines()) > 1
    alone = CliRunner().invoke(cli, [command, str(tmp_path), "unreadable"])
    assert isinstance(alone.exception, DamagedFile)
    for name in ("fflm-quick", "fflm-lstm"):
        (manifest,) = (tmp_path / name / "manifests").iterdir()
        manifest.write_text("{")
    none = CliRunner().invoke(cli, [command, str(tmp_path)])
    assert isinstance(none.exception, DamagedFile)
    assert "fflm-lstm: " in none.output
