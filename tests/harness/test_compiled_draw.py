"""The draws in C have the bits of torch's, and torch draws where C can't."""

import shutil

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode

from harness import compiled_draw
from harness.draw import Draw
from tests.harness.draw_sources import rates, sites, sources

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler: cc")
PROPERTY = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module", autouse=True)
def afresh():
    """Another test may have left a refusal of a compiler that there never was."""
    compiled_draw._library.cache_clear()


@pytest.fixture
def by(monkeypatch):
    """by(c, make): what make() draws, in C or in torch."""

    def drawn(c, make):
        monkeypatch.setattr(compiled_draw.Progress, "words", 0)
        if c:
            compiled_draw.prepare()
        return make()

    return drawn


@needs_compiler
@PROPERTY
@given(case=sources(), site=sites)
def test_words_and_quantiles_have_the_bits_of_torch(by, case, site):
    source, shape = case
    for name in ("words", "quantiles"):
        make = getattr(source, name)
        ours, theirs = by(True, lambda make=make: make(shape, site)), by(False, lambda make=make: make(shape, site))
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        assert torch.equal(ours, theirs)


@needs_compiler
@PROPERTY
@given(case=sources(), site=sites, rate=rates)
def test_factors_of_dropout_have_the_bits_of_torch(by, case, site, rate):
    source, shape = case
    source, rate = Draw(source.seeds, "dropout", source.step), rate[: len(source.seeds)]
    ours, theirs = (by(c, lambda: source.factors(rate, shape, site)) for c in (True, False))
    assert ours.dtype == theirs.dtype == torch.float32
    assert ours.shape == theirs.shape == (len(rate), *shape)
    assert torch.equal(ours, theirs)


@needs_compiler
@PROPERTY
@given(
    seed=st.integers(0, 2**40),
    strings=st.integers(1, 20),
    order=st.integers(0, 3),
    symbols=st.integers(2, 5),
    length=st.integers(1, 20),
    certain=st.booleans(),
)
def test_chains_have_the_bits_of_torch(by, seed, strings, order, symbols, length, certain):
    source, contexts = Draw(torch.tensor([seed, 5])), symbols**order
    laws = source.quantiles((strings, contexts, symbols), 1)
    laws = torch.nn.functional.one_hot(laws.argmax(-1), symbols).double() if certain else laws / laws.sum(-1, keepdim=True)
    first = source.integers(contexts, (strings,), 2)
    kept = first.clone()
    ours, theirs = (by(c, lambda: source.chains(laws, first, length)) for c in (True, False))
    assert torch.equal(ours, theirs)
    assert torch.equal(first, kept)
    assert int(ours.min()) >= 0
    assert int(ours.max()) < symbols
    for place in range(min(order, length)):
        assert torch.equal(ours[..., place], first // symbols ** (order - 1 - place) % symbols)


@needs_compiler
def test_normal_numbers_and_permutations_are_the_same(by):
    source = Draw(torch.tensor([3, 4]), "init")
    assert by(True, compiled_draw.refusal) == ""
    for make in (
        lambda: source.normal((7, 9)),
        lambda: source.permutation(30),
        lambda: source.uniform((5,)),
        lambda: source.words(()),
    ):
        assert torch.equal(by(True, make), by(False, make))


@needs_compiler
def test_nothing_is_compiled_before_it_pays(by, monkeypatch):
    def never(source):
        raise AssertionError("it was compiled")

    monkeypatch.setattr(compiled_draw, "_library", lambda: never(None))
    source = Draw(torch.tensor([1]))
    by(False, lambda: source.words((100,)))
    assert compiled_draw.refusal() == ""
    with pytest.raises(AssertionError, match="compiled"):
        by(True, lambda: source.words((100,)))


def test_without_a_compiler_torch_draws_and_the_reason_is_known(by, monkeypatch):
    said = "there is no C compiler `no-such-compiler` (install one, or set CC)"
    expected = by(False, lambda: Draw(torch.tensor([1])).words((9,)))
    monkeypatch.setenv("CC", "no-such-compiler")
    monkeypatch.setattr(compiled_draw, "_library", compiled_draw._library.__wrapped__)  # as a process that has not compiled yet
    assert torch.equal(by(True, lambda: Draw(torch.tensor([1])).words((9,))), expected)
    assert compiled_draw.refusal() == said


@needs_compiler
def test_fake_tensors_are_left_to_torch(by):
    """They have no numbers in memory, nor has a GPU's tensor."""
    with torch._subclasses.FakeTensorMode():
        assert by(True, lambda: Draw(torch.zeros(2, dtype=torch.int64)).words((5,))).shape == (2, 5)


def test_c_writes_nothing_where_tensors_have_no_memory(monkeypatch):
    """A plan for a GPU goes through a step by shapes alone, with seeds that are real."""
    monkeypatch.setattr(compiled_draw, "_drawn", lambda *given: pytest.fail("C was asked to draw"))
    seeds = torch.arange(2)
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert Draw(seeds, "dropout", 1).words((compiled_draw._PAYS,)).shape == (2, compiled_draw._PAYS)
