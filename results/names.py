"""The one way from a name of a store, which may be anyone's, to a part of a path or to an id of a page."""

import hashlib
import re

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]|^[^A-Za-z0-9]")  # a first dot would hide a file, a first "-" looks like an option
_MOST = 100  # characters: a digest and a suffix still fit into a file name


def slug(name: str) -> str:
    """A name of letters, digits, '.', '_' and '-' that stands for `name`; the name itself where it is such a one.

    Else what was replaced or cut off leaves a digest at the end, so that two names keep two slugs.

    >>> slug("since_write"), slug("p = 0.98")
    ('since_write', 'p___0.98-0bb593b6')
    """
    safe = _UNSAFE.sub("_", name)[:_MOST]
    if safe == name and name:
        return name
    return f"{safe or '_'}-{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()[:8]}"
