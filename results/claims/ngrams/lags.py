"""N3: which lags the heads of the first layer learn first (Varre et al. 2025, section I.2 and figure 5).

Rows are those of `evaluate.watch` with lags: "lag 0.H.q", the mean weight that head H gives to the token q before.
"""

from functools import partial

from results.claims.claim import Claim, Finding, Terms, decide
from results.claims.compare import above, percent
from results.claims.evidence import Evidence
from results.claims.ngrams.courses import LEARNED, conditions, heads_of, learned_lags
from results.claims.requirements import gate
from results.statistics.intervals import clopper_pearson

PATTERNS = ("simple_disentangled", "disentangled", "attn_only")


def learned_in_place(evidence: Evidence, terms: Terms, needs: int, lag: int, least_order: int) -> Finding:
    """Judge the share of replicates whose first lag is 1 (`lag` = 1), or whose second lag is 2 (`lag` = 2), among those that learn so many.

    least_order: the smallest n at which it could be another lag.
    """
    place = lag - 1
    compared = conditions(evidence, needs, PATTERNS, least_order)
    confidence, texts, intervals = 1 - 0.05 / len(compared), [], []
    for condition in compared:
        learned = [order for heads in heads_of(evidence, condition) if len(order := list(learned_lags(heads))) > place]
        what = f"replicates of {condition.name} learn {place + 1} lags or more"
        gate(len(learned), len(condition.replicates), terms.gate, what, "must: train for longer")
        count = sum(order[place] == lag for order in learned)
        others = sorted({order[place] for order in learned} - {lag})
        intervals.append(clopper_pearson(count, len(learned), confidence))
        rest = ", ".join(f"lag {other} in {sum(order[place] == other for order in learned)}" for other in others)
        texts.append(
            f"{condition.name}: {percent(count, len(learned), confidence)} learn lag {lag} {('first', 'second')[place]}"
            + (f" ({rest})" if rest else "")
        )
    return decide(
        *above(intervals, terms.value),
        "; ".join(texts),
        f"the exact interval must lie above {terms.value:g} in every condition, and refutes below; a lag is learned where a head gives it "
        f"more than {LEARNED:g} of its weight",
    )


N3 = Claim(
    "N3",
    "The heads of the first layer learn to copy the token just before, lag 1, before any other.",
    "Varre et al. 2025, section I.2 and figure 5 (5 of 5 seeds)",
    "share of replicates that must be exceeded",
    25,
    "25 replicates, a share of 0.75 to be exceeded: shown where 98 % of all replicates learn lag 1 first",
    partial(learned_in_place, lag=1, least_order=3),
    "ngrams/figure3",
    of_share=True,
)
N3_SECOND = Claim(
    "N3-second",
    "Contiguous history comes first for longer n-grams too: the second lag that is learned is 2.",
    "Varre et al. 2025, section I.2, whose runs are of n = 3, where the second lag can be no other",
    "share of replicates that must be exceeded",
    25,
    "25 replicates, a share of one half: shown where 78 % of all replicates learn lag 2 second, refuted where 22 % do",
    partial(learned_in_place, lag=2, least_order=4),
    "ngrams/lag_order",
    of_share=True,
)
