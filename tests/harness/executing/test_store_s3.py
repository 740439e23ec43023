"""Checkpoints and leases while an S3 server spoils any of their requests."""

import pytest
import torch

from harness.executing import leases
from harness.executing.leases import Leases
from harness.machine.store_retry import patiently
from harness.training import checkpoint
from results.store import filesystem
from results.store.tables import list_names, read_bytes, write_bytes
from tests.results.store.faulty_s3 import KINDS, SERVERS, faulty, s3_server

ALWAYS = 10**6


@pytest.fixture(scope="module", params=SERVERS)
def server(request, tmp_path_factory):
    with s3_server(request.param, tmp_path_factory.mktemp("s3")) as found:
        yield found


@pytest.fixture
def once(monkeypatch):
    """The client makes each request once, so that every fault is seen here."""
    monkeypatch.setattr(filesystem, "RETRIES", 0)


def _named(error):
    assert "checkpoints/fd-1" in str(error)


def _tensors(step):
    return {"weight": torch.full((2, 3), float(step))}


@pytest.mark.parametrize("kind", KINDS)
def test_there_is_always_a_whole_checkpoint(server, once, kind):
    """Written again after each refusal, as a worker does: never a damaged one, never none, and at the end the newest and the one before."""
    with faulty(server, f"checkpoints-{kind}/runs") as at:
        checkpoint.write(at.real, "fd-1", 0, _tensors(0), {"step": 0})
        for number in range(8):
            step = number + 1
            at.script.start(kind, number)
            while True:
                try:
                    checkpoint.write(at.store, "fd-1", step, _tensors(step), {"step": step})
                    break
                except OSError as error:
                    _named(error)
                at.script.start()
                tensors, state = checkpoint.read(at.real, "fd-1")
                assert state["step"] in (step - 1, step)
                assert torch.equal(tensors["weight"], _tensors(state["step"])["weight"])
            assert checkpoint.steps(at.real, "fd-1") == [step - 1, step]


@pytest.mark.parametrize("kind", KINDS)
def test_a_checkpoint_is_read_whole_or_refused_and_never_removed_as_damaged(server, once, kind):
    with faulty(server, f"reading-{kind}/runs") as at:
        checkpoint.write(at.real, "fd-1", 7, _tensors(7), {"step": 7})
        for number in range(3):
            at.script.start(kind, number, ALWAYS)
            try:
                tensors, state = checkpoint.read(at.store, "fd-1")
            except OSError as error:
                _named(error)
            else:
                assert state == {"step": 7}
                assert torch.equal(tensors["weight"], _tensors(7)["weight"])
            assert checkpoint.steps(at.real, "fd-1") == [7]


def test_leases_are_hints_also_where_the_store_refuses_them(server, once):
    with faulty(server, "leases/runs") as at:
        one, two = Leases(at.store, holder="far:1:7:x"), Leases(at.real, holder="near:2:8:y")
        assert two.take("b")
        for kind in KINDS:
            for number in range(4):
                at.script.start(kind, number, ALWAYS)
                assert one.take(f"{kind}-{number}")
        at.script.start()
        assert one.take("a")
        assert not two.take("a")
        assert not one.take("b")
        at.script.start("lost_answer", 0, ALWAYS)
        one.drop("a")  # carried out or not: it expires
        at.script.start()
        assert leases.read(at.real, "a") in (None, ("far:1:7:x", pytest.approx(leases.time.time() + leases.LEASE_S, abs=60)))


def test_an_outage_is_waited_for_and_told_once(server, once):
    with faulty(server, "outage/runs") as at:
        told = []

        def back(text):
            told.append(text)
            at.proxy.away = False

        for call in (
            lambda: write_bytes(at.store, "curves/a", b"rows"),
            lambda: list_names(at.store, "curves"),
            lambda: read_bytes(at.store, "curves/a"),
        ):
            at.proxy.away = True
            answer = patiently(call, say=back)
        assert answer == b"rows"
        assert len(told) == 3
        assert all("AWS Error" in text and "trying again for 10 minutes" in text for text in told)


@pytest.mark.parametrize(
    "operation",
    [
        lambda at: write_bytes(at.store, "curves/a", b""),
        lambda at: list_names(at.store, "curves"),
        lambda at: read_bytes(at.store, "curves/a"),
    ],
)
def test_a_refusal_that_does_not_pass_is_raised_at_once(server, once, operation):
    with faulty(server, "denied/runs") as at:
        at.proxy.away, at.proxy.away_status = True, 403
        with pytest.raises(OSError, match="ACCESS_DENIED"):
            patiently(lambda: operation(at), say=pytest.fail)
