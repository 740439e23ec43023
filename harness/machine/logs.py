"""What a process printed and logged while it ran one pack, kept in the store where the pack failed.

<store>/<study>/logs/<pack>-<attempt>.log, named as the row of `failures` is: `manyseeds failures` says where. A worker that dies
keeps nothing: there the driver writes what it knows, and where the worker's own words are, which is its Ray session:
docs/guides/watching.md.
"""

import functools
import io
import logging
import os
import re
import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Concatenate, ParamSpec

from harness.planning.pack import Pack
from results.errors import StoreError
from results.store.tables import Store, log_path, write_bytes
from results.terminal import printable, say

_MOST = 2**18  # characters that are kept: the last ones
_Rest = ParamSpec("_Rest")


class _Tee:
    """A stream that also gives what is written to it to `keep`; in everything else it is the stream itself.

    A stream that can't be written, as its terminal or reader is gone or its disk full, raises nothing: it must not fail a replicate.
    """

    def __init__(self, stream: Any, keep: Callable[[str], None]):
        self._stream, self._keep = stream, keep

    def write(self, text: str) -> int:
        self._keep(text)
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Kept:
    """The last characters that were written."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._size = 0

    def add(self, text: str) -> None:
        self._parts.append(text)
        self._size += len(text)
        if self._size > 2 * _MOST:
            self._parts = [self.text()]
            self._size = len(self._parts[0])

    def text(self) -> str:
        return "".join(self._parts)[-_MOST:]


_open: ContextVar[_Kept | None] = ContextVar("_open", default=None)


def keep(text: str) -> None:
    """Keep the lines of `text` in the log of the pack that runs, and print them only where none does."""
    kept = _open.get()
    for line in text.splitlines():
        if kept is None:
            say(line)
        else:
            kept.add(printable(line) + "\n")


@contextmanager
def captured() -> Iterator[_Kept]:
    """Keep what Python code of this process prints and logs in the block, from any thread; it is printed too, as before."""
    kept, root = _Kept(), logging.getLogger()
    out, error = sys.stdout, sys.stderr
    # without a handler logs go to stderr, which is kept; a handler may still hold an earlier stderr
    handler = logging.StreamHandler(_Tee(io.StringIO(), kept.add)) if root.handlers else None
    sys.stdout, sys.stderr = _Tee(out, kept.add), _Tee(error, kept.add)  # type: ignore[assignment]
    if handler is not None:
        root.addHandler(handler)
    token = _open.set(kept)
    try:
        yield kept
    finally:
        _open.reset(token)
        sys.stdout, sys.stderr = out, error
        if handler is not None:
            root.removeHandler(handler)


def logged(run: Callable[Concatenate[Pack, Store, _Rest], Any]) -> Callable[Concatenate[Pack, Store, _Rest], Any]:
    """Wrap `run(pack, store, …)`, which returns an Outcome, so that the log of a pack that failed is kept in the store."""

    @functools.wraps(run)
    def wrapped(pack: Pack, store: Store, *more: _Rest.args, **named: _Rest.kwargs) -> Any:
        with captured() as kept:
            outcome = run(pack, store, *more, **named)
        if outcome.status == "failed":
            text = f"host: {socket.gethostname()}\nprocess: {os.getpid()}\npack: {pack.id}, attempt {pack.attempt}\n\n"
            try:
                write_bytes(store, log_path(pack.id, pack.attempt), (text + kept.text()).encode(errors="replace"))
            except StoreError as refused:
                say(f"the log of pack {pack.id} is not kept: {refused}", err=True)
        return outcome

    return wrapped


def account(kind: str, step: int, node: str, host: str, reason: str) -> str:
    """What the driver knows of one death: kind (died | hung | oom), last checkpoint, Ray's id of the node, its host, Ray's reason."""
    lines = [
        f"kind: {kind}",
        f"checkpoint: step {step}",
        f"node: {node or 'unknown'}, host {host or 'unknown'}",
        f"reason: {reason}",
    ]
    if process := re.search(r"\bpid: (\d+)", reason):
        lines.append(f"its own words: on that host, the files worker-*-{process[1]}.out and .err of its Ray session")
    return "\n".join(lines)


def keep_accounts(store: Store, pack: Pack, host: str, accounts: list[str]) -> None:
    """Write the log of a pack whose workers died, the last of them on `host`. Raises StoreError where the store refuses it."""
    text = f"host: {host or 'unknown'}\nprocess: gone; the driver wrote this\npack: {pack.id}, attempt {pack.attempt}\n\n"
    text += "\n\n".join(f"death {number}\n{account}" for number, account in enumerate(accounts, 1)) + "\n"
    write_bytes(store, log_path(pack.id, pack.attempt), text.encode(errors="replace"))
