"""A resident process that trains one variant of one case on command, and the parent's side of the connection.

It reads one JSON line a command from its standard input and answers with one on its standard output:

    {"seconds": 0.8}  →  {"steps": 41, "elapsed": 0.81}
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from results.plain_values import Row

_ROOT = Path(__file__).resolve().parent.parent
_LAST_WORDS = 300


class Failed(Exception):
    """A worker ended; the message is the last of its output."""


class Worker:
    """`python -m benchmarks.worker JOB` with one thread on a CPU, the harness' allocator setting and nothing else in the environment.

    job: what `_serve` takes. started: when the process was asked for, by `time.perf_counter`.
    """

    def __init__(self, job: Row):
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.started = time.perf_counter()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker", json.dumps(job)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env=environment(job["device"]),
        )

    def ask(self, seconds: float) -> None:
        """Begin a block of at least so many seconds and one step. Raises Failed."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"seconds": seconds}) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._failure() from None

    def answer(self) -> Row:
        """The next line of the worker, waited for. Raises Failed."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise self._failure()
        return json.loads(line)

    def _failure(self) -> Failed:
        code = self._process.wait()
        self._errors.seek(0)
        lines = [line.strip() for line in self._errors.read().splitlines() if line.strip()]
        said = lines[-1][-_LAST_WORDS:] if lines else "no message"
        return Failed(f"killed by signal {-code}, as a machine out of memory does" if code < 0 else said)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            if stream is not None:
                stream.close()


def environment(device: str) -> dict[str, str]:
    """Of a process of the benchmark: this one's, with the repository on the path and one thread on a CPU."""
    path = os.pathsep.join([str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return os.environ | {"PYTHONPATH": path} | ({"OMP_NUM_THREADS": "1"} if device == "cpu" else {})


def job_of(variant: Any, case: str, device: str, precision: str) -> Row:
    """The job of training a variant."""
    return {"variant": asdict(variant), "case": case, "device": device, "precision": precision}


def peak_bytes(device: Any) -> int:
    """Peak memory of this process: on the GPU what its tensors took, else its resident set."""
    import torch

    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    status = Path("/proc/self/status")
    if not status.exists():
        raise ValueError(
            "the resident set of a process is read from /proc, which this system lacks: run this benchmark on Linux"
        )
    return _field(status.read_text(), "VmHWM")


def _field(status: str, name: str) -> int:
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith(name))


def _serve(job: Row, say: Callable[[Row], None]) -> None:
    import torch

    from harness.machine.device import finish, prepare, resolve

    device = resolve(job["device"])
    prepare(device)
    if device.type == "cuda":
        torch.zeros(1, device=device)  # its context is start-up, not part of building a pack
    if "largest" in job:
        say(_chosen(job, device))
        return
    from benchmarks.variants import Variant

    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as heard:
        advance = Variant(**job["variant"]).start(job["case"], device, job["precision"])
        advance()
        finish(device)
    build = time.perf_counter() - began
    texts = [str(warning.message).split("\n")[0].partition(" (Triggered")[0] for warning in heard]
    said = sorted({text[:_LAST_WORDS] for text in texts})
    say({"build": build, "memory": peak_bytes(device), "warnings": said})
    for line in sys.stdin:
        say(_block(advance, device, json.loads(line)["seconds"]) | {"memory": peak_bytes(device)})


def _chosen(job: Row, device: Any) -> Row:
    """The pack size that `pack.size: auto` chooses here."""
    from functools import partial

    from benchmarks.cases import CASES, pack
    from harness.planning.throughput import best_rate, measure, room

    of_size = partial(pack, CASES[job["case"]], precision=job["precision"])
    space = partial(room, device, job["share"])
    chosen = best_rate(lambda size: measure(of_size(size), device), job["largest"], device.type, space, steps=10_000)
    return {"size": chosen.size}


def _block(advance: Callable[[], Any], device: Any, seconds: float) -> dict[str, float]:
    """Steps of at least `seconds`; on a GPU as many are queued at once as an eighth of the time is expected to hold."""
    from harness.machine.device import finish

    steps, queue = 0, 1
    began = time.perf_counter()
    while (elapsed := time.perf_counter() - began) < seconds or steps == 0:
        if device.type == "cuda" and steps:
            queue = max(1, int(steps / elapsed * seconds / 8))
        for _ in range(queue):
            advance()
        finish(device)
        steps += queue
    return {"steps": steps, "elapsed": time.perf_counter() - began}


def _main() -> None:
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not look like an answer

    def say(answer: Row) -> None:
        out.write(json.dumps(answer) + "\n")
        out.flush()

    _serve(json.loads(sys.argv[1]), say)


if __name__ == "__main__":
    _main()
