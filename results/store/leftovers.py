"""Removal of the temporary files that killed writers left in a local store.

`results.store.filesystem.write_local` and the leases write under such names.
"""

import contextlib
import os
import re
import stat
import time

from results.store.tables import Store

_OURS = re.compile(r"\.(?:.+\.)?[0-9a-f]{32}\.tmp|\.writable-[0-9a-f]{32}")
OLD_S = 3600.0  # age of a leftover; a writer that is slower finds its file gone, and writes it again


def remove_leftovers(store: Store) -> int:
    """Remove the temporary files of a study, and of kept weights, that are older than OLD_S; returns how many."""
    if not store.is_local:
        return 0  # an object store shows whole files only
    removed = 0
    for top in (store.path(), store.shared("artifacts")):
        for folder, _, names in os.walk(top):  # not into links
            removed += sum(_removed(os.path.join(folder, name)) for name in names if _OURS.fullmatch(name))
    return removed


def _removed(path: str) -> bool:
    with contextlib.suppress(FileNotFoundError):  # its writer has ended, or another driver removed it
        about = os.lstat(path)
        if stat.S_ISREG(about.st_mode) and time.time() - about.st_mtime > OLD_S:
            os.unlink(path)
            return True
    return False
