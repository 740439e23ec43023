"""Which driver runs which pack, as expiring hints in the store: `<store>/<study>/leases/<pack>.json`.

Two drivers of one study divide its packs by them. Nothing depends on them for correctness: where two drivers train one pack all the same
(a clock that jumped, a lease that was lost or torn, two at one moment), the smallest pack id wins in every reader.
"""

import contextlib
import json
import math
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from results.plain_values import Tree
from results.progress.snapshot import LEASE_S
from results.store.filesystem import info_of, refuse_links_out
from results.store.tables import Store, check_there, delete, list_names, read_bytes, write_bytes

_RENEW_S = LEASE_S / 4
_MOST_BYTES = 4096


def _holder() -> str:
    return f"{_place()}:{os.getpid()}:{uuid.uuid4().hex[:12]}"


def _place() -> str:
    """Where process ids mean the same: the host and, where there are any, its namespace of process ids."""
    with contextlib.suppress(OSError):  # no Linux
        return f"{socket.gethostname()}:{os.readlink('/proc/self/ns/pid')[5:-1]}"
    return f"{socket.gethostname()}:-"


@dataclass
class Leases:
    """The leases of one driver. on=False: none is read or written. A store that refuses them is no error: they are hints.

    `renewing` writes them from a thread, one after the other; of each pack one thread alone writes or removes the lease, so one that was
    dropped stays so, and no other pack's waits for it.
    """

    store: Store
    on: bool = True
    holder: str = field(default_factory=_holder)
    _held: set[str] = field(default_factory=set)
    _halved: set[str] = field(default_factory=set)
    _renewed: float = field(default_factory=time.monotonic)
    _busy: set[str] = field(default_factory=set)
    _changed: threading.Condition = field(default_factory=threading.Condition)  # of `_busy`; also guards `_renewed`

    def take(self, pack: str) -> bool:
        """Hold the pack's lease; False where another living driver does."""
        if not self.on:
            return True
        if self._other(pack):
            return False
        with self._alone_with(pack):
            self._write(pack)
            self._held.add(pack)
        return True

    def renew(self, over: Callable[[], bool] = lambda: False) -> None:
        """Prolong what is held, when it is time to. over(): whether to leave the rest as it is."""
        with self._changed:
            if time.monotonic() - self._renewed <= _RENEW_S:
                return
            self._renewed = time.monotonic()
        for pack in tuple(self._held):
            if over():
                return
            with self._alone_with(pack):
                if pack in self._held:
                    self._write(pack)

    @contextlib.contextmanager
    def _alone_with(self, pack: str) -> Iterator[None]:
        """Wait until no other thread writes or removes this pack's lease, and keep it so meanwhile."""
        with self._changed:
            self._changed.wait_for(lambda: pack not in self._busy)
            self._busy.add(pack)
        try:
            yield
        finally:
            with self._changed:
                self._busy.remove(pack)
                self._changed.notify_all()

    @contextlib.contextmanager
    def renewing(self) -> Iterator[None]:
        """Renew from a thread meanwhile.

        A driver that runs packs in its own process may hear nothing of them for longer than a lease lasts, as during an evaluation or in
        a function of the person's own; one that runs them elsewhere would write hundreds of leases in the place of its other work.
        """
        if not self.on:
            yield
            return
        over = threading.Event()

        def renew() -> None:
            while not over.wait(_RENEW_S):
                self.renew(over.is_set)

        thread = threading.Thread(target=renew, name="leases", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def drop(self, pack: str) -> None:
        """Give up the lease of a pack that has ended or goes back into the queue."""
        with self._alone_with(pack):
            if pack in self._held:
                self._held.remove(pack)
                with contextlib.suppress(OSError):  # it expires
                    delete(self.store, _path(pack))

    def halve(self, pack: str) -> None:
        """Keep a pack's lease, which says from now on that its halves run instead; until `close`."""
        with self._alone_with(pack):
            if pack in self._held:
                self._halved.add(pack)
                self._write(pack)

    def halved(self, pack: str) -> bool:
        """Whether the driver that holds this lease runs the pack's halves instead."""
        return self.on and bool((_content(self.store, pack) or {}).get("halved"))

    def close(self) -> None:
        for pack in list(self._held):
            self.drop(pack)

    def _other(self, pack: str) -> bool:
        holder = _living(self.store, pack)
        return holder is not None and holder != self.holder

    def _write(self, pack: str) -> None:
        content = {"holder": self.holder, "expires": time.time() + LEASE_S}
        data = json.dumps(content | ({"halved": True} if pack in self._halved else {})).encode()
        with contextlib.suppress(
            OSError
        ):  # without it another driver may train the same pack, which costs work and nothing else
            if self.store.is_local:
                self._write_local(self.store.path(_path(pack)), data)
            else:
                write_bytes(self.store, _path(pack), data)

    def _write_local(self, target: str, data: bytes) -> None:
        """As `write_bytes` without its fsync, which costs milliseconds a pack: a lease lost in a crash is one whose driver is gone."""
        if self.store.begun:
            check_there(self.store)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        refuse_links_out(self.store.root, target)
        temporary = os.path.join(os.path.dirname(target), f".{uuid.uuid4().hex}.tmp")
        with open(temporary, "xb") as stream:
            stream.write(data)
        os.replace(temporary, target)


def read(store: Store, pack: str) -> tuple[str, float] | None:
    """(holder, expires at, in seconds since 1970) of a pack's lease; None where there is none, or a file that is no lease."""
    try:
        content = _content(store, pack) or {}
        holder, expires = content["holder"], float(content["expires"])
    except (ValueError, TypeError, KeyError, OverflowError):
        return None
    return (holder, expires) if isinstance(holder, str) and math.isfinite(expires) else None


def other_drivers(store: Store) -> bool:
    """Whether a living driver in another process holds a lease of the study."""
    packs = [name.removesuffix(".json") for name in list_names(store, "leases") if name.endswith(".json")]
    holders = (_living(store, pack) for pack in packs)
    return any(holder is not None and not holder.startswith(f"{_place()}:{os.getpid()}:") for holder in holders)


def _living(store: Store, pack: str) -> str | None:
    """The holder of a pack's lease that is valid: it can be read, has not expired, and its process is not known to be gone."""
    lease = read(store, pack)
    if lease is None:
        return None
    holder, expires = lease
    # one that lasts longer than any was written by a clock that is wrong
    return holder if 0 < expires - time.time() < 2 * LEASE_S and not _gone(holder) else None


def _content(store: Store, pack: str) -> Tree | None:
    """A lease as it stands in the store, its values unchecked."""
    try:
        info = info_of(store.filesystem, store.path(_path(pack)))
        if not info.is_file or info.size > _MOST_BYTES:
            return None
        content = json.loads(read_bytes(store, _path(pack)))
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _gone(holder: str) -> bool:
    """Whether the holder was a process of this machine that no longer runs: its lease need not be waited for."""
    place, _, rest = holder.rpartition(":")[0].rpartition(":")
    if place != _place() or not rest.isdecimal() or len(rest) > 9:
        return False
    try:
        os.kill(int(rest), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False  # another user's
    return False


def _path(pack: str) -> str:
    return f"leases/{pack}.json"
