"""What is said in a Ray job, whose folder is removed with all that it has written."""

from pathlib import Path

import pyarrow.fs
import pytest

from harness.run import _report
from results.errors import StoreError
from results.job_folder import in_ray_job
from results.store import tables
from results.store.tables import Store, committed, open_store, read_bytes
from tests.results.store.faulty_s3 import KEY, SECRET, s3_server
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


def test_the_report_of_a_job_is_kept_in_its_store(monkeypatch, tmp_path):
    store = open_store(tmp_path / "runs", "synthetic")
    write(store, manifest(4), ended=4)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RAY_JOB_CONFIG_JSON_ENV_VAR", raising=False)
    assert _report(store)[0] == f"report: {store.path('report')}/index.html"
    with s3_server("moto", tmp_path / "server") as server:
        uri = f"s3://{KEY}:{SECRET}@bucket/runs?scheme=http&region=us-east-1&endpoint_override=127.0.0.1:{server.port}"
        store = open_store(uri, "synthetic")
        write(store, manifest(4), ended=4)
        whole = committed(store).num_rows
        assert _report(store)[0] == "report: report-synthetic/index.html"
        with pytest.raises(FileNotFoundError):
            read_bytes(store, "report/index.html")
        monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", "{}")
        again = f"manyseeds report 's3://bucket/runs{store.options}' synthetic --out report"
        assert _report(store)[0] == (
            f"report: s3://bucket/runs/synthetic/report/index.html; `{again}` writes it to a folder, on any machine"
        )
        local = {path.relative_to("report-synthetic"): path for path in Path("report-synthetic").rglob("*") if path.is_file()}
        assert len(local) > 10
        for name, path in local.items():
            assert read_bytes(store, f"report/{name.as_posix()}") == path.read_bytes(), name
        assert committed(store).num_rows == whole  # its copies of the tables are not read as tables


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
