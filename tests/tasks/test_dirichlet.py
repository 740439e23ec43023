"""Keyed Dirichlet draws against scipy: marginals, quantiles, entropy."""

import numpy as np
import pytest
import scipy
import torch

from harness.draw import Draw
from tasks.dirichlet import dirichlet, log_gamma_quantile


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.7, 1.0, 4.0])
def test_the_laws_are_dirichlet(alpha):
    """Each share is Beta(α, (S - 1) α), shares of one law have the covariance of the family, and the entropy is exact."""
    laws = dirichlet(Draw(torch.tensor([11])).quantiles((20_000, 4)), alpha)[0]
    assert laws.dtype == torch.float64
    assert torch.allclose(laws.sum(-1), torch.ones(20_000, dtype=torch.float64))
    beta = scipy.stats.beta(alpha, 3 * alpha)
    for share in laws.T.numpy():
        assert scipy.stats.kstest(share, beta.cdf).pvalue > 1e-3
    covariance = np.cov(laws.T.numpy())
    assert covariance[0, 1] == pytest.approx(-1 / (16 * (4 * alpha + 1)), rel=0.15)
    own = scipy.special.entr(laws.numpy()).sum(-1)
    mean = scipy.special.digamma(4 * alpha + 1) - scipy.special.digamma(alpha + 1)
    assert own.mean() == pytest.approx(mean, abs=4 * own.std() / 20_000**0.5)


@pytest.mark.parametrize("alpha", [0.03, 0.3, 1.7, 25.0, 1000.0])
def test_quantiles_of_the_table_are_scipys(alpha):
    uniform = torch.linspace(2**-33, 1 - 2**-33, 4001, dtype=torch.float64)
    uniform[1:20] = torch.logspace(-9.9, -5, 19, dtype=torch.float64)
    theirs = scipy.special.gammaincinv(alpha, uniform.numpy())
    there = theirs > 1e-300  # below it scipy has none
    assert there.mean() > 0.9
    np.testing.assert_allclose(log_gamma_quantile(uniform, alpha).numpy()[there], np.log(theirs[there]), atol=1e-10)


def test_a_law_belongs_to_its_numbers_alone():
    uniform = Draw(torch.tensor([3])).quantiles((50, 7))
    for alpha in (0.5, 1.0, 2.5):
        assert torch.equal(dirichlet(uniform[:, 20:21], alpha), dirichlet(uniform, alpha)[:, 20:21])
