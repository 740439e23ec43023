"""A Ray cluster of two nodes on this machine, started by the commands of docs/guides/cluster.md; its Python lacks the project."""

import re
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.chaos.ports import held_port
from tests.documented import documented
from tests.environments import environment_of, make_environment
from tests.harness.executing.clusters import has_joined, wait_for

PAGE = "docs/guides/cluster.md"


class PageCluster(NamedTuple):
    """environment: of a shell on the cluster, with its Python first; dashboard: its address; port: of the head."""

    environment: dict[str, str]
    python: Path
    port: int
    dashboard: str

    def ray_variables(self) -> dict[str, str]:
        """Variables that lead a process of another environment to the cluster."""
        token = (Path(self.environment["HOME"]) / ".ray" / "auth_token").read_text()
        return {"RAY_ADDRESS": f"127.0.0.1:{self.port}", "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token.strip()}


def command_of(page: str, pattern: str) -> list[str]:
    """The words of the only command in the blocks of a page in which a pattern is found."""
    (text,) = [each.text for each in documented() if each.page == page and not each.inline and re.search(pattern, each.text)]
    return shlex.split(text.partition(" > ")[0])


@contextmanager
def page_cluster(folder: Path) -> Iterator[PageCluster]:
    """Start the cluster, with one core a node, and stop it at the end, process by process."""
    python = make_environment(folder / "venv")
    (folder / "home").mkdir()
    environment = environment_of(python, HOME=str(folder / "home"), RAY_AUTH_MODE="token", PYTHONUNBUFFERED="1")
    words = command_of(PAGE, "ray get-auth-token")
    subprocess.run([python.parent / words[0], *words[1:]], env=environment, check=True, capture_output=True, timeout=60)
    (folder / "home" / ".ray" / "auth_token").chmod(0o600)
    port, dashboard = held_port(), held_port()
    own = [  # another cluster of this machine has the page's ports, and sockets need a short path
        f"--port={port}",
        f"--dashboard-port={dashboard}",
        f"--temp-dir={tempfile.mkdtemp(prefix='page-', dir='/tmp')}",
        f"--ray-client-server-port={held_port()}",
    ]
    start, join = command_of(PAGE, "ray start --head"), command_of(PAGE, "ray start --address")
    join = [word.replace("HEAD:6379", f"127.0.0.1:{port}") for word in join[join.index("ray") :]]
    every = ["--dashboard-agent-listen-port=0", "--num-cpus=1", "--object-store-memory=100000000", "--block"]
    started: list[subprocess.Popen[bytes]] = []
    try:
        for name, command in (("head", [*start, *own]), ("node", join)):
            path = folder / f"{name}.log"
            with path.open("w") as log:
                program = [python.parent / command[0], *command[1:], *every]
                started.append(subprocess.Popen(program, env=environment, stdout=log, stderr=log))
            wait_for(lambda path=path, node=started[-1]: has_joined(node, path))
        yield PageCluster(environment, python, port, f"http://127.0.0.1:{dashboard}")
    finally:
        for process in reversed(started):
            process.send_signal(signal.SIGTERM)  # --block: its processes end with it
        for process in started:
            process.wait(60)
