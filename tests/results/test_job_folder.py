"""What is said in a Ray job, whose folder is removed with all that it has written."""

from dataclasses import replace

import pyarrow.fs
import pytest

from harness.run import _report
from results.errors import StoreError
from results.job_folder import in_ray_job
from results.store import tables
from results.store.tables import Store, open_store
from tests.results.synthetic import manifest, write

S3 = Store(pyarrow.fs.S3FileSystem(anonymous=True, region="eu-west-1"), "bucket/runs", "tiny")


def test_a_job_is_known_by_its_variable_and_by_its_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("RAY_JOB_CONFIG_JSON_ENV_VAR", raising=False)
    folder = tmp_path / "runtime_resources" / "working_dir_files" / "_ray_pkg_0"
    folder.mkdir(parents=True)
    assert not in_ray_job()
    with monkeypatch.context() as inside:
        inside.chdir(folder)
        assert in_ray_job()
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", "{}")
    assert in_ray_job()


def test_a_store_is_addressed_without_credentials(tmp_path):
    assert S3.address == "s3://bucket/runs"
    assert open_store("s3://key:secret@bucket/runs?region=eu-west-1", "tiny").address == "s3://bucket/runs"
    assert open_store(tmp_path, "tiny").address == str(tmp_path)


def test_a_report_that_a_job_does_not_keep_is_named_by_its_command(monkeypatch, tmp_path):
    store = open_store(tmp_path / "runs", "synthetic")
    write(store, manifest(4), ended=4)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RAY_JOB_CONFIG_JSON_ENV_VAR", raising=False)
    assert _report(store)[0] == f"report: {store.path('report')}/index.html"
    monkeypatch.setattr(Store, "is_local", False)
    monkeypatch.setattr(Store, "address", "s3://bucket/runs")
    store = replace(store, options="?endpoint_override=host:9")
    assert _report(store)[0] == "report: report-synthetic/index.html"
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", "{}")
    again = "manyseeds report 's3://bucket/runs?endpoint_override=host:9' synthetic --out report"
    assert _report(store)[0] == f"report: `{again}` writes it on any machine; that of this job is not kept"


@pytest.mark.parametrize(
    ("why", "in_job", "advice"),
    [
        ("AWS Error ACCESS_DENIED during PutObject operation", True, "the node where this job runs has no credentials for it"),
        ("AWS Error ACCESS_DENIED during PutObject operation", False, "name a path or URI that can be"),
        ("AWS Error NETWORK_CONNECTION during PutObject operation", True, "name a path or URI that can be"),
    ],
)
def test_a_job_without_credentials_is_told_so(why, in_job, advice, monkeypatch):
    def refuse(*arguments):
        raise StoreError("it can't be written") from OSError(why)

    monkeypatch.setattr(tables, "write_bytes", refuse)
    monkeypatch.setattr(tables, "delete", lambda store, name: None)
    monkeypatch.delenv("RAY_JOB_CONFIG_JSON_ENV_VAR", raising=False)
    if in_job:
        monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", "{}")
    with pytest.raises(StoreError) as refused:
        S3.check_writable()
    assert f"the store s3://bucket/runs can't be written ({why}): {advice}" in str(refused.value)
