"""Calls that reach the store, made again while it is unreachable or full.

A store that refuses for minutes costs minutes: the call is repeated with waits that double up to a minute, for PATIENCE_S seconds,
and what was trained stays in memory meanwhile. A refusal that does not pass by itself, as for want of permission, is raised at once.
"""

import time
from collections.abc import Callable
from typing import TypeVar

from results.errors import StoreError
from results.store.filesystem import lasts, reason

PATIENCE_S = 600.0  # that a store may be away before a pack is given back
_LONGEST_S = 60.0  # between two attempts
_LOOK_S = 0.5  # between two looks at should_stop

T = TypeVar("T")


def patiently(
    call: Callable[[], T],
    should_stop: Callable[[], bool] = lambda: False,
    say: Callable[[str], None] = lambda text: None,
    patience_s: float | None = None,
) -> T:
    """The result of call(), repeated after every StoreError until `patience_s` seconds (PATIENCE_S) have passed or should_stop() is true.

    say: told once why the store is waited for. Raises the last StoreError.
    """
    left = PATIENCE_S if patience_s is None else patience_s
    wait, said = 1.0, False
    while True:
        try:
            return call()
        except StoreError as error:
            if left <= 0 or lasts(error) or should_stop():
                raise
            if not said:
                said = True
                say(f"the store refuses ({reason(error.__cause__ or error)}): trying again for {left / 60:.0f} minutes")
            until = time.monotonic() + min(wait, left)
            left -= wait
            wait = min(2 * wait, _LONGEST_S)
            while time.monotonic() < until and not should_stop():
                time.sleep(min(_LOOK_S, max(0.0, until - time.monotonic())))
