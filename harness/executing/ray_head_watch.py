"""The head of a Ray cluster, looked at beside Ray: Ray waits for it in silence for a minute and then ends the process.

That end is `_exit` in Ray's own C++, so the sentence for the person must be said before it.
"""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_EVERY_S, _TIMEOUT_S = 5.0, 5.0
_MISSED = 2  # looks in a row


@contextmanager
def watched(address: str, say: Callable[[str], None], every: float = _EVERY_S) -> Iterator[None]:
    """Tell the person when `address` ("host:port") takes no connection at two looks in a row, once an absence, and when it does again.

    every: seconds between two looks, which are made by a thread of their own until the block ends.
    """
    over = threading.Event()
    thread = threading.Thread(target=_look, args=(address, say, every, over), daemon=True, name="head")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(_TIMEOUT_S + 1)


def _look(address: str, say: Callable[[str], None], every: float, over: threading.Event) -> None:
    missed = 0
    while not over.wait(every):
        if _answers(address):
            if missed >= _MISSED:
                say(f"the head of the Ray cluster at {address} answers again")
            missed = 0
            continue
        missed += 1
        if missed == _MISSED:
            say(
                f"the head of the Ray cluster at {address} does not answer: Ray ends this command where that lasts a minute. "
                "What is committed stays; when a cluster is there, the same command goes on"
            )


def _answers(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_TIMEOUT_S).close()
    except OSError:
        return False
    return True
