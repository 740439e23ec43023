"""A4, A5: labels that show a part of the state, and labels hidden in training (Liu's thesis, figures 3.7, 3.18 and 3.19)."""

from results.claims.automata.groups import (
    CYCLIC,
    NON_ABELIAN,
    RANKS,
    arms,
    automaton,
    best,
    describe,
    miss,
    one_by_automaton,
    reach,
)
from results.claims.claim import NOT_RUN, PRECONDITION, Claim, Finding, Terms, decide, settle
from results.claims.compare import exceeds, higher
from results.claims.evidence import Condition, Evidence
from results.claims.requirements import in_distribution_set, require

THESIS = {  # accuracy of the best of 25 by automaton, observed map and law (figure 3.18)
    ("Dyck_4_8", "top", "uniform"): 1.0,
    ("Grid9", "boundary", "uniform"): 1.0,
    ("S5_5", "first", "uniform"): 0.996,
    ("C4", "zero", "uniform"): 0.999,
    ("D8", "rotation", "uniform"): 1.0,
    ("abab", "accept", "abab"): 1.0,
    ("abab", "accept", "abab_or_uniform"): 1.0,
}
BEST_OF = 25  # replicates behind each of these
LEARNED = 0.99  # accuracy that counts as learned; ours


def _task(condition: Condition) -> tuple[str, str, str]:
    return automaton(condition), str(condition.settings["task.observe"]), condition.settings["task.law"]


