"""How much of the spread of error rates lies between replicates, beside the spread that replicates would have if they were all alike.

A beta-binomial model: replicate i errs with its own probability, Beta(a, b) over replicates, and its errors are binomial given that. The
maximum of the likelihood is in the intraclass correlation 1/(a + b + 1), which at its ends is no fit but an outcome with a name.
"""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from results.statistics.intervals import CONFIDENCE, Floats, Interval, ratio_variance

NO_ERROR, ALL_WRONG = "no error", "all wrong"
NO_SPREAD, ALL_OR_NOTHING, FITTED = "no overdispersion", "all or nothing", "fitted"
_EDGE = 1e-8  # a correlation closer to 0 or 1 than this counts as that end
_GAIN = 1e-4  # twice the log-likelihood that a spread must gain: less is lost in rounding, and its p would be 0.496


@dataclass(frozen=True)
class Split:
    """The split of the spread. outcome: fitted, or the end of the model at which the data lie. a, b: only where fitted.

    mean: error probability of the average replicate; icc = 1/(a + b + 1): correlation of two reads of one replicate, None where nothing
    differs; between and within: variance of replicates' probabilities, and mean variance of a rate around its replicate's probability;
    p: one-sided, against no overdispersion, by the likelihood ratio (None where there is no test).
    """

    outcome: str
    replicates: int
    mean: float
    icc: float | None
    a: float | None
    b: float | None
    between: float
    within: float
    p: float | None


def split(errors: ArrayLike, count: ArrayLike) -> Split:
    """Maximum likelihood over replicates with `errors` of `count` reads ([n] each; fractions are allowed: see `effective`).

    A diverged replicate has no count and must be left out, and counted beside the result. Reads of a replicate are taken as independent
    given its probability, so errors in bursts look like spread between replicates unless `effective` counts are given. ValueError for
    fewer than 2 replicates, errors outside 0 … count, or single reads, which say nothing about a replicate.
    """
    e, c = np.asarray(errors, dtype=np.float64), np.asarray(count, dtype=np.float64)
    if e.shape != c.shape or e.ndim != 1 or e.size < 2:
        raise ValueError(f"{e.size} error counts and {c.size} read counts: give both of at least 2 replicates")
    if not ((e >= 0) & (e <= c) & (c > 0) & np.isfinite(c)).all():
        raise ValueError("every replicate needs reads and 0 to that many errors: leave diverged and missing ones out")
    if (c <= 1).all():
        raise ValueError("every replicate has one read: nothing tells its own chance from another's")
    mean = float(e.sum() / c.sum())
    if mean in (0.0, 1.0):
        return Split(NO_ERROR if mean == 0 else ALL_WRONG, e.size, mean, None, None, None, 0.0, 0.0, None)
    if ((e == 0) | (e == c)).all():
        share = float((e > 0).mean())  # the limit of the likelihood at correlation 1: one coin a replicate
        return Split(ALL_OR_NOTHING, e.size, share, 1.0, None, None, share * (1 - share), 0.0, None)
    alone = _binomial(mean, e, c)
    best, icc, likelihood = _maximum(e, c, mean)
    ratio = 2 * (likelihood - alone)
    if icc <= _EDGE or ratio <= _GAIN:
        return Split(NO_SPREAD, e.size, mean, 0.0, None, None, 0.0, float((mean * (1 - mean) / c).mean()), 1.0)
    a, b = best * (1 - icc) / icc, (1 - best) * (1 - icc) / icc
    whole = best * (1 - best)
    # at the end of the parameter's range the ratio is 0 half of the time (Self and Liang 1987)
    p = float(scipy.stats.chi2.sf(ratio, 1) / 2)
    return Split(FITTED, e.size, best, icc, a, b, whole * icc, float((whole * (1 - icc) / c).mean()), p)


