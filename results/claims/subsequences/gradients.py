"""S4: the gradient of each pair during training (after Sun et al. 2025, proposition 2.5).

Rows are those of `manyseeds probe STORE --probe associations` at the kept steps: frequency, gap and gradient of every pair.
"""

import numpy as np

from results.claims.claim import Claim, Finding, Part, Terms, decide_all
from results.claims.compare import median
from results.claims.evidence import Evidence
from results.claims.subsequences.growth import Pairs, measured
from results.statistics.intervals import Floats
from results.statistics.rank_correlation import spearman


def gradients_follow(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge Spearman's correlation of the gradient with frequency · gap, and with frequency alone, over pairs at each kept step."""
    by_condition = measured(evidence, needs)
    parts = []
    for name, replicates in by_condition.items():
        confidence = 1 - 0.05 / (2 * len(by_condition))
        whole = [
            {step: rank(pairs, pairs["frequency"] * pairs["gap"]) for step, pairs in steps.items()} for steps in replicates
        ]
        alone = [{step: rank(pairs, pairs["frequency"]) for step, pairs in steps.items()} for steps in replicates]
        middles = [float(np.median(list(by_step.values()))) for by_step in whole]
        gains = [
            float(np.median([by_step[step] - other[step] for step in by_step]))
            for by_step, other in zip(whole, alone, strict=True)
        ]
        level, gain = median(middles, confidence, least=-1.0), median(gains, confidence, least=-2.0)
        common = sorted(set.intersection(*(set(by_step) for by_step in whole)))
        curve = ", ".join(f"{step}: {np.median([by_step[step] for by_step in whole]):.2f}" for step in common)
        text = f"{name}: {level:.2f}, by {gain:.2f} above that of frequency alone; medians by step: {curve}"
        holds = level.interval.low > terms.value and gain.interval.low > 0
        parts.append(Part(holds, level.interval.high < terms.value or gain.interval.high < 0, text))
    return decide_all(
        parts,
        "Spearman's correlation of the gradient with frequency times gap, median over kept steps, then over replicates: ",
        f"the interval must lie above {terms.value:g}, and above the correlation with frequency alone, which is a factor of the measured "
        "gradient, in every condition",
    )


def rank(pairs: Pairs, by: Floats) -> float:
    """Spearman's correlation of the gradients; 0 where either orders nothing."""
    return float(spearman(pairs["gradient"], by))


S4 = Claim(
    "S4",
    "The gradient that a pair brings is ordered by its frequency times its gap.",
    "Sun et al. 2025, proposition 2.5; a prediction of ours, no experiment in the paper",
    "Spearman's correlation that the median replicate must be above",
    10,
    "10 replicates: a correlation by 0.1 above it is shown where those of replicates have a standard deviation of 0.07 at most",
    gradients_follow,
    "subsequences/long_tail",
    of_share=True,
)
