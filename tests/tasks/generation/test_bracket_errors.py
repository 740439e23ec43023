"""The first error of a string is the first token after which no valid string begins with it, found here by trying them all."""

import itertools

import pytest
import torch

from tasks.generation.bracket_errors import KINDS, first_errors, valid
from tasks.generation.bracket_strings import END, BracketStrings

TASK = BracketStrings(length=4, depth=2)


def whole_strings():
    """Every valid string with its end, written out."""
    pairs = ("01", "23")
    shapes = [one + other for one in pairs for other in pairs] + [one[0] + other + one[1] for one in pairs for other in pairs]
    return {(*map(int, shape), END) for shape in shapes}


def test_every_string_of_a_small_language_goes_wrong_where_no_whole_string_goes_on():
    whole = whole_strings()
    beginnings = {string[:n] for string in whole for n in range(6)}
    strings = torch.tensor(list(itertools.product(range(5), repeat=5)))
    found = first_errors(TASK, strings, torch.full((len(strings),), 5))
    for string, place, kind in zip(strings.tolist(), found.place.tolist(), found.kind.tolist(), strict=True):
        wrong = next((n for n in range(5) if tuple(string[: n + 1]) not in beginnings), None)
        assert place == (5 if wrong is None else wrong)
        assert (kind == -1) == (wrong is None)
    assert {tuple(each) for each in strings[valid(TASK, strings, torch.full((len(strings),), 5))].tolist()} == whole


@pytest.mark.parametrize(
    ("string", "kind", "place"),
    [
        ([0, 3], "wrong_type", 1),
        ([0, 1, 1], "nothing_open", 2),
        ([0, 2, 0], "too_deep", 2),
        ([0, 1, 0, 0], "unclosable", 3),
        ([0, 1, 4], "early_end", 2),
        ([0, 1, 2, 3, 0], "late_end", 4),
        ([0, 2, 3, 3], "wrong_type", 3),
    ],
)
def test_each_kind_of_error_is_told_by_its_first_token(string, kind, place):
    found = first_errors(TASK, torch.tensor([string + [0] * (5 - len(string))]), torch.tensor([len(string)]))
    assert KINDS[int(found.kind)] == kind
    assert int(found.place) == place


def test_a_string_that_was_cut_short_is_no_error_and_not_whole():
    strings, lengths = torch.tensor([[0, 1, 2, 3, 4], [0, 2, 1, 1, 1]]), torch.tensor([4, 2])
    assert first_errors(TASK, strings, lengths).kind.tolist() == [-1, -1]
    assert first_errors(TASK, strings, lengths).place.tolist() == [4, 2]
    assert not valid(TASK, strings, lengths).any()