def icc_interval(errors: ArrayLike, count: ArrayLike, confidence: float = CONFIDENCE) -> Interval | None:
    """Profile likelihood interval of the intraclass correlation of `split`, of the same [n] errors and counts.

    The correlations whose likelihood, at the best mean for each, is within half a quantile of F(1, n - 1) of the largest: for few
    replicates it is wider than the usual chi-squared one, which it approaches. It starts at 0 where no overdispersion is not
    excluded, and ends at 1 where nothing is; None where nothing differs (no error, all wrong).
    Approximate: how often it covers is in docs/explanation/statistics.md. ValueError as `split`.
    """
    spread = split(errors, count)
    if spread.icc is None:
        return None
    e, c = np.asarray(errors, dtype=np.float64), np.asarray(count, dtype=np.float64)
    start = float(scipy.special.logit(spread.mean))

    def profile(x: float) -> float:
        """The profile likelihood at the correlation expit(x)."""
        icc = float(scipy.special.expit(x))
        near = scipy.optimize.minimize_scalar(
            # finite: the search takes differences of its values
            lambda mean: min(-_beta_binomial(float(scipy.special.expit(mean)), icc, e, c), 1e300),
            bracket=(start - 0.5, start + 0.5),
            tol=1e-5,
        )
        return -float(near.fun)

    end = float(scipy.special.logit(_EDGE))
    best = (
        _binomial(spread.mean, e, c) if spread.icc == 0 else profile(float(np.clip(scipy.special.logit(spread.icc), end, -end)))
    )
    least = best - float(scipy.stats.f.ppf(confidence, 1, e.size - 1)) / 2
    top = end if spread.icc == 0 else float(np.clip(scipy.special.logit(spread.icc), end, -end))

    def side(outer: float) -> float:
        """Where the profile crosses `least` between the maximum and this end; the end itself where it does not."""
        if profile(outer) >= least:
            return 0.0 if outer < 0 else 1.0
        return float(scipy.special.expit(scipy.optimize.brentq(lambda x: profile(x) - least, *sorted((top, outer)), xtol=1e-4)))

    return Interval(0.0 if spread.icc == 0 else side(end), 1.0 if spread.icc == 1 else side(-end))


def effective(
    errors: ArrayLike,
    count: ArrayLike,
    sequences: ArrayLike,
    errors_sq: ArrayLike,
    errors_x_count: ArrayLike,
    count_sq: ArrayLike,
) -> tuple[Floats, Floats]:
    """Errors and reads divided by the design effect of errors in bursts: [n] each, for `split` (Rao and Scott 1992, Biometrics 48).

    The design effect is that of all replicates together: the sum of their variances clustered by sequence over the sum of binomial
    ones. One for all, because a replicate with few errors, or none, can't tell its own. At least 1.
    """
    e, c, n, ee, ec, cc = (
        np.atleast_1d(np.asarray(values, dtype=np.float64))
        for values in (errors, count, sequences, errors_sq, errors_x_count, count_sq)
    )
    if not ((e >= 0) & (e <= c) & (c > 0) & (n > 1)).all():
        raise ValueError("every replicate needs reads, 0 to that many errors and at least 2 sequences")
    rate = e / c
    alone = float((rate * (1 - rate) / c).sum())
    factor = max(1.0, float(ratio_variance(e, c, n, ee, ec, cc).sum()) / alone) if alone else 1.0
    return e / factor, c / factor


def _binomial(mean: float, e: Floats, c: Floats) -> float:
    """Log-likelihood of one probability for all replicates, without the binomial coefficients, as in `_beta_binomial`."""
    return float((scipy.special.xlogy(e, mean) + scipy.special.xlog1py(c - e, -mean)).sum())


def _beta_binomial(mean: float, icc: float, e: Floats, c: Floats) -> float:
    size = (1 - icc) / icc
    a, b = mean * size, (1 - mean) * size
    return float((scipy.special.betaln(a + e, b + (c - e)) - scipy.special.betaln(a, b)).sum())


def _maximum(e: Floats, c: Floats, mean: float) -> tuple[float, float, float]:
    """Mean, correlation and log-likelihood at the best of several starts, in logits."""

    def worse(x: Floats) -> float:
        chance, icc = scipy.special.expit(x)
        return -_beta_binomial(float(chance), float(icc), e, c)

    starts = [np.array([scipy.special.logit(mean), scipy.special.logit(icc)]) for icc in (1e-4, 1e-2, 0.3)]
    bounds = [(-25.0, 25.0), (float(scipy.special.logit(_EDGE)), -float(scipy.special.logit(_EDGE)))]
    searches = [scipy.optimize.minimize(worse, start, method="L-BFGS-B", bounds=bounds) for start in starts]
    best = min(searches, key=lambda search: search.fun)
    best = min(best, scipy.optimize.minimize(worse, best.x, method="Nelder-Mead", bounds=bounds), key=lambda search: search.fun)
    mean, icc = (float(value) for value in scipy.special.expit(best.x))
    return mean, icc, -float(best.fun)
