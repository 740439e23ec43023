"""A Ray cluster of several nodes on this machine, whose nodes can be killed and replaced, and the processes below it."""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.chaos.ports import answers, held_port

_HEALTH = {
    "period_ms": "500",
    "timeout_ms": "5000",
    "failure_threshold": "4",
    "initial_delay_ms": "500",
}  # a dead node, within seconds


def environment(*folders: Path, **more: str) -> dict[str, str]:
    """This process's environment without variables of another Ray cluster. Modules are found in this checkout and in `folders`."""
    path = os.pathsep.join(map(str, (Path(__file__).parents[2], *folders)))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    return kept | {"RAY_USAGE_STATS_ENABLED": "0", "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", "PYTHONPATH": path} | more


def below(pid: int) -> list[int]:
    """Process ids below `pid`, from /proc."""
    found = []
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(child) for child in listed.read_text().split()]
        except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile
            continue
        for child in children:
            found += [child, *below(child)]
    return found


def slots(pid: int) -> list[int]:
    """The processes below `pid` that train packs."""
    return [child for child in below(pid) if _title(child).startswith(b"ray::Slot")]


def kill(pid: int) -> bool:
    """SIGKILL; False where the process was gone."""
    return _send(pid, signal.SIGKILL)


def terminate(pid: int) -> bool:
    """SIGTERM, as a machine that shuts down sends it; False where the process was gone."""
    return _send(pid, signal.SIGTERM)


def _send(pid: int, what: signal.Signals) -> bool:
    try:
        os.kill(pid, what)
    except ProcessLookupError:
        return False
    return True


def kill_tree(process: subprocess.Popen[Any]) -> int:
    """SIGKILL of a process of ours and of all below it; returns how many there were."""
    victims = [*below(process.pid), process.pid]
    count = sum([kill(pid) for pid in victims])
    process.wait()
    return count


def wait_for(what: Callable[[], Any], words: str, seconds: float = 120) -> Any:
    """The first true value of `what()`. TimeoutError naming `words`."""
    until = time.monotonic() + seconds
    while not (found := what()):
        if time.monotonic() > until:
            raise TimeoutError(f"{words}: not within {seconds:g} s")
        time.sleep(0.1)
    return found


class Machines:
    """A head without cores and raylets of one core each."""

    def __init__(self, folder: Path):
        self.port = held_port()
        # short: the sockets' paths lie below it
        self.temporary = tempfile.mkdtemp(prefix="chaos-", dir="/tmp")
        health = {f"RAY_health_check_{name}": value for name, value in _HEALTH.items()}
        token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        self._environment = environment(folder, **token, **health)
        self.driver_environment = environment(folder, RAY_ADDRESS=f"127.0.0.1:{self.port}", **token)
        self._folder = folder
        self._logs: dict[int, Path] = {}  # by process id
        self.head: subprocess.Popen[bytes] | None = None
        self.nodes: list[subprocess.Popen[bytes]] = []

    def start(self, nodes: int) -> None:
        options = [f"--port={self.port}", "--include-dashboard=false", "--no-monitor", "--num-cpus=0"]
        self.head = self._start("--head", *options, f"--ray-client-server-port={held_port()}")
        wait_for(lambda: answers(self.port) and self._joined(self.head), "the head of the Ray cluster answers")
        for _ in range(nodes):
            self.nodes.append(self.new_node())
        wait_for(self._all_joined, "the nodes join the cluster", 300)

    def new_node(self) -> subprocess.Popen[bytes]:
        return self._start(f"--address=127.0.0.1:{self.port}", "--num-cpus=1")

    def workers(self) -> list[int]:
        return [pid for node in self.nodes for pid in slots(node.pid)]

    def repair(self) -> int:
        """Replace nodes that have died and were not replaced; returns how many there were."""
        if self.head is None or self.head.poll() is not None:
            raise RuntimeError(f"the head of the Ray cluster died: see {self._folder}/ray-0.log")
        before = self.nodes
        self.nodes = [node if node.poll() is None else self.new_node() for node in before]
        return sum(new is not old for new, old in zip(self.nodes, before, strict=True))

    def _all_joined(self) -> bool:
        """A node that ends again, as where the machine is too busy to start it within Ray's half minute, is started once more."""
        self.repair()
        return all(map(self._joined, self.nodes))

    def _joined(self, node: subprocess.Popen[bytes] | None) -> bool:
        return node is not None and b"Ray runtime started" in self._logs[node.pid].read_bytes()

    def close(self) -> None:
        for process in (*self.nodes, self.head):
            if process is not None:
                kill_tree(process)
        shutil.rmtree(self.temporary, ignore_errors=True)

    def _start(self, *options: str) -> subprocess.Popen[bytes]:
        # Two nodes that start at once in one folder take the same sockets, and one of them ends after half a minute.
        place = f"--temp-dir={self.temporary}/{len(self._logs)}"
        # nodes of one machine must not share the only port of an agent that Ray does not choose by itself
        port = "--dashboard-agent-listen-port=0"
        fixed = ["--disable-usage-stats", "--include-log-monitor=false", "--object-store-memory=100000000", "--block", port]
        words = [str(Path(sys.executable).parent / "ray"), "start", *options, *fixed, place]
        log = self._folder / f"ray-{len(self._logs)}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                words, env=self._environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
        self._logs[process.pid] = log
        return process


@contextmanager
def machines(folder: Path, nodes: int = 2) -> Iterator[Machines]:
    found = Machines(folder)
    try:
        found.start(nodes)
        yield found
    finally:
        found.close()


def _title(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""
