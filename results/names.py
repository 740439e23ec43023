"""Safe names: the only way from a name in a store, which may be anyone's, to a part of a path or an id in a page."""

import hashlib
import re

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]|^[.-]")  # a first dot would hide a file, a first "-" looks like an option
_CUT, _DIGEST = 60, 8  # characters that are left of a name, and of what stands for the rest: two slugs fit into a file's name


def slug(name: str) -> str:
    """Make a name of letters, digits, '.', '_' and '-' that stands for `name`, or return `name` where it is one already.

    Where characters are replaced or cut off, a digest is added, so that two names have two slugs.

    >>> slug("since_write"), slug("p = 0.98")
    ('since_write', 'p___0.98-0bb593b6')
    """
    if name and len(name) <= _CUT + 1 + _DIGEST and not _UNSAFE.search(name):
        return name  # a slug is its own slug
    return f"{_UNSAFE.sub('_', name)[:_CUT] or '_'}-{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()[:_DIGEST]}"
