"""Which clusters a driver joins, and the sentence where it can't."""

import socket
from types import SimpleNamespace

import pytest

from harness.executing import ray_connection
from harness.executing.ray_connection import connect
from results.errors import StudyError


class _Ray:
    """The ray module where a cluster is joined: `init` raises `error`."""

    def __init__(self, error=None, client=False):
        self.job_config = SimpleNamespace(JobConfig=lambda **named: None)
        self.util = SimpleNamespace(client=SimpleNamespace(ray=SimpleNamespace(is_connected=lambda: client)))
        self._error, self._client = error, client
        self.joined = []

    def is_initialized(self):
        return self._client

    def init(self, address, **options):
        self.joined.append(address)
        if self._error is not None:
            raise self._error


def _connected(monkeypatch, ray, address):
    monkeypatch.setattr(ray_connection, "ray", ray)
    if address is None:
        monkeypatch.delenv("RAY_ADDRESS", raising=False)
    else:
        monkeypatch.setenv("RAY_ADDRESS", address)
    connect(lambda text: None)


@pytest.mark.parametrize("address", ["http://head:8265", "ray://head:10001", "https://me:secret@head"])
def test_a_url_is_refused_before_ray_sees_it(address, monkeypatch):
    ray = _Ray()
    with pytest.raises(StudyError, match="set RAY_ADDRESS to HOST:6379 or auto") as refused:
        _connected(monkeypatch, ray, address)
    assert ray.joined == []
    assert "secret" not in str(refused.value)


def test_a_connection_through_rays_client_is_refused(monkeypatch):
    with pytest.raises(StudyError, match="by a URL, and a study can't be run through one"):
        _connected(monkeypatch, _Ray(client=True), None)


@pytest.fixture
def answering():
    """The address of a port that takes connections."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_a_cluster_that_answers_and_refuses_is_not_said_to_be_silent(answering, monkeypatch):
    error = RuntimeError("Failed to connect:\n Unauthenticated")
    with pytest.raises(StudyError) as refused:
        _connected(monkeypatch, _Ray(error), answering)
    assert str(refused.value).startswith(
        f"what answers at RAY_ADDRESS={answering} can't be joined (Failed to connect: Unauthenticated): if the cluster wants a token"
    )


def test_a_silent_cluster_is_named(answering, monkeypatch):
    with pytest.raises(StudyError, match=r"^no Ray cluster answers at RAY_ADDRESS=auto"):
        _connected(monkeypatch, _Ray(ConnectionError("Could not find any running Ray instance")), "auto")
    ray = _Ray()
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed = f"127.0.0.1:{server.getsockname()[1]}"
    with pytest.raises(StudyError, match=f"^no Ray cluster answers at RAY_ADDRESS={closed}"):
        _connected(monkeypatch, ray, closed)
    assert ray.joined == []
    _connected(monkeypatch, ray, answering)
    assert ray.joined == [answering]
