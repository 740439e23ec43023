"""A store on a real S3 server behind a proxy that spoils chosen requests."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from benchmarks.chaos import servers
from benchmarks.chaos.faults import Proxy
from results.store.tables import Store, open_store

STUDY = "study"
KEY, SECRET = servers.KEY, servers.SECRET
KINDS = ("refused", "throttled", "lost_answer", "cut")


@dataclass
class Script:
    """As `Faults`: what happens to the request numbered `at`, counted from the last `start`, and to those after it where `more`."""

    kind: str = "none"
    at: int = -1
    more: int = 0
    seen: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, kind: str = "none", at: int = -1, more: int = 0) -> None:
        with self._lock:
            self.kind, self.at, self.more, self.seen = kind, at, more, 0

    def next(self) -> tuple[str, float]:
        with self._lock:
            kind = self.kind if self.at <= self.seen <= self.at + self.more else "none"
            self.seen += 1
            self.counts[kind] += 1
            return kind, 0.05


@dataclass(frozen=True)
class Faulty:
    """`store` leads through the proxy, `real` straight to the server."""

    store: Store
    real: Store
    script: Script
    proxy: Proxy


SERVERS = ("moto", pytest.param("rclone", marks=pytest.mark.slow))


@dataclass(frozen=True)
class Endpoint:
    port: int
    markers: bool  # as of Proxy


@contextmanager
def s3_server(kind: str, folder: Path) -> Iterator[Endpoint]:
    """A server of SERVERS with the bucket `bucket`."""
    if kind == "moto":
        pytest.importorskip("moto.server", reason="the S3 tests need moto and Flask")
        pytest.importorskip("boto3", reason="the S3 tests need boto3")
    else:
        try:
            servers.rclone_there()
        except ValueError as error:
            pytest.skip(str(error))
    start = {"moto": servers.moto, "rclone": servers.rclone}[kind]
    port, stop = start(folder, "bucket")
    yield Endpoint(port, servers.takes_markers(start))
    stop()


@contextmanager
def faulty(server: Endpoint, folder: str) -> Iterator[Faulty]:
    """An empty store in a folder of the bucket."""
    script = Script()
    proxy = Proxy(server.port, script, server.markers)  # type: ignore[arg-type]
    stores = [
        open_store(f"s3://{KEY}:{SECRET}@bucket/{folder}?scheme=http&region=us-east-1&endpoint_override=127.0.0.1:{at}", STUDY)
        for at in (proxy.port, server.port)
    ]
    yield Faulty(*stores, script, proxy)
    proxy.close()
