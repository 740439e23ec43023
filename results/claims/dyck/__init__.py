"""The claims on Dyck languages (Li 2025, section 2.2; Wen et al. 2023)."""

from results.claims.claim import Claim, by_id
from results.claims.dyck import balance, variation

CLAIMS: dict[str, Claim] = by_id(
    (variation.DY1, variation.DY2, balance.DY3, balance.DY4, balance.DY5, balance.DY6, balance.DY7),
)
