"""A7, A8: words longer than those of the training (Liu's thesis, figures 3.9, 3.21 and 3.22)."""

from collections.abc import Iterable

from results.claims.automata.groups import (
    RANKS,
    arms,
    describe,
    gate_right,
    letters,
    miss,
    one_by_automaton,
    reach,
    require_unseen,
    sets_along,
)
from results.claims.automata.shift import RIGHT, with_recency
from results.claims.claim import NOT_RUN, PRECONDITION, Claim, Finding, Terms, decide, settle
from results.claims.compare import exceeds, higher, median_accuracy
from results.claims.evidence import Condition, Evidence
from results.claims.requirements import in_distribution_set, require
from results.statistics.intervals import quantile


def _ends(evidence: Evidence, compared: Iterable[Condition]) -> tuple[str, str]:
    """The set at the training length, or the longest below it, and the longest set."""
    along = sets_along(evidence, "length")
    trained = min(condition.settings["task.length"] for condition in compared)
    within = [length for length in along if length <= trained]
    if not within or max(along) <= trained:
        settle(NOT_RUN, f"the claim needs sets of words within and beyond the training length {trained}")
    return along[max(within)], along[max(along)]


def longer_words_fail(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge whether the plain transformer errs more beyond its training length than within, and the LSTM stays right beyond."""
    plain = one_by_automaton(arms(evidence), "the plain transformer")
    lstm = one_by_automaton(arms(evidence, model__name="lstm"), "an LSTM")
    if not all(any(one.startswith(kind) for one in arm) for arm in (plain, lstm) for kind in ("Dyck", "C")):
        settle(NOT_RUN, "the claim needs the plain transformer and an LSTM, each on a Dyck language and on a cyclic group")
    compared = [*plain.values(), *lstm.values()]
    within, beyond = _ends(evidence, compared)
    require_unseen(compared)
    require(compared, [within, beyond], needs)
    gate_right(compared, within, terms.value, terms.gate)
    ratios = {
        one: exceeds(condition.wrong(beyond), condition.wrong(within), 1, 1 - 0.05 / len(plain))
        for one, condition in plain.items()
    }
    missed, still_right = miss([condition.wrong(beyond) for condition in plain.values()], terms.value)
    steady, unsteady = reach([condition.wrong(beyond) for condition in lstm.values()], terms.value)
    fallen = {one: median_accuracy(condition.wrong(beyond)) for one, condition in plain.items()}
    lows, highs = higher(ratios.values())
    return decide(
        lows and missed and steady,
        highs or still_right or unsteady,
        "; ".join(
            [
                f"{describe(condition, beyond)} [{fallen[one].low:.3f}, {fallen[one].high:.3f}] on {beyond}"
                for one, condition in plain.items()
            ]
            + [f"{describe(condition, beyond)} on {beyond}" for condition in lstm.values()]
            + [f"{condition.name} errs {ratios[one]} as much as on {within}" for one, condition in plain.items()]
        ),
        f"beyond the training length the transformer's median must fall below {terms.value:g} and it must err more; the LSTM's median must "
        f"stay at {terms.value:g}",
    )


def shift_and_none_improve(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge whether shifted positions, and no positions, improve on the plain transformer at the longest words, where it must have failed.

    Models without positions answer all prefixes that repeat one token alike. Of words whose states have k tokens, 1/(k - 1) positions
    end such a prefix of two tokens or more, on average. The gate lets these models be wrong there.
    """
    plain = one_by_automaton(arms(evidence), "the plain transformer")
    shifted = [condition for condition in arms(evidence, model__shift=None) if condition.settings["model.shift"] > 0]
    arms_of = {
        "shifted positions": one_by_automaton(shifted, "a transformer with shifted positions"),
        "no positions": one_by_automaton(arms(evidence, model__positions="none"), "a transformer without positions"),
    }
    pairs = [(label, plain[one], by[one]) for label, by in arms_of.items() for one in plain if one in by]
    for missing in arms_of.keys() - {label for label, *_ in pairs}:
        settle(NOT_RUN, f"no automaton has both the plain transformer and one with {missing}")
    compared = [condition for _, *pair in pairs for condition in pair]
    within, beyond = _ends(evidence, compared)
    require_unseen(compared)
    require(compared, [within, beyond], needs)
    gate_right([*plain.values(), *arms_of["shifted positions"].values()], within, RIGHT, terms.gate)
    for condition in arms_of["no positions"].values():
        alike = 1 / (letters(condition) - 1) / evidence.definitions[within]["length"]
        gate_right([condition], within, RIGHT - alike, terms.gate)
    for _, one, _ in pairs:
        right = 1 - quantile(one.wrong(beyond), 0.5)
        if right >= RIGHT:
            settle(PRECONDITION, f"the median accuracy of {one.name} on {beyond} is {right:.3f}: there is nothing to improve")
    ratios = [
        exceeds(one.wrong(beyond), changed.wrong(beyond), terms.value, 1 - 0.05 / len(pairs)) for _, one, changed in pairs
    ]
    return decide(
        *higher(ratios),
        "; ".join(
            f"{describe(one, beyond)}, with {label} {describe(changed, beyond)}; the first errs {ratio} as much"
            for (label, one, changed), ratio in zip(pairs, ratios, strict=True)
        ),
        f"P is the chance that a plain replicate errs more on {beyond}, and must lie above 1/2 against each",
    )


def recency_is_what_helps(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge whether a scratchpad with recency bias stays right at the longest words, and a scratchpad alone does not."""
    both = with_recency(evidence)
    alone = one_by_automaton(arms(evidence, task__scratchpad=True), "a transformer with a scratchpad alone")
    compared = [*both.values(), *alone.values()]
    within, beyond = _ends(evidence, compared)
    require_unseen(compared)
    require(compared, [within, beyond], needs)
    gate_right(compared, within, terms.value, terms.gate)
    steady, unsteady = reach([condition.wrong(beyond) for condition in both.values()], terms.value)
    missed, still_right = miss([condition.wrong(beyond) for condition in alone.values()], terms.value)
    return decide(
        steady and missed,
        unsteady or still_right,
        "; ".join(f"{describe(condition, beyond)} on {beyond}" for condition in compared),
        f"the median must stay at {terms.value:g} on {beyond} with recency bias, and fall below it without",
    )


def sinusoidal_is_worse_at_twice(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge whether sinusoidal positions are worse than linear ones on gridworlds of twice the length, and better on (abab)* in training.

    Each that is worse must have a median below RIGHT: of two that are right neither is worse.
    """
    plain = one_by_automaton(arms(evidence), "the plain transformer")
    linear = one_by_automaton(arms(evidence, model__positions="linear"), "a transformer with linear positions")
    grids = [one for one in plain if one.startswith("Grid") and one in linear]
    trained = in_distribution_set(evidence)
    doubled = {2 * plain[one].settings["task.length"] for one in grids}
    beyond = next((name for name, changed in evidence.definitions.items() if changed in [{"length": n} for n in doubled]), None)
    if not grids or "abab" not in plain or "abab" not in linear or beyond is None:
        settle(
            NOT_RUN,
            "the claim needs a gridworld and (abab)*, each with sinusoidal and linear positions, and a set of words of twice the length",
        )
    every = [arm[one] for arm in (plain, linear) for one in (*grids, "abab")]
    on_grids = [arm[one] for arm in (plain, linear) for one in grids]
    require_unseen(on_grids)  # (abab)* is compared on the words of its training
    require(every, [trained, beyond], needs)
    gate_right(on_grids, trained, RIGHT, terms.gate)
    pairs = [(plain[one], linear[one], beyond) for one in grids] + [(linear["abab"], plain["abab"], trained)]
    confidence = 1 - 0.05 / len(pairs)
    ratios = [exceeds(worse.wrong(name), other.wrong(name), terms.value, confidence) for worse, other, name in pairs]
    missed, right = miss([worse.wrong(name) for worse, _, name in pairs], RIGHT)
    lows, highs = higher(ratios)
    return decide(
        lows and missed,
        highs or right,
        "; ".join(f"{describe(condition, name)} on {name}" for condition in every for name in (trained, beyond))
        + f"; sinusoidal errs {' and '.join(map(str, ratios[:-1]))} as much on {beyond} of {', '.join(grids)}, "
        f"linear {ratios[-1]} as much on {trained} of abab",
        "P is the chance that a replicate of the first errs more, and must lie above 1/2 in each; the first one's median must "
        f"fall below {RIGHT:g}",
    )


A7 = Claim(
    "A7",
    "Beyond the training length a transformer fails on Dyck and parity, and an LSTM does not.",
    "Liu's thesis, figures 3.9 and 3.21, no numbers printed",
    "accuracy that counts as right",
    10,
    RANKS,
    longer_words_fail,
    "automata/a7",
    of_share=True,
)
A7_SHIFT = Claim(
    "A7-shift",
    "Randomly shifted positions, and no positions, improve on longer words.",
    "Liu's thesis, figures 3.9 and 3.21, no numbers printed",
    "factor by which the plain transformer's errors on the longest words must be above",
    10,
    RANKS,
    shift_and_none_improve,
    "automata/a7",
)
A7_RECENCY = Claim(
    "A7-recency",
    "A scratchpad with recency bias stays right on longer words; a scratchpad alone does not.",
    "Liu's thesis, figures 3.9 and 3.21, no numbers printed",
    "accuracy that counts as right",
    10,
    "10 replicates of each: a median of which the interval is bounded on both sides",
    recency_is_what_helps,
    "automata/a7",
    of_share=True,
)
A8 = Claim(
    "A8",
    "At twice the length sinusoidal positions are worse than linear ones on gridworld; at the training length they are better on (abab)*.",
    "Liu's thesis, figure 3.22, no numbers printed",
    "factor by which the worse one's errors must be above the other's",
    10,
    RANKS,
    sinusoidal_is_worse_at_twice,
    "automata/a8",
)
