"""A store on Google Cloud Storage, by an emulator of its HTTP interface."""

import subprocess
import sys
import time

import pytest

from benchmarks.chaos.ports import answers, held_port
from results.errors import StoreError
from results.store import filesystem, merge
from results.store import tables as store
from results.store.tables import commit, committed, open_store, read
from tests.results.store.sample_rows import commit_pack, in_order, pack_tables

TABLES = ["replicates", "evaluations", "profiles", "curves", "probes"]


# in a process of its own: pyarrow holds Python's lock in some requests, which a server of this process would wait for
SERVE = "import sys; from gcp_storage_emulator.server import create_server as c; c('127.0.0.1', int(sys.argv[1]), True, 'bucket').run()"


@pytest.fixture
def uri():
    pytest.importorskip("gcp_storage_emulator", reason="the gs:// tests need gcp-storage-emulator")
    port = held_port()
    process = subprocess.Popen([sys.executable, "-c", SERVE, str(port)])
    while not answers(port):
        assert process.poll() is None, "the emulator does not start"
        time.sleep(0.05)
    yield f"gs://anonymous@bucket/some/runs?scheme=http&endpoint_override=127.0.0.1:{port}"
    process.kill()
    process.wait()


def test_google_cloud_storage_behaves_as_a_folder_does(uri, tmp_path):
    at, here = open_store(uri, "study"), open_store(tmp_path, "study")
    assert store.studies(uri) == []
    assert store.list_names(at, "manifests") == []
    assert read(at, "curves").num_rows == 0
    at.check_writable()
    assert store.studies(uri) == []
    for pack, keys in {"fd-1": ["a"], "fd-2": ["b", "a"], "fd-3": ["c"]}.items():
        commit_pack(at, pack, keys)
        commit_pack(here, pack, keys)
    commit(at, "fd-3", pack_tables("fd-3", ["c"]))  # again
    assert committed(at).num_rows == 3
    assert {table: in_order(read(at, table)) for table in TABLES} == {table: in_order(read(here, table)) for table in TABLES}
    store.write_bytes(at, "checkpoints/fd-4/100.safetensors", b"old")
    store.write_bytes(at, "checkpoints/fd-4/100.safetensors", b"state" * 1_000_000)
    assert store.studies(uri) == ["study"]
    assert store.list_names(at, "checkpoints") == ["fd-4"]
    assert store.list_names(at, "checkpoints/fd-4") == ["100.safetensors"]
    assert store.read_bytes(at, "checkpoints/fd-4/100.safetensors") == b"state" * 1_000_000
    store.delete(at, "checkpoints/fd-4")
    store.delete(at, "checkpoints/fd-4")
    assert store.list_names(at, "checkpoints") == []
    with pytest.raises(FileNotFoundError):
        store.read_bytes(at, "checkpoints/fd-4/100.safetensors")
    before = {table: in_order(read(at, table)) for table in TABLES}
    merge.compact(at)
    assert len(store.list_names(at, "replicates")) == 1
    assert {table: in_order(read(at, table)) for table in TABLES} == before
    with pytest.raises(StoreError, match="the store gs://anonymous@missing/runs can't be written"):
        open_store(uri.replace("bucket/some", "missing"), "study").check_writable()


def test_a_server_that_is_gone_is_refused_within_seconds(monkeypatch):
    monkeypatch.setattr(filesystem, "_GCS_S", 1)
    at = open_store(f"gs://anonymous@bucket/runs?scheme=http&endpoint_override=127.0.0.1:{held_port()}", "study")
    with pytest.raises(OSError, match="google::cloud"):
        store.list_names(at, "curves")
    with pytest.raises(OSError, match=r"bucket/runs/study/curves/a can't be read"):
        store.read_bytes(at, "curves/a")
    with pytest.raises(OSError, match=r"bucket/runs/study/curves/a can't be written"):
        store.write_bytes(at, "curves/a", b"1")
