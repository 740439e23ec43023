"""A local stand-in for W&B's server: what its client sends is kept by run, and any request can be refused or dropped first.

It knows the requests that wandb 0.31 makes for runs with history, tables and images, and for views (workspaces and reports).
"""

import gzip
import json
import re
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Trouble = Callable[[str, int], str]  # (kind of request, how many of it came before) → "", "429" or "drop"


@dataclass
class Received:
    """A run as the server knows it: history lines, the summary, the last config, and files by name."""

    about: dict[str, Any] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)
    summary: dict[str, Any] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)

    def config(self) -> dict[str, Any]:
        return {name: item["value"] for name, item in json.loads(self.about["config"]).items()}

    def table(self, name: str) -> list[dict[str, Any]]:
        """The table that the summary names."""
        content = json.loads(self.files[self.history[-1][name]["path"]])
        return [dict(zip(content["columns"], row, strict=True)) for row in content["data"]]


class Double:
    """runs by id, views by name, `asked` and `refused`: requests by kind."""

    def __init__(self, trouble: Trouble):
        self.runs: dict[str, Received] = {}
        self.views: dict[str, dict[str, Any]] = {}
        self.asked: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.trouble, self.lock, self.address = trouble, threading.Lock(), ""

    def respond(self, kind: str, variables: dict[str, Any]) -> dict[str, Any]:
        """The data of an answer to a GraphQL request."""
        if kind == "Viewer":
            return {"viewer": {"id": "u", "entity": "team", "username": "me", "flags": "{}", "teams": {"edges": []}}}
        if kind == "GetDefaultEntity":
            return {"viewer": {"id": "u", "entity": "team"}}
        if kind == "UpsertBucket":
            run = self.runs.setdefault(variables["name"], Received())
            run.about |= {name: value for name, value in variables.items() if value is not None}
            return {"upsertBucket": {"bucket": self.bucket(variables["name"]), "inserted": True}}
        if kind == "RunResumeStatus":
            project = {"id": "p", "name": "manyseeds", "entity": {"id": "e", "name": "team"}}
            known = variables["name"] in self.runs
            return {"model": {**project, "bucket": self.bucket(variables["name"]) if known else None}}
        if kind == "CreateArtifact":
            last = {"id": "a", "versionIndex": 0}
            artifact = {"id": "a", "state": "COMMITTED", "artifactSequence": {"id": "s", "latestArtifact": last}}
            return {"createArtifact": {"artifact": artifact}}
        if kind == "CreateRunFiles":
            where = f"{self.address}/upload/{variables['run']}/"
            files = [{"name": name, "uploadUrl": where + name} for name in variables["files"]]
            return {"createRunFiles": {"runID": "x", "uploadHeaders": [], "files": files}}
        if kind == "View":
            held = [
                view for view in self.views.values() if (view["type"], view["name"]) == (variables["type"], variables["name"])
            ]
            nodes = [{"node": {"id": view["id"], "name": view["name"]}} for view in held]
            return {"project": {"allViews": {"edges": nodes}} if self.runs else None}
        if kind == "UpsertView":
            name = variables["id"] or f"v{len(self.views)}"
            inserted = name not in self.views
            self.views[name] = variables | {"id": name}
            return {"upsertView": {"view": {"id": name, "name": variables["name"]}, "inserted": inserted}}
        if kind == "ArtifactType":
            return {"project": None}
        return {}

    def bucket(self, name: str) -> dict[str, Any]:
        run = self.runs[name]
        project = {"id": "p", "name": "manyseeds", "entity": {"id": "e", "name": "team"}}
        tail = [json.dumps(line) for line in run.history[-1:]]
        return {
            **{"id": f"id-{name}", "name": name, "displayName": run.about.get("displayName"), "project": project},
            **{"config": run.about.get("config"), "historyLineCount": len(run.history), "eventsLineCount": 0, "tags": []},
            **{"historyTail": json.dumps(tail), "eventsTail": "[]", "summaryMetrics": json.dumps(run.summary)},
            **{"logLineCount": 0, "sweepName": None, "wandbConfig": json.dumps({"t": 1})},
        }

    def stream(self, run_id: str, content: dict[str, Any]) -> None:
        """Lines of a run's file stream: each has its number, so a line that is sent twice is one line."""
        run = self.runs[run_id]
        for name, part in content.get("files", {}).items():
            if name == "wandb-history.jsonl":
                for number, text in enumerate(part["content"], start=part["offset"]):
                    run.history[number : number + 1] = [json.loads(text)]
            elif name == "wandb-summary.json":
                run.summary = json.loads(part["content"][-1])


@contextmanager
def serve(trouble: Trouble = lambda kind, before: "") -> Iterator[Double]:
    """A double at a free port of this machine."""
    double = Double(trouble)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing on stderr."""

        def handle_request(self) -> None:
            data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.headers.get("Content-Encoding") == "gzip":
                data = gzip.decompress(data)
            asked = json.loads(data) if self.command == "POST" else {}
            kind = self.command if self.command != "POST" else "stream"
            if self.path.endswith("/graphql"):
                kind = asked.get("operationName") or (re.findall(r"(?:query|mutation) (\w+)", asked["query"]) or ["?"])[0]
            with double.lock:
                wrong = double.trouble(kind, double.asked[kind])
                double.asked[kind] += 1
                if wrong:
                    double.refused[f"{kind} {wrong}"] += 1
            if wrong == "drop":  # a reset, not an end: as where the network goes away
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.close_connection = True
                self.connection.close()
                return
            if wrong:
                self.answer(429, {"error": "rate limit exceeded"}, {"RateLimit-Reset": "1", "Retry-After": "1"})
                return
            with double.lock:
                if self.path.endswith("/graphql"):
                    self.answer(200, {"data": double.respond(kind, asked.get("variables") or {})})
                elif self.path.endswith("/file_stream"):
                    double.stream(self.path.split("/")[-2], asked)
                    self.answer(200, {})
                else:
                    _, _, run, name = self.path.split("/", 3)
                    double.runs[run].files[name] = data
                    self.answer(200, {})

        do_POST = do_PUT = do_GET = handle_request

        def answer(self, code: int, value: Any, headers: dict[str, str] | None = None) -> None:
            content = json.dumps(value).encode()
            self.send_response(code)
            headers = {"Content-Type": "application/json", "Content-Length": str(len(content))} | (headers or {})
            for name, text in headers.items():
                self.send_header(name, text)
            self.end_headers()
            self.wfile.write(content)

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            """Ignore clients that go away: that is no error of the server."""

    server = Server(("127.0.0.1", 0), Handler)
    double.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield double
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
