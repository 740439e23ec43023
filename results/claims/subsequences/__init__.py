"""The claims on traced subsequences (Sun et al. 2025)."""

from results.claims.claim import by_id
from results.claims.subsequences.additivity import S5
from results.claims.subsequences.alignment import S6
from results.claims.subsequences.capacity import S2
from results.claims.subsequences.depth import S1, S1_BELOW
from results.claims.subsequences.gradients import S4
from results.claims.subsequences.growth import S3, S3_ADAM

CLAIMS = by_id([S1, S1_BELOW, S2, S3, S3_ADAM, S4, S5, S6])
