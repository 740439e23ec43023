"""The claims on progressive distillation (Panigrahi et al. 2025)."""

from results.claims.claim import by_id
from results.claims.distillation.curriculum import R1, R1_LOW, R6_WIDTH
from results.claims.distillation.length_growth import GROWTH
from results.claims.distillation.measures import R5
from results.claims.distillation.parity import P8, R2, R3
from results.claims.distillation.pcfg import P13, P13_LABELS, P13_ONE_SHOT, R7, R7_HORIZON, R7_TOKENS
from results.claims.distillation.sweep import R4
from results.claims.distillation.tracking import TRACK
from results.claims.distillation.transformers import R6
from results.claims.distillation.tree import P11, P12

CLAIMS = by_id(
    [
        R1,
        R1_LOW,
        R2,
        R3,
        R4,
        R5,
        R6,
        R6_WIDTH,
        R7,
        R7_HORIZON,
        R7_TOKENS,
        P13,
        P13_ONE_SHOT,
        P13_LABELS,
        P8,
        P11,
        P12,
        GROWTH,
        TRACK,
    ]
)
