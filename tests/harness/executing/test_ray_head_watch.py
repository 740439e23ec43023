"""What is said of a head that goes away: a real socket that closes and opens."""

import socket
import time

from harness.executing.ray_head_watch import watched


def _listen(port=0):
    server = socket.create_server(("127.0.0.1", port))
    return server, server.getsockname()[1]


def _until(what, seconds=20):
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_an_absence_is_said_once_and_its_end_too():
    server, port = _listen()
    said = []
    with watched(f"127.0.0.1:{port}", said.append, every=0.02):
        time.sleep(0.3)
        assert said == []
        server.close()
        _until(lambda: said)
        time.sleep(0.3)
        (sentence,) = said
        assert sentence.startswith(f"the head of the Ray cluster at 127.0.0.1:{port} does not answer")
        assert sentence.endswith("the same command goes on")
        server, _ = _listen(port)
        _until(lambda: len(said) == 2)
        assert said[1].endswith("answers again")
    server.close()
    time.sleep(0.1)
    assert len(said) == 2  # nobody looks after the end
