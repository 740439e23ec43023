"""The files of a study's manifests, as they are written and compressed."""

import gzip
import json
import os
from pathlib import Path

import pytest

from results.errors import DamagedFile, MissingFile
from results.store import manifest as manifests
from results.store.manifest import NEWEST, compress, digest, manifest_bytes, manifest_files, manifest_of, newest_manifest
from results.store.merge import merge
from results.store.tables import delete, open_store, write_bytes
from results.store.verify import verify
from tests.results.synthetic import manifest, write


def plan(replicates):
    return json.dumps(manifest(seeds=replicates)).encode()


@pytest.fixture
def store(tmp_path):
    """A study with three manifests; the second is the newest, and the last by the time of the files is the third."""
    at = open_store(tmp_path, "synthetic")
    write(at, manifest(seeds=2))
    delete(at, "manifests")
    for number, content in enumerate((plan(1), plan(2), plan(3))):
        write_bytes(at, f"manifests/{digest(content)}.yaml", content)
        os.utime(at.path("manifests", f"{digest(content)}.yaml"), (1000 + number, 1000 + number))
    write_bytes(at, NEWEST, digest(plan(2)).encode())
    return at


def _files(store):
    return {path.name: path.read_bytes() for path in Path(store.path("manifests")).iterdir()}


def test_compressed_manifests_are_read_as_they_were_and_the_newest_stays_the_newest(store):
    before, newest = _files(store), newest_manifest(store)
    compress(store)
    after = _files(store)
    assert {f"{name}.gz": content for name, content in before.items()} == {
        name: gzip.decompress(content) for name, content in after.items()
    }
    assert newest_manifest(store) == newest
    assert {digest(manifest_bytes(store, file)) for file in manifest_files(store).values()} == set(manifest_files(store))
    assert verify(store).damage == []
    compress(store)
    assert _files(store) == after


def test_without_a_file_that_names_the_newest_it_is_the_same_after_compression(store):
    os.unlink(store.path(NEWEST))
    newest = newest_manifest(store)
    assert newest[0] == digest(plan(3))
    compress(store)
    assert newest_manifest(store) == newest


def test_a_manifest_that_is_compressed_while_it_is_read_is_found(store, monkeypatch):
    listed, newest = manifest_files(store), newest_manifest(store)
    compress(store)
    monkeypatch.setattr(manifests, "manifest_files", lambda store: listed)
    assert newest_manifest(store) == newest
    os.unlink(store.path("manifests", f"{newest[0]}.yaml.gz"))
    with pytest.raises(MissingFile):
        newest_manifest(store)


def test_a_study_without_a_manifest_has_nothing_to_compress(tmp_path):
    compress(open_store(tmp_path, "synthetic"))
    assert list(tmp_path.iterdir()) == []


def test_a_manifest_that_is_there_in_both_forms_counts_once_and_loses_one_of_them_the_next_time(store):
    name = digest(plan(2))
    write_bytes(store, f"manifests/{name}.yaml.gz", gzip.compress(plan(2)))  # as where compression was interrupted
    assert manifest_files(store)[name] == f"{name}.yaml"
    assert len(manifest_files(store)) == 3
    compress(store)
    assert len(_files(store)) == 3


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (gzip.compress(plan(2))[:-9], "can't be decompressed"),
        (gzip.compress(plan(2))[:20] + b"\xff" * 20, "can't be decompressed"),
        (b"", "its name is not the digest"),
        (plan(2), "can't be decompressed"),
        (gzip.compress(plan(4)), "its name is not the digest"),
    ],
    ids=["cut", "overwritten", "empty", "not compressed", "another"],
)
def test_a_compressed_manifest_that_is_not_what_was_written_is_refused_and_verify_names_it(store, content, reason):
    compress(store)
    file = f"manifests/{digest(plan(2))}.yaml.gz"
    write_bytes(store, file, content)
    with pytest.raises(DamagedFile, match=rf"{file} is not what was written, since .*{reason}.*: bring it from a copy"):
        manifest_of(store)
    assert any(what.startswith(store.path(file)) and "is damaged" in what for what, _ in verify(store).damage)


def test_a_small_file_of_a_huge_manifest_is_refused(store, monkeypatch):
    compress(store)
    monkeypatch.setattr(manifests, "MOST_BYTES", 10_000)
    write_bytes(store, f"manifests/{digest(plan(2))}.yaml.gz", gzip.compress(b" " * 10_001))
    with pytest.raises(DamagedFile, match=r"has more than 10000 bytes, decompressed"):
        manifest_of(store)


def test_merging_takes_a_manifest_once_whether_it_is_compressed_or_not(store, tmp_path):
    compressed = open_store(tmp_path / "other", "synthetic")
    assert merge(compressed, [store]).manifests == 3
    compress(compressed)
    assert merge(compressed, [store]).manifests == 0
    assert merge(store, [compressed]).manifests == 0
    empty = open_store(tmp_path / "empty", "synthetic")
    assert merge(empty, [compressed]).manifests == 3
    assert manifest_of(empty) == json.loads(plan(2))
