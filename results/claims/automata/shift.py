"""A6: parity where ones are rarer or more frequent than in the training (Liu's thesis, figures 3.8 and 3.20)."""

import itertools

from results.claims.automata.groups import (
    RANKS,
    arms,
    describe,
    gate_right,
    one_by_automaton,
    require_unseen,
    sets_along,
)
from results.claims.claim import NOT_RUN, Claim, Finding, Terms, decide, settle
from results.claims.compare import exceeds, higher, median_accuracy
from results.claims.evidence import Condition, Evidence
from results.claims.requirements import in_distribution_set, require

EVEN = 0.5  # probability of a one in training
RIGHT = 0.99  # accuracy that counts as right in training, where a claim's value is a factor


def with_recency(evidence: Evidence) -> dict[str, Condition]:
    """Transformers with a scratchpad and recency bias, by automaton."""
    conditions = arms(evidence, task__scratchpad=True, model__positions="alibi")
    return one_by_automaton(conditions, "a transformer with scratchpad and alibi")


def parity_falls_off(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge whether the transformer errs more where ones are rarest and most frequent than in training, and the others stay right.

    The others are the LSTM and the scratchpad with recency, on every set.
    """
    name, along = in_distribution_set(evidence), sets_along(evidence, "p_one")
    if not min(along) < EVEN < max(along):
        settle(NOT_RUN, f"the claim needs sets with ones rarer and more frequent than {EVEN:g}, at which it trains")
    plain = one_by_automaton(arms(evidence), "the plain transformer")
    lstm = one_by_automaton(arms(evidence, model__name="lstm"), "an LSTM")
    steady = {condition.name: condition for condition in (*lstm.values(), *with_recency(evidence).values())}
    sets = [*along.values(), *(other for other, changed in evidence.definitions.items() if set(changed) == {"ones"})]
    require_unseen([*plain.values(), *steady.values()])
    require([*plain.values(), *steady.values()], [name, *sets], needs)
    gate_right([*plain.values(), *steady.values()], name, terms.value, terms.gate)
    ends = [along[min(along)], along[max(along)]]
    confidence = 1 - 0.05 / (len(ends) * len(plain))
    falls = {
        (one, end): exceeds(condition.wrong(end), condition.wrong(name), 1, confidence)
        for one, condition in plain.items()
        for end in ends
    }
    middles = {
        label: min((median_accuracy(condition.wrong(one)) for one in sets), key=lambda interval: interval.low)
        for label, condition in steady.items()
    }
    lows, highs = higher(falls.values())
    lost = [median_accuracy(condition.wrong(end)) for condition in plain.values() for end in ends]
    return decide(
        lows
        and all(middle.high < terms.value for middle in lost)
        and all(middle.low >= terms.value for middle in middles.values()),
        highs
        or any(middle.low >= terms.value for middle in lost)
        or any(middle.high < terms.value for middle in middles.values()),
        "; ".join(
            [
                f"{describe(condition, end)} [{middle.low:.3f}, {middle.high:.3f}] on {end}"
                for (condition, end), middle in zip(itertools.product(plain.values(), ends), lost, strict=True)
            ]
            + [f"{one} on {end} errs {ratio} as much as in training" for (one, end), ratio in falls.items()]
            + [f"{label}: median on its worst set [{middle.low:.3f}, {middle.high:.3f}]" for label, middle in middles.items()]
        ),
        f"at both ends the transformer's median must fall below {terms.value:g} and it must err more than in training; the medians of the "
        f"others reach {terms.value:g} on every set",
    )


def rare_ones_are_worse(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge whether the plain transformer errs more where ones have probability p than where 1 - p, for the smallest such p.

    Where ones are rare, parity must be lost: the median must fall below RIGHT.
    """
    along = sets_along(evidence, "p_one")
    low = [p for p in along if p < EVEN and any(abs(1 - p - other) < 1e-9 for other in along)]
    if not low:
        settle(NOT_RUN, "no two sets have ones with probability p and 1 - p")
    rare = along[min(low)]
    frequent = next(other for p, other in along.items() if abs(1 - min(low) - p) < 1e-9)
    plain = one_by_automaton(arms(evidence), "the plain transformer")
    require_unseen(plain.values())
    require(plain.values(), [rare, frequent], needs)
    gate_right(plain.values(), in_distribution_set(evidence), RIGHT, terms.gate)
    ratios = [
        exceeds(condition.wrong(rare), condition.wrong(frequent), terms.value, 1 - 0.05 / len(plain))
        for condition in plain.values()
    ]
    middles = [median_accuracy(condition.wrong(rare)) for condition in plain.values()]
    lows, highs = higher(ratios)
    return decide(
        lows and all(middle.high < RIGHT for middle in middles),
        highs or any(middle.low >= RIGHT for middle in middles),
        "; ".join(
            f"{describe(condition, rare)} on {rare}; {describe(condition, frequent)} on {frequent}; errs {ratio} as much on the first"
            for condition, ratio in zip(plain.values(), ratios, strict=True)
        ),
        "P is the chance that a replicate errs more where ones are rare than where they are as frequent, and must lie above 1/2; where "
        f"they are rare the median must fall below {RIGHT:g}",
    )


A6 = Claim(
    "A6",
    "A transformer loses parity where ones are rarer or more frequent than in training; an LSTM, or a scratchpad with recency, does not.",
    "Liu's thesis, figures 3.8 and 3.20, no numbers printed",
    "accuracy that counts as right",
    10,
    RANKS,
    parity_falls_off,
    "automata/a6",
)
A6_LOW = Claim(
    "A6-low",
    "Parity is lost more where ones are rare than where they are as frequent.",
    "Liu's thesis, figures 3.8 and 3.20, no numbers printed",
    "factor by which the errors on rare ones must be above those on frequent ones",
    10,
    RANKS,
    rare_ones_are_worse,
    "automata/a6",
)
