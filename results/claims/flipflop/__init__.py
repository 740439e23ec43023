"""The claims on flip-flop language modelling (Liu et al. 2023)."""

from results.claims.claim import by_id
from results.claims.flipflop.choices import R6, R6_POSITIONS, R6_SHARPENING, R7, R8
from results.claims.flipflop.context import T0
from results.claims.flipflop.data import R4, R5
from results.claims.flipflop.language import R3
from results.claims.flipflop.tail import R1, R1_ITERATES, R2
from results.claims.flipflop.theory import T2, T3

CLAIMS = by_id([R1, R1_ITERATES, R2, R3, R4, R5, R6, R6_POSITIONS, R6_SHARPENING, R7, R8, T0, T2, T3])
