"""The claims on semiautomata (Liu's thesis, section 3.4)."""

from results.claims.automata.curves import A2
from results.claims.automata.depth import A1, A1_DEPTH, A1_ORDER, A1_SEEDS
from results.claims.automata.growth import D1
from results.claims.automata.heads import A3
from results.claims.automata.length import A7, A7_RECENCY, A7_SHIFT, A8
from results.claims.automata.shift import A6, A6_LOW
from results.claims.automata.supervision import A4, A4_POSITIONS, A5
from results.claims.claim import by_id

CLAIMS = by_id([A1, A1_DEPTH, A1_SEEDS, A1_ORDER, A2, A3, A4, A4_POSITIONS, A5, A6, A6_LOW, A7, A7_SHIFT, A7_RECENCY, A8, D1])
