"""The ends of an axis of error rates that lie within one decade."""

from fractions import Fraction

import numpy as np
import pytest

from results.report.plots.error_axis import NARROW, error_scale


def _shares():
    """Pairs of shares of up to 60 answers, the second at most NARROW times the first: many are ends of round numbers."""
    shares = sorted({Fraction(count, of) for of in range(2, 61) for count in range(1, of + 1)})
    return [(float(low), float(high)) for low in shares[::7] for high in shares if low <= high <= NARROW * low]


def _random():
    rng = np.random.default_rng(0)
    low = 10 ** rng.uniform(-9, 0, 20_000)
    return zip(low, np.minimum(low * 10 ** rng.uniform(0, 1, low.size), 1.0), strict=True)


@pytest.mark.parametrize("pairs", [_shares, _random])
def test_ends_hold_the_rates_and_stay_within_one(pairs):
    for low, high in pairs():
        scale = error_scale([low, high])
        assert scale.low - 1e-12 <= np.log10(low) <= np.log10(high) <= scale.high + 1e-12, (low, high)
        assert scale.high <= 0 or high > 1, (low, high)
        assert scale.span > 0, (low, high)
        assert len(scale.ticks) >= 2, (low, high)


def test_shares_of_few_answers_have_an_axis():
    """3 and 7 of 10, or 1 and 3 of 5: a fourth of their distance is rounded to just below a tenth, and the report of such a study broke."""
    for low, high in ((0.3, 0.7), (0.2, 0.6), (9 / 20, 17 / 20)):
        scale = error_scale([low, high])
        assert 10**scale.low == pytest.approx(low, rel=0.5)
        assert 10**scale.high == pytest.approx(high, rel=0.5)
