"""T2 and T3: the theory of attention against rows of probes (Liu's thesis, propositions 4 and 5, figure 3.33)."""

from collections.abc import Mapping

import numpy as np
import scipy

from results.claims.claim import NOT_REPRODUCED, NOT_RUN, PRECONDITION, TOO_FEW, Claim, Finding, Terms, decide, settle
from results.claims.compare import above, percent
from results.claims.evidence import Condition, Evidence
from results.claims.flipflop.read_sets import gate_in_distribution, training_sets
from results.claims.requirements import gate_learned, probed_conditions
from results.grouping import grouped
from results.rows.probe_values import Items, Name, by_item, parts
from results.statistics.intervals import clopper_pearson

ALPHA = 0.05
ROUNDING = 1e-9  # of a bound that is taken in float64
INFORMATIVE = 0.99  # a bound above says little
RARER = 2  # failures of each sign, below which 15 failures cannot show an association


def attention_dilutes(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge whether no weight exceeds its bound, and weights fall from the shortest to the longest strings in enough replicates.

    The even attention of a model that has learned nothing would pass, so every probed condition is gated on its training distribution.
    """
    conditions = probed_conditions(evidence, "dilution", needs)
    gate_learned(evidence, conditions, training_sets)
    exceeding, heads, low, fell, total, told = 0, 0, 0, 0, 0, 0
    for condition in conditions:
        for _, values in evidence.probed(condition, "dilution"):
            items = _items(values)
            longest, shortest = max(length for length, _ in items), min(length for length, _ in items)
            if longest == shortest:
                settle(NOT_RUN, f"{condition.name} was probed at strings of {longest} alone, and the claim is of growing ones")
            for length in {length for length, _ in items}:
                bounds, largest = items[length, "bound"], items[length, "largest"]
                exceeding += int((largest > bounds * (1 + ROUNDING)).sum())
            heads += len(items[longest, "bound"])
            low += int((items[longest, "bound"] < INFORMATIVE).sum())
            told += bool((items[longest, "bound"] < INFORMATIVE).any())
            fell += bool(items[longest, "mean"].mean() < items[shortest, "mean"].mean())
            total += 1
    measured = (
        f"{exceeding} weights above their bound; the bound of {low} of {heads} heads is below {INFORMATIVE} on the longest strings; "
        f"the largest weights are smaller there than on the shortest in {percent(fell, total)} replicates"
    )
    if told < needs and not exceeding:
        settle(
            PRECONDITION,
            f"{told} of {total} replicates have a head whose bound is below {INFORMATIVE} on the longest strings, and {needs} must: "
            "a bound of 1 holds for any weight",
            measured,
        )
    if exceeding:
        return Finding(NOT_REPRODUCED, measured, "no weight may be above its bound")
    return decide(
        *above([clopper_pearson(fell, total)], terms.value),
        measured,
        f"no weight may be above its bound, and more than {terms.value:.0%} of the replicates must dilute",
    )


def margin_predicts_failure(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge whether models that fail on the longer string attend to recent no-ops with a positive margin, else to the early write."""
    conditions = probed_conditions(evidence, "drift", needs)
    for condition in conditions:
        gate_in_distribution(evidence, condition, terms.gate)
    failures = [failure for condition in conditions for failure in _failures(evidence, condition)]
    probed = sum(len(evidence.probed(condition, "drift")) for condition in conditions)
    if not failures:
        settle(
            PRECONDITION,
            f"none of {probed} replicates attends to recent no-ops or the early write at the end of the longer string",
        )
    if len(failures) < needs:
        settle(TOO_FEW, f"{len(failures)} of {probed} replicates fail; the claim needs {needs} that do")
    positive, recent = (np.array(column) for column in zip(*failures, strict=True))
    rarer = min(int(positive.sum()), int((~positive).sum()))
    if rarer < RARER:
        sign = "above" if positive.sum() > rarer else "below"
        settle(
            PRECONDITION,
            f"the margins of {len(failures) - rarer} of {len(failures)} replicates that fail are {sign} 0: the claim compares both "
            f"signs, and {RARER} must have the other",
        )
    table = [[int((positive & recent).sum()), int((positive & ~recent).sum())]]
    table.append([int((~positive & recent).sum()), int((~positive & ~recent).sum())])
    predicted, opposite = (float(scipy.stats.fisher_exact(table, side).pvalue) for side in ("greater", "less"))
    matched = int((positive == recent).sum())
    share = clopper_pearson(matched, len(failures))
    return decide(
        predicted < ALPHA and share.low > terms.value,
        opposite < ALPHA or share.high < terms.value,
        f"the sign of W_Qp · W_Kp tells the failure of {percent(matched, len(failures))} replicates that fail: of {sum(table[0])} above 0, "
        f"{table[0][0]} attend to recent no-ops; of {sum(table[1])} below, {table[1][1]} to the early write (Fisher's p = {predicted:.2g})",
        f"an association with p below {ALPHA:g}, and more than {terms.value:.0%} told",
    )


def _items(values: dict[Name, float]) -> dict[tuple[int, str], np.ndarray]:
    """Values of all heads by length and item, always in the same order of heads."""
    ordered = sorted(values.items(), key=lambda pair: (pair[0][1], pair[0][2]))
    lengths = grouped(
        ((int(gaps[0]), gaps[1]), value) for (*_, item), value in ordered if (gaps := parts(item, "T={n} {word}"))
    )
    return {name: np.array(numbers) for name, numbers in lengths.items()}


def drifted(values: Mapping[Name, float]) -> tuple[Items, int]:
    """What the probe of drift measured in one replicate, by item, and the last position of string b."""
    items = by_item(values)
    return items, max((int(gaps[0]) for item in items if (gaps := parts(item, "b p={n} {word}"))), default=0)


def _failures(evidence: Evidence, condition: Condition) -> list[tuple[bool, bool]]:
    """(margin above 0, attends to recent no-ops rather than to the early write) of the replicates that fail at the end of string b."""
    failures = []
    for _, values in evidence.probed(condition, "drift"):
        items, last = drifted(values)
        recent, early = items[f"b p={last} recent"], items[f"b p={last} early"]
        if max(recent, early) > 0.5:
            failures.append((items["margin"] > 0, recent > early))
    return failures


T2 = Claim(
    "T2",
    "Attention dilutes: no weight exceeds exp(2σ)/(exp(2σ) + T - 1), and the largest weights fall as strings grow.",
    "Liu's thesis, Proposition 4",
    "share of replicates whose largest weights must fall with length",
    15,
    "15 replicates: that most dilute, where 85 % of all do",
    attention_dilutes,
    of_share=True,
)
T3 = Claim(
    "T3",
    "The sign of W_Qp · W_Kp tells how linear positions fail: above 0 by a drift to recent no-ops, below 0 to the early write.",
    "Liu's thesis, Proposition 5, figure 3.33",
    "share of failures that the sign tells, which must be exceeded",
    15,
    "15 failing replicates: an association, where all are told and at least 2 have the rarer sign",
    margin_predicts_failure,
    "flipflop/simulation",
    of_share=True,
)
