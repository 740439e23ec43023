"""The claims on generation with a verifier (Li 2025, chapter 3)."""

from results.claims.claim import Claim, by_id
from results.claims.generation.backtracking import BT1, BT2, BT2_ALL, BT3, BT4, BT5
from results.claims.generation.walk import VGB1, VGB2, VGB2_TARGET

CLAIMS: dict[str, Claim] = by_id([BT1, BT2, BT2_ALL, BT3, BT4, BT5, VGB1, VGB2, VGB2_TARGET])
