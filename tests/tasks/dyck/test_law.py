"""The law of bracket strings against an enumeration that follows the definitions, and its samples against it."""

import functools
import itertools
import math

import numpy as np
import pytest
import scipy.stats
import torch

from harness.draw import Draw
from tasks.dyck.law import Law, depths
from tests.tasks.dyck.prefix_laws import log_probability, next_laws

LAWS = {
    "any": Law((0.3, 0.7), 2, 5, q=0.4),
    "stop": Law((0.5, 0.5), 3, 6, q=0.4, ending="stop"),
    "forced": Law((0.2, 0.8), 3, 6, q=0.6, ending="forced"),
    "closed": Law((0.2, 0.8), 2, 6, q=0.6, ending="closed"),
    "one type": Law((1.0,), 2, 6, ending="stop", stop=0.3),
}
EACH = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)


def _is_prefix(string, depth):
    """Whether brackets match and no more than `depth` are open, with an explicit stack."""
    stack = []
    for bracket in string:
        if bracket % 2 == 0:
            stack.append(bracket)
        elif not stack or stack.pop() != bracket - 1:
            return None
        if len(stack) > depth:
            return None
    return len(stack)


def _weight(string, law):
    """The probability of the process's choices, 0 where it makes no such string; by Definitions 2.2.1 and 3.2.1."""
    if _is_prefix(string, law.depth) is None:
        return 0.0
    weight, depth = 1.0, 0
    for written, bracket in enumerate(string):
        must_close = depth == law.depth or (law.ending == "forced" and depth == law.length - written)
        must_open = depth == 0
        if must_open and law.ending == "stop" and written:
            weight *= 1 - law.stop
        opening = bracket % 2 == 0
        if must_close or must_open:
            weight *= opening == (not must_close)
        else:
            weight *= law.q if opening else 1 - law.q
        weight *= law.types[bracket // 2] if opening else 1
        depth += 1 if opening else -1
    return weight * (law.stop if law.ending == "stop" else 1) * (law.ending == "any" or depth == 0)


@functools.cache
def _enumerated(law):
    lengths = range(1, law.length + 1) if law.ending == "stop" else [law.length]
    found = {
        string: weight
        for length in lengths
        for string in itertools.product(range(2 * law.kinds), repeat=length)
        if (weight := _weight(string, law)) > 0
    }
    total = sum(found.values())
    return {string: weight / total for string, weight in found.items()}, total


@EACH
def test_strings_and_prefixes_have_the_probabilities_of_an_enumeration(law):
    strings, total = _enumerated(law)
    assert law.success[0, 0] == pytest.approx(total, abs=1e-12)
    assert law.ending == "stop" or law.ending == "closed" or total == pytest.approx(1, abs=1e-12)
    prefixes = {}
    for string, chance in strings.items():
        assert math.exp(log_probability(law, [*string, law.end])) == pytest.approx(chance, abs=1e-9)
        for size in range(len(string) + 1):
            prefixes[string[:size]] = prefixes.get(string[:size], 0.0) + chance
    for prefix, chance in prefixes.items():
        assert math.exp(log_probability(law, prefix)) == pytest.approx(chance, abs=1e-9)
        wanted = [prefixes.get((*prefix, bracket), 0.0) / chance for bracket in range(law.end)]
        *_, following = next_laws(law, prefix)
        np.testing.assert_allclose(following, [*wanted, strings.get(prefix, 0.0) / chance], rtol=0, atol=1e-9)
    assert log_probability(law, [1]) == -math.inf
    assert log_probability(law, [0] * (law.depth + 1)) == -math.inf


@EACH
def test_tables_are_sums_over_the_enumeration(law):
    strings, _ = _enumerated(law)
    occupation, lengths = np.zeros_like(law.occupation), np.zeros(law.length + 1)
    going_on = {}
    for string, chance in strings.items():
        lengths[len(string)] += chance
        for size in range(len(string) + 1):
            prefix = string[:size]
            state = size, _is_prefix(prefix, law.depth)
            occupation[state] += chance
            going_on.setdefault((state, prefix), set()).add(string)
    np.testing.assert_allclose(law.occupation, occupation, rtol=0, atol=1e-9)
    np.testing.assert_allclose(law.lengths, lengths, rtol=0, atol=1e-9)
    assert all(law.completions[state] == len(found) for (state, _), found in going_on.items())
    assert law.completions[0, 0] == len(strings)
    assert law.entropy == pytest.approx(-sum(p * math.log(p) for p in strings.values()), abs=1e-9)


def test_counts_stay_exact_where_float64_does_not():
    """Strings of n pairs and k types without a bound on the depth that binds: k^n times a Catalan number."""
    law = Law((0.25,) * 4, 31, 62, ending="forced")
    assert law.completions[0, 0] == 4**31 * math.comb(62, 31) // 32


@pytest.mark.parametrize("name", ["any", "stop", "forced", "closed"])
def test_samples_follow_the_law(name):
    law = LAWS[name]
    strings, _ = _enumerated(law)
    draws = 100_000
    words = Draw(torch.tensor([5]), "evaluate").words((draws, law.length)).numpy()[0]
    rows, counts = np.unique(law.sample(words), axis=0, return_counts=True)
    seen = {tuple(int(each) for each in row if each != law.end): count for row, count in zip(rows, counts, strict=True)}
    assert seen.keys() <= strings.keys()
    expected = np.array([draws * chance for chance in strings.values()])
    observed = np.array([seen.get(string, 0) for string in strings])
    rare = expected < 5
    observed, expected = (np.append(each[~rare], each[rare].sum()) for each in (observed, expected))
    kept = expected > 0
    assert scipy.stats.chisquare(observed[kept], expected[kept]).pvalue > 1e-3


def test_depths_are_those_after_each_bracket():
    assert depths(np.array([[0, 2, 3, 1, 4, 4], [2, 3, 2, 0, 1, 3]]), 2).tolist() == [[1, 2, 1, 0, 0, 0], [1, 0, 1, 2, 1, 0]]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"types": (0.5, 0.4)}, "must be probabilities that sum to 1"),
        ({"depth": 0}, "depth = 0 must be at least 1"),
        ({"q": 1.0}, "q = 1 must be a probability above 0 and below 1"),
        ({"stop": 0.0}, "stop = 0 must be a probability above 0"),
        ({"ending": "open"}, "ending = 'open' must be any or stop or forced or closed"),
        ({"length": 1, "ending": "stop"}, "length = 1 must be at least 2"),
        ({"length": 5, "ending": "forced"}, "length = 5 must be even"),
    ],
)
def test_a_law_that_cannot_be_is_refused(fields, said):
    with pytest.raises(ValueError, match=said):
        Law(**{"types": (0.5, 0.5), "depth": 2, "length": 4} | fields)
