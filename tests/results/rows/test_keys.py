"""A key from its first digits: what is said where there is none."""

import pytest

from results.errors import StudyError
from results.rows.keys import resolve_key
from results.store.tables import open_store
from tests.results.store.sample_rows import commit_pack


def test_a_key_that_is_none_is_told_with_what_to_write(tmp_path):
    one, two, empty = (open_store(tmp_path, name) for name in ("one", "two", "empty"))
    commit_pack(one, "fd-0", ["abcdef0123"])
    commit_pack(two, "fd-1", ["bcdef01234"])
    assert resolve_key([one, two, empty], "b") == "bcdef01234"
    for stores, prefix, sentence in (
        ([one, two], "two", "two is a study: give a key after it, or the first digits of one"),
        ([one], "all", "begins with 'all'; give the first digits of one, such as abcdef01"),
        ([empty], "a", "no replicate of the study empty is committed, so there is no key 'a'"),
    ):
        with pytest.raises(StudyError, match=sentence):
            resolve_key(stores, prefix)
