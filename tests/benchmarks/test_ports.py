"""Ports of servers that are about to start."""

import http.server
import socket

import pytest

from benchmarks.chaos.ports import answers, held_port


def test_a_held_port_is_free_for_its_server_and_for_nobody_else():
    port = held_port()
    assert not answers(port)
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", port))
    with http.server.HTTPServer(("127.0.0.1", port), http.server.BaseHTTPRequestHandler):
        assert answers(port)
    assert not answers(port)


def test_held_ports_differ():
    ports = [held_port() for _ in range(50)]
    assert len(set(ports)) == 50
