"""Claims on Dyck languages of Li's thesis (CMU-ML-25-120), section 2.2, which is Wen et al. 2023."""

from results.claims.claim import Claim, by_id
from results.claims.dyck import balance, variation

CLAIMS: dict[str, Claim] = by_id(
    (variation.DY1, variation.DY2, balance.DY3, balance.DY4, balance.DY5, balance.DY6, balance.DY7),
)
