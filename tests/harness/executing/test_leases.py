"""Leases: hints in the store that divide a study's packs between drivers, and that nothing depends on."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from harness.executing import leases as module
from harness.executing.leases import LEASE_S, Leases, read
from results.store.tables import open_store, write_bytes
from tests.harness.tiny import STUDY, tables

ROOT = Path(__file__).parents[3]


@pytest.fixture
def store(tmp_path):
    return open_store(tmp_path / "runs", "tiny")


def _lease(store, pack="a", **changes):
    """A lease as another driver, on another machine, would write it."""
    content = {"holder": "far:1:7:x", "expires": time.time() + LEASE_S} | changes
    write_bytes(store, f"leases/{pack}.json", json.dumps(content).encode())


def test_a_pack_is_held_by_one_driver_until_it_drops_it(store):
    one, two = Leases(store, holder="far:1:7:x"), Leases(store, holder="near:2:8:y")
    assert one.take("a")
    assert not two.take("a")
    assert two.take("b")
    one.drop("a")
    assert two.take("a")
    two.close()
    assert not list((Path(store.root) / "tiny" / "leases").iterdir())


def test_a_driver_takes_what_it_holds_again(store):
    one = Leases(store)
    assert one.take("a")
    assert one.take("a")


def test_an_expired_lease_is_taken_over(store):
    _lease(store, expires=time.time() - 1)
    assert Leases(store).take("a")


def test_a_lease_from_a_clock_that_is_wrong_is_taken_over(store):
    _lease(store, expires=time.time() + 3600)
    assert Leases(store).take("a")


def test_a_lease_is_renewed_before_it_expires(store, monkeypatch):
    one = Leases(store)
    one.take("a")
    _lease(store, holder=one.holder, expires=1.0)
    one.renew()
    assert read(store, "a")[1] == 1.0  # it is not yet time to
    monkeypatch.setattr(module, "_RENEW_S", -1.0)
    one.renew()
    assert read(store, "a")[1] > time.time() + LEASE_S / 2


def test_a_lease_that_was_dropped_is_not_written_again_by_the_thread_that_renews(store, monkeypatch):
    real, began = Leases._write, threading.Event()

    def slow(self, pack):
        if threading.current_thread() is not threading.main_thread():
            began.set()
            time.sleep(0.1)
        real(self, pack)

    monkeypatch.setattr(Leases, "_write", slow)
    monkeypatch.setattr(module, "_RENEW_S", 0.01)
    one = Leases(store)
    with one.renewing():
        assert one.take("a")
        assert began.wait(10)
        one.drop("a")
    assert read(store, "a") is None


def test_leases_are_taken_and_dropped_while_another_is_renewed(store, monkeypatch):
    """The renewal of "a" ends only once "b" is taken and "c" is dropped, so neither may wait for it."""
    real, began, done, waited = Leases._write, threading.Event(), threading.Event(), []

    def slow(self, pack):
        if threading.current_thread() is not threading.main_thread() and pack == "a":
            began.set()
            waited.append(done.wait(10))
        real(self, pack)

    monkeypatch.setattr(Leases, "_write", slow)
    monkeypatch.setattr(module, "_RENEW_S", 0.01)
    one = Leases(store)
    assert one.take("a")
    with one.renewing():
        assert began.wait(10)
        assert one.take("c")
        assert one.take("b")
        one.drop("c")
        done.set()
    assert waited[0] is True
    assert read(store, "c") is None
    assert read(store, "b") is not None


def test_a_renewal_that_is_no_longer_wanted_leaves_the_other_leases(store, monkeypatch):
    monkeypatch.setattr(module, "_RENEW_S", -1.0)
    one, written = Leases(store), []
    for name in ("a", "b", "c"):
        one.take(name)
    monkeypatch.setattr(Leases, "_write", lambda self, pack: written.append(pack))
    one.renew(over=lambda: len(written) == 1)
    assert len(written) == 1


def test_a_process_of_this_machine_that_is_gone_holds_nothing(store):
    place = module._place()
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    _lease(store, "a", holder=f"{place}:{gone.pid}:x")
    _lease(store, "b", holder=f"{place}:{os.getpid()}:x")
    assert Leases(store).take("a")
    assert not Leases(store).take("b")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"3",
        b'{"holder": "x"}',
        b'{"holder": 1, "expires": 9e99}',
        b'{"holder": "x", "expires": NaN}',
        b'{"holder": "x", "expires": 1e999}',
        b'{"holder": "x", "expires": "soon"}',
        b"\xff\xfe\x00",
        b"[" * 4000,
        b'{"holder": "x", "expires": 1' + b"0" * 4096 + b"}",
    ],
)
def test_a_file_that_is_no_lease_costs_no_more_than_work(store, content):
    write_bytes(store, "leases/a.json", content)
    assert read(store, "a") is None
    assert Leases(store).take("a")
    assert read(store, "a") is not None


def test_a_folder_or_a_pipe_in_place_of_a_lease_is_passed_over(store):
    folder = Path(store.root) / "tiny" / "leases"
    (folder / "a.json").mkdir(parents=True)
    os.mkfifo(folder / "b.json")
    assert Leases(store).take("a")
    assert Leases(store).take("b")


def test_a_link_in_place_of_a_lease_changes_nothing_outside(store, tmp_path):
    outside = tmp_path / "outside.json"
    outside.write_text("{}")
    folder = Path(store.root) / "tiny" / "leases"
    folder.mkdir(parents=True)
    (folder / "a.json").symlink_to(outside)
    assert Leases(store).take("a")
    assert outside.read_text() == "{}"


def test_leases_that_are_off_are_neither_read_nor_written(store):
    _lease(store)
    off = Leases(store, on=False)
    assert off.take("a")
    assert off.take("b")
    off.close()
    assert [path.name for path in (Path(store.root) / "tiny" / "leases").iterdir()] == ["a.json"]


def test_a_store_that_refuses_leases_stops_nobody(tmp_path):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "tiny").write_text("a file where the study's folder should be")
    one = Leases(open_store(tmp_path / "runs", "tiny"))
    assert one.take("a")
    one.close()


@pytest.mark.slow
@pytest.mark.parametrize("leases", ["on", "off"])
def test_two_drivers_of_one_study_give_the_rows_of_one(tmp_path, leases):
    """Started together on one store."""
    (tmp_path / "tiny.yaml").write_text(STUDY)
    words = ["run", str(tmp_path / "tiny.yaml"), "pack.size=1", f"leases={leases}"]
    command = [sys.executable, "-m", "launch", *words]
    one = subprocess.run([*command, f"store={tmp_path / 'one'}"], cwd=ROOT, capture_output=True, text=True, timeout=500)
    assert one.returncode == 0, one.stdout + one.stderr
    outputs: list[str] = []

    def drive():
        done = subprocess.run([*command, f"store={tmp_path / 'two'}"], cwd=ROOT, capture_output=True, text=True, timeout=500)
        outputs.append(done.stdout + done.stderr + f"exit {done.returncode}")

    drivers = [threading.Thread(target=drive) for _ in range(2)]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join()
    assert all(output.endswith("exit 0") for output in outputs), outputs
    assert tables(tmp_path / "two") == tables(tmp_path / "one")
    folder = tmp_path / "two" / "tiny" / "leases"
    assert not folder.exists() or not list(folder.iterdir())
