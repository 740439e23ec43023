"""A second Python process that takes a share of large work: two threads of one process wait for each other at the interpreter's lock.

    later = submit(function, argument)      # a function of a module, and what pickle can send
    mine = function(another)
    theirs = later.result()                 # its value, or what it raised

The process starts with the first call, imports what it is sent, and ends with this one. It is not started by `multiprocessing`, which
would run the script of whoever called us a second time.
"""

import atexit
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, TypeVar

from results.cores import cores
from results.large_tables import for_large_tables

Answer = TypeVar("Answer")
_ROOT = Path(__file__).parents[1]
_START = "import sys; sys.path.insert(0, sys.argv[1]); from results.second_process import serve; serve()"
_running: list["_Second"] = []
_SERVING: list[bool] = []  # not empty in the second process, which has none of its own


def worthwhile() -> bool:
    """Whether a second process would save time: it has a core, and no call is waiting to be carried out before ours."""
    return not (_SERVING or any(second.busy() for second in _running)) and cores() > 1


def submit(function: Callable[..., Answer], *arguments: Any) -> Future[Answer]:
    """Call the function in the second process, which carries out its calls one after another; returns the future value."""
    if not _running:
        _running.append(_Second())
        atexit.register(stop)
    return _running[0].submit(function, *arguments)


def stop() -> None:
    """End the process, if there is one, after the calls that it was given."""
    while _running:
        _running.pop().stop()


class _Second:
    def __init__(self) -> None:
        # -P: a file of the current folder must not be imported in place of a library
        command = [sys.executable, "-P", "-c", _START, str(_ROOT)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._thread = ThreadPoolExecutor(1)
        self._last: Future[Any] | None = None

    def submit(self, function: Callable[..., Answer], *arguments: Any) -> Future[Answer]:
        self._last = later = self._thread.submit(self._call, function, arguments)
        return later

    def busy(self) -> bool:
        return self._last is not None and not self._last.done()

    def _call(self, function: Callable[..., Answer], arguments: tuple[Any, ...]) -> Answer:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        pickle.dump((function, arguments), self._process.stdin, protocol=5)
        self._process.stdin.flush()
        value, error = pickle.load(self._process.stdout)
        if error is not None:
            raise error
        answer: Answer = value
        return answer

    def stop(self) -> None:
        self._thread.shutdown()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def serve() -> None:
    """Carry out the calls that come on standard input until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one, which then closes our input
    _SERVING.append(True)
    answers: IO[bytes] = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a call prints must not stand among the answers
    with for_large_tables():
        while True:
            try:
                function, arguments = pickle.load(sys.stdin.buffer)
            except EOFError:
                return
            answer: tuple[Any, Exception | None]
            try:
                answer = (function(*arguments), None)
            except Exception as error:
                answer = (None, error)
            pickle.dump(answer, answers, protocol=5)
            answers.flush()
