"""The claims on chains of group actions (Huang et al. 2025)."""

from results.claims.claim import by_id
from results.claims.lego.attention import L3, L4, L5
from results.claims.lego.lengths import L1, L2
from results.claims.lego.stages import L6, L7, L8

CLAIMS = by_id([L1, L2, L3, L4, L5, L6, L7, L8])
