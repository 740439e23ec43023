"""A file's own digest: any flipped bit shows, in the digest and in the marks around it too."""

import random

import pytest

from results.store.seal import BLANK, seal, state

CONTENT = b"rows " * 50 + BLANK.encode() + b" footer" * 20


def flipped(data: bytes, bit: int) -> bytes:
    return data[: bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1 :]


def test_every_single_flipped_bit_shows():
    sealed = seal(CONTENT)
    assert state(sealed) == "whole"
    assert [bit for bit in range(8 * len(sealed)) if state(flipped(sealed, bit)) != "damaged"] == []


def test_a_file_without_a_digest_is_told_apart_and_can_not_be_sealed():
    assert state(b"rows") == state(b"") == "unsealed"
    with pytest.raises(ValueError, match="without a place for its digest"):
        seal(b"rows")


def test_bytes_that_are_missing_or_added_show():
    sealed = seal(CONTENT)
    rng = random.Random(0)
    for _ in range(100):
        place = rng.randrange(len(sealed))
        assert state(sealed[:place] + sealed[place + 1 :]) == state(sealed[:place] + b"x" + sealed[place:]) == "damaged"


def test_text_of_the_content_that_reads_like_a_digest_does_no_harm():
    sealed = seal(BLANK.encode() + b"=sha256-manyseeds manyseeds-sha256=" + CONTENT)
    assert state(sealed) == "whole"
    assert state(flipped(sealed, 3)) == "damaged"
