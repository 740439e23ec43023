import hashlib
import math

import pytest
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.draw import STREAMS, Draw, philox4x32

# Random123 1.14, tests/kat_vectors, philox4x32 10 rounds: counter, key, output
KNOWN_ANSWERS = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


def _words(text):
    return torch.tensor([int(word, 16) for word in text.split()])


@pytest.mark.parametrize(("counter", "key", "output"), KNOWN_ANSWERS)
def test_philox_equals_the_published_vectors(counter, key, output):
    assert philox4x32(_words(counter), _words(key)).tolist() == _words(output).tolist()


def _philox_by_python_integers(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & 0xFFFFFFFF, (p0 >> 32) ^ c[3] ^ k[1], p0 & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(-(2**63), 2**63 - 1),
    step=st.integers(0, 2**32 - 1),
    stream=st.sampled_from(sorted(STREAMS)),
    site=st.integers(0, 2**16 - 1),
    element=st.integers(0, 2**40),
)
def test_any_element_follows_from_the_counter_layout(seed, step, stream, site, element):
    word = Draw(torch.tensor([seed]), stream, step, first=element).words((1,), site)
    block = element // 4
    counter = [block & 0xFFFFFFFF, step, STREAMS[stream] << 16 | site, block >> 32]
    expected = _philox_by_python_integers(counter, [seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF])
    assert word.tolist() == [[expected[element % 4]]]


def test_the_counter_layout_is_frozen():
    draw = Draw(torch.tensor([0, 7, 2**40 + 3]), "data", 17)
    parts = [
        draw.words((5, 3), 2),
        draw.integers(5, (4,)),
        draw.permutation(9),
        draw.categorical(torch.tensor([0.2, 0.5, 0.3]), (9,)),
    ]
    text = repr([part.tolist() for part in parts]) + repr(draw.uniform((3,)).tolist()) + repr(draw.normal((3,)).tolist())
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "b08c9ea310557eb4"
    assert draw.named("blocks.0.attention.query").step == 1838011650


@settings(max_examples=30, deadline=None)
@given(rows=st.integers(1, 9), width=st.integers(1, 7), first=st.integers(0, 8))
def test_rows_drawn_alone_equal_rows_of_the_whole(rows, width, first):
    draw = Draw(torch.tensor([3, 4]), "data", 5)
    whole = draw.words((first + rows, width))
    assert torch.equal(draw.rows(first).words((rows, width)), whole[:, first:])


def test_a_replicate_draws_the_same_in_any_pack():
    alone = Draw(torch.tensor([11]), "init").normal((50,))
    packed = Draw(torch.tensor([2, 11, 5]), "init").normal((50,))
    assert torch.equal(alone[0], packed[1])


def test_distributions_are_right():
    draw = Draw(torch.tensor([1]), "data")
    n = 200_000
    assert scipy.stats.kstest(draw.uniform((n,))[0].numpy(), "uniform").pvalue > 1e-3
    assert scipy.stats.kstest(draw.normal((n,), 1)[0].numpy(), "norm").pvalue > 1e-3
    counts = torch.bincount(draw.integers(7, (n,), 2)[0], minlength=7).numpy()
    assert scipy.stats.chisquare(counts).pvalue > 1e-3
    p = torch.tensor([0.1, 0.0, 0.65, 0.25], dtype=torch.float64)
    counts = torch.bincount(draw.categorical(p, (n,), 3)[0], minlength=4).numpy()
    assert counts[1] == 0
    assert scipy.stats.chisquare(counts[[0, 2, 3]], n * p.numpy()[[0, 2, 3]]).pvalue > 1e-3


def test_factors_of_dropout_are_of_16_bits_each_and_as_often_0_as_asked():
    draw, rates = Draw(torch.tensor([1, 2**40]), "dropout", 9), torch.tensor([0.3, 0.0])
    factors = draw.factors(rates, (200_000,), 5)
    level = int(rates[0] * 2**16)
    words = draw.words((100_000,), 5)[0].tolist()
    dropped = [half < level for word in words for half in (word & 0xFFFF, word >> 16)]
    assert (factors[0] == 0).tolist() == dropped
    assert factors[0].unique().tolist() == [0.0, float(1 / torch.tensor(1 - level / 2**16))]
    assert scipy.stats.binomtest(sum(dropped), 200_000, level / 2**16).pvalue > 1e-3
    assert factors[1].unique().tolist() == [1.0]


def test_laws_may_differ_between_replicates():
    laws = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    assert Draw(torch.tensor([1, 2])).categorical(laws, (5,)).tolist() == [[0] * 5, [1] * 5]


def test_permutations_are_uniform():
    orders = Draw(torch.tensor([9])).permutation(4, (24_000,))[0]
    code = (orders * torch.tensor([64, 16, 4, 1])).sum(-1)
    counts = torch.unique(code, return_counts=True)[1]
    assert len(counts) == math.factorial(4)
    assert scipy.stats.chisquare(counts.numpy()).pvalue > 1e-3


@settings(max_examples=20, deadline=None)
@given(size=st.integers(1, 30), data=st.data())
def test_a_subset_has_no_repeats(size, data):
    count = data.draw(st.integers(0, size))
    subset = Draw(torch.tensor([4])).subset(size, count, (6,))
    assert subset.shape == (1, 6, count)
    assert all(len(set(row)) == count and set(row) <= set(range(size)) for row in subset[0].tolist())


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Draw(torch.tensor([1]), "date"), "stream 'date'"),
        (lambda: Draw(torch.tensor([1]), step=-1), "step -1"),
        (lambda: Draw(torch.tensor([1])).words((2,), 2**16), "site 65536"),
        (lambda: Draw(torch.tensor([1])).subset(3, 4), "subset of 4"),
        (lambda: Draw(torch.tensor([1])).categorical(torch.tensor([0.5, 0.6]), (1,)), "sum to 1"),
        (lambda: Draw(torch.tensor([1])).categorical(torch.tensor([float("nan"), 1.0]), (1,)), "sum to 1"),
        (lambda: Draw(torch.tensor([1])).uniform(16), r"shape = 16 must be a tuple of whole numbers, such as \(16, 32\)"),
        (lambda: Draw(torch.tensor([1])).uniform((16.0,)), "must be a tuple of whole numbers"),
        (lambda: Draw([0, 1]), r"seeds are a list, and must be int64 \[R\], such as torch.tensor"),
        (lambda: Draw(torch.tensor([1.0])), "int64"),
        (lambda: Draw(torch.tensor([1])).rows(1).factors(torch.tensor([0.5]), (2,)), "all rows at once"),
    ],
)
def test_impossible_draws_are_refused(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
