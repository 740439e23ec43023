"""Numbers in sentences, by the examples of their docstrings."""

import doctest

from results.rows import plural


def test_the_examples_hold():
    found = doctest.testmod(plural)
    assert found.attempted > 3
    assert found.failed == 0
