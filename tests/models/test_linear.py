"""The parts that all packed models are made of."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from models.linear import FewRows, embed

SIZES = st.integers(1, 6)


@settings(max_examples=25, deadline=None)
@given(replicates=SIZES, batch=SIZES, length=SIZES, vocabulary=SIZES, by_string=st.booleans(), seed=st.integers(0, 2**31))
def test_a_table_of_few_rows_has_the_gradient_of_any_table(replicates, batch, length, vocabulary, by_string, seed):
    """Both ways of a GPU and of a CPU, for tokens of strings [R, B, T] and for positions [R, T]."""
    make = torch.Generator().manual_seed(seed)
    shape = (replicates, batch, length) if by_string else (replicates, length)
    tokens = torch.randint(0, vocabulary, shape, generator=make)
    table = torch.randn(replicates, vocabulary, 3, dtype=torch.float64, generator=make, requires_grad=True)
    weights = torch.randn(*shape, 3, dtype=torch.float64, generator=make)
    vectors, usual = FewRows.apply(table, tokens), embed(table, tokens)
    assert torch.equal(vectors, usual)
    (gradient,), (wanted,) = (torch.autograd.grad(found, table, weights) for found in (vectors, usual))
    # a sum of at most 36 numbers of order 1 in another order
    torch.testing.assert_close(gradient, wanted, rtol=0, atol=36 * 10 * torch.finfo(torch.float64).eps)
