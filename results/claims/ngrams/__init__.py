"""The claims on in-context n-grams (Varre et al. 2025)."""

from results.claims.claim import Claim, by_id
from results.claims.ngrams import gradients, lags, plateaus, stationarity

CLAIMS: dict[str, Claim] = by_id(
    (plateaus.N1, plateaus.N2, lags.N3, lags.N3_SECOND, stationarity.N4, gradients.N5, plateaus.N6),
)
