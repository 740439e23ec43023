"""A replicate's key from its first digits, as a command or a call is given it."""

import difflib
from collections.abc import Sequence

from results.errors import StudyError
from results.store.tables import Store, read


def resolve_key(stores: Sequence[Store], prefix: str) -> str:
    """The key of the only committed replicate that begins with `prefix`. ValueError where none or several do."""
    keys = sorted({key for store in stores for key in read(store, "replicates", ["key"])["key"].to_pylist()})
    where = f"{'study' if len(stores) == 1 else 'studies'} {', '.join(store.study for store in stores)}"
    matches = [key for key in keys if prefix and key.startswith(prefix)]
    if len(matches) > 1:
        some = ", ".join(key[: len(prefix) + 4] for key in matches[:3]) + (", …" if len(matches) > 3 else "")
        raise StudyError(f"{len(matches)} keys of the {where} begin with {prefix}: give more digits ({some})")
    if not keys:
        raise StudyError(f"no replicate of the {where} is committed, so there is no key {prefix!r}")
    if not matches and prefix in {store.study for store in stores}:
        raise StudyError(f"{prefix} is a study: give a key after it, or the first digits of one")
    if not matches:
        near = difflib.get_close_matches(prefix, [key[: len(prefix)] for key in keys], n=1)
        hint = f"; did you mean {near[0]}?" if near and prefix else f"; give the first digits of one, such as {keys[0][:8]}"
        raise StudyError(f"no key of the {len(keys)} replicates of the {where} begins with {prefix!r}{hint}")
    return matches[0]