def a_part_of_the_state_suffices(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge whether the best transformer and the best LSTM reach `value` on every partly observed automaton.

    A condition that does not reach it refutes the claim if it has as many replicates as the thesis takes the best of.
    """
    name = in_distribution_set(evidence)
    transformers, others = (
        [condition for condition in arms(evidence, model__name=model) if condition.settings["task.observe"] != "state"]
        for model in ("transformer", "lstm")
    )
    if not transformers or not others:
        settle(
            NOT_RUN, "the claim needs a transformer with sinusoidal positions and an LSTM, each trained on a part of the state"
        )
    require([*transformers, *others], [name], needs)
    parts, missed = [], []
    for condition in [*transformers, *others]:
        if best(condition, name) < terms.value:
            missed.append(condition)
        in_thesis = THESIS.get(_task(condition)) if condition in transformers else 1.0
        parts.append(describe(condition, name) + (f" (thesis: best {in_thesis:.3f})" if in_thesis is not None else ""))
    return decide(
        not missed,
        any(len(condition.wrong(name)) >= BEST_OF for condition in missed),
        "; ".join(parts),
        f"the best replicate must reach {terms.value:g} everywhere: {len(parts) - len(missed)} of {len(parts)} do; fewer than "
        f"{BEST_OF} replicates, the thesis' number, refute nothing",
    )


def linear_is_harder_on_abab(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge whether (abab)* is learned with sinusoidal positions, and errors are larger with linear ones, under each law of words.

    With linear ones the median must fall below LEARNED: of two that are learned neither is hard.
    """
    name = in_distribution_set(evidence)
    pairs = []
    for one in arms(evidence):
        beside = [condition for condition in arms(evidence, model__positions="linear") if _task(condition) == _task(one)]
        pairs += [(one, condition) for condition in beside if automaton(one) == "abab"]
    if not pairs:
        settle(NOT_RUN, "no condition trains on (abab)* with linear positions and another with sinusoidal ones")
    require([condition for pair in pairs for condition in pair], [name], needs)
    ratios = [exceeds(b.wrong(name), a.wrong(name), terms.value, 1 - 0.05 / len(pairs)) for a, b in pairs]
    learned = [[int((condition.wrong(name) <= 1 - LEARNED).sum()) for condition in pair] for pair in pairs]
    for (one, _), (own, linear), ratio in zip(pairs, learned, ratios, strict=True):
        least = max(1, terms.gate * len(one.wrong(name)))
        if own < least and not (linear >= least and ratio.interval.high < 0.5):
            settle(
                PRECONDITION,
                f"{own} of {len(one.wrong(name))} replicates of {one.name} have {LEARNED:g} of the states right; {terms.gate:.0%} must",
            )
    lows, highs = higher(ratios)
    missed, reached = miss([linear.wrong(name) for _, linear in pairs], LEARNED)
    return decide(
        lows and missed,
        highs or reached,
        "; ".join(
            f"learned by {own} of {len(a.wrong(name))} with sinusoidal positions, by {linear} of {len(b.wrong(name))} with linear ones "
            f"({a.name}); {describe(a, name)}; {describe(b, name)}; linear errs {ratio}"
            for (a, b), (own, linear), ratio in zip(pairs, learned, ratios, strict=True)
        ),
        "the chance P that a replicate with linear positions errs more must lie above 1/2 under each law, and their median must "
        f"fall below {LEARNED:g}",
    )


def few_labels_hurt_the_transformer(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge whether LSTMs, and the transformer on a cyclic group, are right at every p_reveal, while it errs on other groups.

    On these, which are not abelian, it must err more at the smallest p_reveal than at the largest. Other automata are left out.
    """
    name = in_distribution_set(evidence)
    groups, cyclic, *by_group = (
        [condition for condition in arms(evidence, task__p_reveal=None, model__name=model) if kind.match(automaton(condition))]
        for model in ("transformer", "lstm")
        for kind in (NON_ABELIAN, CYCLIC)
    )
    lstm = [condition for conditions in by_group for condition in conditions]
    shares = {condition.settings["task.p_reveal"] for condition in groups}
    if not lstm or not cyclic or len(shares) < 2:
        settle(
            NOT_RUN,
            "the claim needs LSTMs, a transformer on a cyclic group, and one on a non-abelian group at two values of p_reveal",
        )
    for what, beside in (("an LSTM", lstm), ("a transformer on a cyclic group", cyclic)):
        if min(condition.settings["task.p_reveal"] for condition in beside) > min(shares):
            settle(NOT_RUN, f"the claim needs {what} with p_reveal {min(shares):g}, as few labels as the other group has")
    require([*lstm, *groups, *cyclic], [name], needs)
    most, fewest = (
        one_by_automaton(
            [condition for condition in groups if condition.settings["task.p_reveal"] == share],
            f"a transformer, p_reveal {share:g}",
        )
        for share in (max(shares), min(shares))
    )
    for condition in most.values():
        if best(condition, name) < terms.value:
            settle(PRECONDITION, f"{describe(condition, name)}: with most labels the best must reach {terms.value:g}")
    both = most.keys() & fewest.keys()
    if not both:
        settle(NOT_RUN, f"no group is trained with p_reveal {min(shares):g} and {max(shares):g}")
    worse = {one: exceeds(fewest[one].wrong(name), most[one].wrong(name), 1, 1 - 0.05 / len(both)) for one in sorted(both)}
    steady, unsteady = reach([condition.wrong(name) for condition in lstm], terms.value)
    imperfect = [best(fewest[one], name) < terms.value for one in sorted(both)]
    _, still_right = miss([fewest[one].wrong(name) for one in sorted(both)], terms.value)
    parts = [describe(condition, name) for condition in [*lstm, *cyclic]]
    parts += [
        f"{describe(fewest[one], name)}, which errs {ratio} as much as with p_reveal {max(shares):g}"
        for one, ratio in worse.items()
    ]
    lows, highs = higher(worse.values())
    perfect = [best(condition, name) >= terms.value for condition in cyclic]
    return decide(
        steady and lows and all(imperfect) and all(perfect),
        unsteady or highs or still_right or not all(perfect),
        "; ".join(parts),
        f"the LSTM's median must reach {terms.value:g} at every p_reveal, as must the transformer's best on a cyclic group; on another "
        "group its best must stay below that with fewest labels, and it must err more than with most",
    )


A4 = Claim(
    "A4",
    "Where the label shows only a part of the state, transformers and LSTMs still learn the automaton.",
    "Liu's thesis, figures 3.7a and 3.18",
    "accuracy that the best replicate must reach",
    10,
    "10 replicates: a success that 15 % of them have; 25, as in the thesis, show that there is none",
    a_part_of_the_state_suffices,
    "automata/a4",
    of_share=True,
)
A4_POSITIONS = Claim(
    "A4-positions",
    "(abab)* is learned with sinusoidal positions; with linear ones errors are larger.",
    "Liu's thesis, section 3.4.5.2.1",
    "factor by which errors with linear positions must be above those with sinusoidal ones",
    10,
    RANKS,
    linear_is_harder_on_abab,
    "automata/a4",
)
A5 = Claim(
    "A5",
    "With few labels an LSTM is still perfect; a transformer is on parity, and is not on S5.",
    "Liu's thesis, figures 3.7b and 3.19, no numbers printed",
    "accuracy that counts as perfect",
    10,
    RANKS,
    few_labels_hurt_the_transformer,
    "automata/a5",
    of_share=True,
)
