"""Writes to a folder, where the file system or another driver does what few do."""

import errno
import os
import stat

import pytest

from results.errors import StoreError
from results.store.tables import open_store, read_bytes, write_bytes


@pytest.mark.parametrize(("number", "written"), [(errno.EINVAL, True), (errno.ENOTSUP, True), (errno.EIO, False)])
def test_a_file_system_that_cannot_sync_folders_takes_files_all_the_same(tmp_path, monkeypatch, number, written):
    """The file was in its place, and the person was told that nothing was committed."""
    real = os.fsync

    def sync(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(number, os.strerror(number))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
    store = open_store(tmp_path, "study")
    if not written:
        with pytest.raises(StoreError, match=os.strerror(number)):
            write_bytes(store, "a/b", b"data")
        return
    write_bytes(store, "a/b", b"data")
    assert read_bytes(store, "a/b") == b"data"


@pytest.mark.parametrize(("times", "written"), [(3, True), (9, False)])
def test_a_folder_that_another_driver_removes_while_it_is_empty_is_made_again(tmp_path, monkeypatch, times, written):
    """Drivers that began together at a new store could end each other with "can't be written"."""
    real, removed = os.makedirs, []

    def make(folder, exist_ok=False):
        real(folder, exist_ok=exist_ok)
        if len(removed) < times:
            removed.append(os.rmdir(folder))

    monkeypatch.setattr(os, "makedirs", make)
    store = open_store(tmp_path / "runs", "study")
    if not written:
        with pytest.raises(StoreError, match="No such file or directory"):
            write_bytes(store, "file", b"data")
        return
    write_bytes(store, "file", b"data")
    assert read_bytes(store, "file") == b"data"
    assert len(removed) == times
