"""Claims of Varre, Yüce & Flammarion 2025, "Learning in-context n-grams with transformers" (arXiv 2508.12837)."""

from results.claims.claim import Claim, by_id
from results.claims.ngrams import gradients, lags, plateaus, stationarity

CLAIMS: dict[str, Claim] = by_id(
    (plateaus.N1, plateaus.N2, lags.N3, lags.N3_SECOND, stationarity.N4, gradients.N5, plateaus.N6),
)
