"""N4: the gradient at the weights of a k-gram grows like √c and falls with the length of the strings (Varre et al. 2025, theorem 4.2).

Rows are those of the experiment `ngram_stationarity`.
"""

import math

import numpy as np
from numpy.typing import NDArray

from results.claims.claim import NOT_RUN, Claim, Finding, Terms, decide, settle
from results.claims.compare import above, percent
from results.claims.evidence import Condition, Evidence
from results.claims.requirements import gate, require_all
from results.statistics.intervals import Floats, clopper_pearson

NAME = "ngram_stationarity"
NOTHING = 1e-9  # a norm below it is 0: that of float64's rounding is 1e-16
SMALL = 0.01  # largest gradient of all other weights, as a share of that of the keys
EXACT = 0.01  # largest relative distance from √2 of the ratio of the norms at 2c and c
SEEN = 1.5  # least norm on the shortest strings, as a multiple of what noise makes


def scales_as_the_theorem(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge four shares of replicates.

    Those with gradient 0 at the unigram, with a gradient of the keys alone, with √2 times as much at 2c, and with less on the longest
    strings than on the shortest, after what noise adds is taken off.
    """
    experiments = evidence.with_settings({"experiment.name": NAME})
    by = {(_of(condition, "k"), _of(condition, "length"), _of(condition, "c")): condition for condition in experiments}
    orders = sorted({k for k, _, _ in by if k > 1})
    parts: list[tuple[str, NDArray[np.bool_]]] = []
    parts += [
        (f"{condition.name}: gradient 0", _values(evidence, condition, "all", needs) < NOTHING)
        for (k, *_), condition in by.items()
        if k == 1
    ]
    for k in orders:
        base = [(length, c) for (own, length, c) in by if own == k]
        lengths = sorted({length for length, c in base if (length, min(c for _, c in base)) in base})
        doubled = [(length, c) for length, c in base if (length, 2 * c) in base]
        if len(lengths) < 2 or not doubled:
            settle(NOT_RUN, f"k = {k:g} needs two lengths of the strings at one c, and one length with c and 2c")
        c = min(c for _, c in base)
        short, long = by[k, lengths[0], c], by[k, lengths[-1], c]
        norm, floor = _values(evidence, short, "key", needs), _values(evidence, short, "floor", needs)
        what = f"replicates of {short.name} have a gradient above {SEEN:g} times what noise makes"
        gate(int((norm > SEEN * floor).sum()), len(norm), terms.gate, what, "must: take more strings")
        others = _values(evidence, long, "others", needs)
        parts.append((f"{long.name}: of the keys alone", others < SMALL * _values(evidence, long, "key", needs)))
        length, c = doubled[0]
        once, twice = (_values(evidence, by[k, length, factor], "key", needs) for factor in (c, 2 * c))
        parts.append((f"k = {k:g}: √2 times as much at 2c", np.abs(twice / once / math.sqrt(2) - 1) < EXACT))
        less = _values(evidence, long, "squared", needs) < _values(evidence, short, "squared", needs)
        parts.append((f"k = {k:g}: less at T = {lengths[-1]:g} than at {lengths[0]:g}", less))
    if not orders or len(parts) == 3 * len(orders):
        settle(NOT_RUN, f"no conditions are of {NAME} with k = 1 and k = 2 or more")
    confidence = 1 - 0.05 / len(parts)
    intervals = [clopper_pearson(int(own.sum()), len(own), confidence) for _, own in parts]
    return decide(
        *above(intervals, terms.value),
        "; ".join(f"{what} in {percent(int(own.sum()), len(own), confidence)}" for what, own in parts),
        f"the exact interval of each share must lie above {terms.value:g}, and refutes below",
    )


def _of(condition: Condition, option: str) -> float:
    return float(condition.settings[f"experiment.{option}"])


def _values(evidence: Evidence, condition: Condition, metric: str, needs: int) -> Floats:
    """A metric of every replicate; settles the claim where one is missing. "all": the norm of all weights' gradient."""
    if metric == "all":
        return np.hypot(_values(evidence, condition, "key", needs), _values(evidence, condition, "others", needs))
    values = evidence.values(condition, metric)
    if not len(values) and condition.finished:
        settle(NOT_RUN, f"{condition.name} has no rows of {metric}")
    require_all(len(values), len(condition.replicates), needs, f"replicates of {condition.name} have ended")
    return values


N4 = Claim(
    "N4",
    "At the weights of a unigram or bigram only the keys have a gradient: 0 for the unigram, while the bigram's grows like √c and "
    "falls as strings grow longer.",
    "Varre et al. 2025, theorem 4.2",
    "share of replicates that must be exceeded",
    25,
    "25 replicates, a share of 0.75 to be exceeded by 4 shares: shown where 99 % of all replicates have each",
    scales_as_the_theorem,
    "ngrams/stationarity",
    of_experiments=True,
    of_share=True,
)
