"""An HTTP proxy in front of an S3 server: some requests fail before or after they are carried out, some are slow, cut or never answered."""

import http.client
import random
import threading
import time
from collections import Counter
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# chances of a request: 500 before it is carried out, 503 as of a server that is too busy, 500 after it was carried out, no answer,
# half an answer and the end of the connection, an answer whose second half comes late
CHANCES = {"refused": 0.03, "throttled": 0.02, "lost_answer": 0.01, "timeout": 0.002, "cut": 0.01, "slow": 0.05}
SILENT_S = 30.0  # longer than any client here waits
_SLOW_S = (0.2, 1.5)
_HOPS = {"connection", "transfer-encoding", "keep-alive", "content-length"}  # between two machines, not end to end
_ERROR = '<?xml version="1.0"?><Error><Code>{}</Code><Message>injected</Message></Error>'


class Faults:
    """What happens to each request in turn, from a seed. `counts` has what was done, by kind, and `none`."""

    def __init__(self, seed: int, chances: Mapping[str, float] = CHANCES):
        self.counts: Counter[str] = Counter()
        self._chances = chances
        self._draw = random.Random(f"faults-{seed}")
        self._lock = threading.Lock()

    def next(self) -> tuple[str, float]:
        """(kind, seconds)."""
        with self._lock:
            kinds = [*self._chances, "none"]
            weights = [*self._chances.values(), 1 - sum(self._chances.values())]
            kind, seconds = self._draw.choices(kinds, weights)[0], self._draw.uniform(*_SLOW_S)
            self.counts[kind] += 1
            return kind, seconds


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "Proxy"

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except (ConnectionError, TimeoutError):  # the client gave up
            self.close_connection = True

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing: the counts are the log."""

    def _carry(self) -> None:
        body = self._body()
        kind, seconds = ("refused", 0.0) if self.server.away else self.server.faults.next()
        if kind == "timeout":
            time.sleep(SILENT_S)
            self.close_connection = True
            return
        if kind in ("refused", "throttled"):
            status = self.server.away_status if self.server.away else 500 if kind == "refused" else 503
            self._refuse(status, {500: "InternalError", 503: "SlowDown", 403: "AccessDenied"}.get(status, ""))
            return
        if self.command == "PUT" and self.path.endswith("/") and not (body or self.server.markers):
            self._begin(200, [("content-length", "0")])
            return
        upstream = http.client.HTTPConnection("127.0.0.1", self.server.behind, timeout=60)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in (*_HOPS, "expect")}
        upstream.request(self.command, self.path, body=body, headers=headers)
        answer = upstream.getresponse()
        content = answer.read()
        upstream.close()
        if kind == "lost_answer":
            self._refuse(500, "InternalError")
            return
        length = answer.getheader("Content-Length", "0") if self.command == "HEAD" else str(len(content))
        self._begin(answer.status, [*answer.getheaders(), ("content-length", length)])
        half = len(content) // 2
        self.wfile.write(content[:half])
        if kind == "cut":
            self.close_connection = True
            return
        if kind == "slow":
            self.wfile.flush()
            time.sleep(seconds)
        self.wfile.write(content[half:])

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _carry

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():  # trailers
            continue
        return b"".join(parts)

    def _refuse(self, status: int, code: str) -> None:
        content = b"" if self.command == "HEAD" else _ERROR.format(code).encode()
        self._begin(status, [("Content-Type", "application/xml"), ("content-length", str(len(content)))])
        self.wfile.write(content)

    def _begin(self, status: int, headers: list[tuple[str, str]]) -> None:
        self.send_response_only(status)
        kept = [header for header in headers[:-1] if header[0].lower() not in _HOPS]
        for name, value in [*kept, headers[-1]]:
            self.send_header(name, value)
        self.end_headers()


class Proxy(ThreadingHTTPServer):
    """On a free port of this machine, before the server on port `behind`; while `away`, every request is answered with `away_status`.

    markers=False: empty objects called `folder/`, which pyarrow puts after a deletion, are not passed on.
    """

    daemon_threads = True
    request_queue_size = 128
    away = False
    away_status = 500

    def __init__(self, behind: int, faults: Faults, markers: bool = True):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behind, self.faults, self.markers = behind, faults, markers
        self.port = self.server_address[1]
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()
