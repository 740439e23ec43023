"""A6: parity where ones are rarer or more frequent than in the training (Liu's thesis, figures 3.8 and 3.20)."""

import itertools

import numpy as np

from results.claims.automata.groups import (
    RANKS,
    arms,
    best_and_median,
    describe,
    gate_right,
    miss,
    one_by_automaton,
    reach,
    require_unseen,
    sets_along,
)
from results.claims.claim import NOT_RUN, Claim, Finding, Terms, decide, settle
from results.claims.compare import exceeds, higher, median_accuracy
from results.claims.evidence import Condition, Evidence
from results.claims.requirements import in_distribution_set, require
from results.statistics.intervals import Floats

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
    at_ends = [condition.wrong(end) for condition in plain.values() for end in ends]
    lost, still_right = miss(at_ends, terms.value)
    right, unsteady = reach([condition.wrong(one) for condition in steady.values() for one in sets], terms.value)
    return decide(
        lows and lost and right,
        highs or still_right or unsteady,
        "; ".join(
            [
                f"{describe(condition, end)} [{middle.low:.3f}, {middle.high:.3f}] on {end}"
                for (condition, end), middle in zip(
                    itertools.product(plain.values(), ends), map(median_accuracy, at_ends), strict=True
                )
            ]
            + [f"{one} on {end} errs {ratio} as much as in training" for (one, end), ratio in falls.items()]
            + [f"{label}: median on its worst set [{middle.low:.3f}, {middle.high:.3f}]" for label, middle in middles.items()]
        ),
        f"at both ends the transformer's median must fall below {terms.value:g} and it must err more than in training; the medians of the "
        f"others reach {terms.value:g} on every set",
    )


def few_ones_are_worse(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge whether the plain transformer errs more on words with n ones than on those with T - n, over all such n below T / 2.

    Where ones are few, parity must be lost: the median must fall below RIGHT.
    """
    along = sets_along(evidence, "ones")
    plain = list(one_by_automaton(arms(evidence), "the plain transformer").values())
    few, many = [], []
    for condition in plain:
        length = condition.settings["task.length"]
        counts = [n for n in along if 2 * n < length and length - n in along]
        if not counts:
            settle(NOT_RUN, f"no two sets have n and {length} - n ones")
        require([condition], [along[n] for n in along], needs)
        few.append(_mean(condition, [along[n] for n in counts]))
        many.append(_mean(condition, [along[length - n] for n in counts]))
    require_unseen(plain)
    gate_right(plain, in_distribution_set(evidence), RIGHT, terms.gate)
    ratios = [exceeds(one, other, terms.value, 1 - 0.05 / len(plain)) for one, other in zip(few, many, strict=True)]
    lost, right = miss(few, RIGHT)
    lows, highs = higher(ratios)
    return decide(
        lows and lost,
        highs or right,
        "; ".join(
            f"{condition.name}: {best_and_median(one)} with few ones; {best_and_median(other)} with as few zeros; errs {ratio} as "
            "much on the first"
            for condition, one, other, ratio in zip(plain, few, many, ratios, strict=True)
        ),
        "P is the chance that a replicate errs more on words with n ones than on words with n zeros, over all n below half of the "
        f"word together, and must lie above 1/2; with few ones the median must fall below {RIGHT:g}",
    )


def _mean(condition: Condition, names: list[str]) -> Floats:
    """Error rate of each replicate over these sets together, 1 where it diverged."""
    return np.minimum(condition.rates(names), 1.0).mean(1)


A6 = Claim(
    "A6",
    "A transformer loses parity where ones are rarer or more frequent than in training; an LSTM, or a scratchpad with recency, does not.",
    "Liu's thesis, figures 3.8 and 3.20, no numbers printed",
    "accuracy that counts as right",
    10,
    RANKS,
    parity_falls_off,
    "automata/a6",
    of_share=True,
)
A6_LOW = Claim(
    "A6-low",
    "Parity is lost more in words with few ones than in words with as few zeros.",
    "Liu's thesis, figure 3.20 (right), no numbers printed",
    "factor by which the errors with few ones must be above those with as few zeros",
    10,
    RANKS,
    few_ones_are_worse,
    "automata/a6",
)
