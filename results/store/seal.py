"""A digest inside a file: SHA-256 of all its other bytes, so that a changed bit anywhere in the file shows.

A writer puts BLANK into the metadata that the file's format allows, and `seal` fills in the digest. It stays with the file through
copies, merges and object stores. Two marks enclose it, so that damage to one of them does not make a file look as if it had no digest.
"""

import hashlib
import re
from collections.abc import Iterator
from itertools import islice
from typing import Literal

_OPEN, _CLOSE = b"manyseeds-sha256=", b"=sha256-manyseeds"
_DIGITS = 64
_ZEROS = b"0" * _DIGITS
_EITHER = re.compile(re.escape(_OPEN) + b"|" + re.escape(_CLOSE))
_MOST_PLACES = 8  # a file has one; each further one costs a pass over the file
BLANK = (_OPEN + _ZEROS + _CLOSE).decode()

State = Literal["whole", "damaged", "unsealed"]


def seal(data: bytes) -> bytes:
    """The file with its digest in the place of BLANK. ValueError where it has no BLANK."""
    place = data.rfind(BLANK.encode())
    if place < 0:
        raise ValueError("a file without a place for its digest can't be sealed")
    start = place + len(_OPEN)
    return data[:start] + hashlib.sha256(data).hexdigest().encode() + data[start + _DIGITS :]


def state(data: bytes) -> State:
    """Compare a file with its digest: whole, damaged, or `unsealed` where it has none, so that nothing is known."""
    seen: State = "unsealed"
    for start in islice(_places(data), _MOST_PLACES):
        if _holds(data, start):
            return "whole"
        seen = "damaged"
    return seen


def _places(data: bytes) -> Iterator[int]:
    """The places where the digits of a digest may begin, by what is left of its two marks; in a Parquet file they are near the end."""
    last = data.rfind(_OPEN) + len(_OPEN)
    if last >= len(_OPEN):
        yield last
    for mark in _EITHER.finditer(data):
        start = mark.end() if mark[0] == _OPEN else mark.start() - _DIGITS
        if start != last:
            yield start


def _holds(data: bytes, start: int) -> bool:
    end = start + _DIGITS
    if start < len(_OPEN) or data[start - len(_OPEN) : start] != _OPEN or data[end : end + len(_CLOSE)] != _CLOSE:
        return False
    digest = hashlib.sha256(memoryview(data)[:start])
    digest.update(_ZEROS)
    digest.update(memoryview(data)[end:])
    return digest.hexdigest().encode() == data[start:end]
