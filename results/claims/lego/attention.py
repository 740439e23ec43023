"""L3 to L5: claims on attention, from rows of the probe `concentration` (Huang et al. 2025, figures 2, 6 and 7)."""

from collections.abc import Callable, Sequence

import numpy as np

from results.claims.claim import NOT_RUN, PRECONDITION, REPRODUCED, Claim, Finding, Part, Terms, decide_all, settle
from results.claims.compare import between, percent
from results.claims.evidence import Condition, Evidence
from results.claims.lego.lengths import MEDIAN, NO_RESIDUAL, PRACTICAL, learned, lengths, of_family
from results.claims.lego.sentences import SIMPLY_TRANSITIVE, SYMMETRY, items_by_length, others
from results.claims.requirements import require, require_probed
from results.rows.probe_values import Name
from results.statistics.intervals import Floats, clopper_pearson, quantile_interval

BAND = 0.1  # mean attention that counts as one of the two bands of figure 2
FALL = 0.1  # part of its mean by which attention must fall from the second answer to the last to count as falling; ours
AVERAGED = 0.04  # where the odds of every answer follow the law, those of the mean over answers do so within this part
MAJORITY = 0.5

Values = dict[Name, float]


def _arms(evidence: Evidence, candidates: Sequence[Condition], terms: Terms, needs: int) -> tuple[list[Condition], str]:
    """Those of the conditions that learned their training length and were probed, and a sentence about those that did not."""
    if not candidates:
        settle(NOT_RUN, "no condition is the model that the claim is of")
    missed = {}
    for condition in candidates:
        name = lengths(evidence, condition)[condition.settings["task.length"]]
        require([condition], [name], needs)
        sentence = learned(evidence, condition, name, terms.gate)
        if sentence is not None:
            missed[condition.name] = sentence
    kept = [condition for condition in candidates if condition.name not in missed]
    if not kept:
        settle(PRECONDITION, "; ".join(missed.values()))
    require_probed(evidence, kept, "concentration", needs)
    return kept, "".join(f"; left out: {sentence}" for sentence in missed.values())


def _of(evidence: Evidence, condition: Condition, value: Callable[[Values], float]) -> Floats:
    return np.array([value(values) for _, values in evidence.probed(condition, "concentration")], dtype=np.float64)


def two_bands(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """At the training length, without residual: ε and the weaker of the two masses, as medians."""
    kept, beside = _arms(evidence, evidence.with_settings({"task.name": "lego", **NO_RESIDUAL}), terms, needs)
    parts, confidence = [], 1 - 0.05 / (2 * len(kept))
    for condition in kept:
        loose, band = (quantile_interval(masses, 0.5, confidence) for masses in _masses(evidence, condition))
        holds = loose.high < terms.value and band.low >= BAND
        fails = loose.low >= terms.value or band.high < BAND
        parts.append(Part(holds, fails, f"{condition.name}: median ε {between(loose)}, weaker band {between(band)}"))
    reason = f"without a residual, the median of ε must be below {terms.value:g} and both bands have {BAND:g} or more"
    return decide_all(parts, "", reason, beside)


def _masses(evidence: Evidence, condition: Condition) -> tuple[Floats, Floats]:
    """By replicate, at the training length: ε, and the mass of the weaker of the two bands."""
    trained = condition.settings["task.length"]
    epsilon = _of(evidence, condition, lambda values: items_by_length(values, "epsilon")[trained])
    gap = _of(evidence, condition, lambda values: items_by_length(values, "gap")[trained])
    return np.maximum(epsilon, 0), np.maximum((1 - epsilon - np.abs(gap)) / 2, 0)


def dilutes_as_clauses_grow(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Odds ε/(1 - ε) of a head at the longest sentences over those at the shortest, against the ratio of L + l - 2."""
    models = [condition for condition in evidence.of_task("lego") if any(map(condition.has, (PRACTICAL, NO_RESIDUAL)))]
    kept, beside = _arms(evidence, models, terms, needs)
    parts, excluded, confidence = [], 0, 1 - 0.05 / len(kept)
    for condition in kept:
        _require_growth(evidence, condition, terms)
        growth = quantile_interval(_of(evidence, condition, _growth), 0.5, confidence)
        excluded += growth.low > 1 + AVERAGED or growth.high < 1 - AVERAGED
        inside = growth.low >= 1 / terms.value and growth.high <= terms.value
        outside = growth.high < 1 / terms.value or growth.low > terms.value
        text = f"{condition.name}: odds of ε of a head grow {between(growth)} times as fast as L + l - 2 (median)"
        parts.append(Part(inside, outside, text))
    return decide_all(
        parts,
        f"a factor of 1, the exact law, lies outside the interval of {excluded} of {len(kept)} models: ",
        f"the median must lie from {1 / terms.value:.3g} to {terms.value:g}; where a head's scores are alike at all lengths and in all "
        f"sentences it is 1, within {AVERAGED:.0%}; the law and the tolerance are ours",
        beside,
    )


def _require_growth(evidence: Evidence, condition: Condition, terms: Terms) -> None:
    """Settle the claim where odds that do not grow at all would lie within its tolerance, as they do at a single length."""
    for _, values in evidence.probed(condition, "concentration"):
        tested = sorted(items_by_length(values, "odds", head=0))
        if not tested or others(tested[-1]) <= terms.value * others(tested[0]):
            settle(
                NOT_RUN,
                f"the probe of {condition.name} is of sentences of {' and '.join(map(str, tested)) or 'no length'}, too much alike to "
                f"tell growth from none within a factor of {terms.value:g}",
            )


def _growth(values: Values) -> float:
    """How many times as fast as L + l - 2 the odds of a head grow, as the geometric mean over heads.

    Odds of the mean over heads grow more slowly than the law where every head follows it.
    """
    heads = sorted({head for _, layer, head, _ in values if layer == 0 and head is not None})
    growths = []
    for head in heads:
        odds = items_by_length(values, "odds", head=head)
        shortest, longest = min(odds), max(odds)
        if not 0 < odds[shortest] < np.inf:
            return float("inf")  # no mass elsewhere at the shortest length, or all of it, so there is no finite factor
        growths.append(max(0.0, odds[longest] / odds[shortest]) / (others(longest) / others(shortest)))
    return float(np.prod(growths) ** (1 / len(growths)))


def one_band_falls(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Falls over the answers at four times the training length: symmetry on the predicate, simply transitive on the answer itself.

    The sentence is of both kinds, so one of them alone can refute it, and not show it.
    """
    permutations, transitive = (of_family(evidence, family, NO_RESIDUAL) for family in (SYMMETRY, SIMPLY_TRANSITIVE))
    kept, beside = _arms(evidence, [*permutations, *transitive], terms, needs)
    parts, kinds, confidence = [], set(), 1 - 0.05 / len(kept)
    for condition in kept:
        length = 4 * condition.settings["task.length"]
        symmetry = condition in permutations
        kinds.add(symmetry)
        rises = [_rises(values, length) for _, values in evidence.probed(condition, "concentration")]
        falling, steady = (
            np.array(column) for column in zip(*(pair if symmetry else pair[::-1] for pair in rises), strict=True)
        )  # [replicates, 2]: rise, mean
        alone = (falling[:, 0] < 0) & (np.abs(steady[:, 0]) <= terms.value * np.abs(falling[:, 0]))
        as_drawn = alone & (falling[:, 0] <= -FALL * falling[:, 1])
        shown, barely = (clopper_pearson(int(count.sum()), len(rises), confidence) for count in (as_drawn, alone))
        what, other = ("the predicate", "the answer itself") if symmetry else ("the answer itself", "the predicate")
        often = [percent(int(count.sum()), len(rises), confidence) for count in (alone, as_drawn)]
        text = (
            f"{condition.name}: attention to {what} falls from the second answer to the last, and to {other} hardly, in {often[0]}, by "
            f"{FALL:.0%} or more in {often[1]}"
        )
        parts.append(Part(shown.low > MAJORITY, barely.high < MAJORITY, text))
    reason = (
        f"in more than half of the replicates the one must fall by {FALL:.0%} of its mean or more, along the line that fits best from the "
        f"second answer on, and the other change by {terms.value:g} of that at most; refuted where the one falls at all, so, in fewer "
        "than half"
    )
    found = decide_all(parts, "", reason, beside)
    if found.verdict == REPRODUCED and len(kinds) < 2:
        settle(
            NOT_RUN,
            "the claim is of permutations and of simply transitive actions, and only one kind was tested",
            found.measured,
        )
    return found


def _rises(values: Values, length: int) -> tuple[tuple[float, float], tuple[float, float]]:
    """How much a_pred and a_ans rise over the answers 2 … L, along the line that fits best, and the mean of each.

    The first is apart: its query, x_0, is the only one that no predicate assigns.
    """
    answers = np.arange(2, length + 1)
    found = []
    for name in ("predicate", "itself"):
        rows = [values.get(("concentration", 0, None, f"L={length} l={answer} {name}")) for answer in answers]
        if None in rows:
            settle(NOT_RUN, f"the rows of the probe concentration have no answers of sentences of {length}")
        attention = np.array(rows, dtype=np.float64)
        slope = float(np.polyfit(answers, attention, 1)[0])
        found.append((slope * (length - 2), float(attention.mean())))
    return found[0], found[1]


L3 = Claim(
    "L3",
    "At the training length attention concentrates on two clauses: the predicate that consumes the last variable, and the last answer.",
    "Huang et al. 2025, figure 2 and equation 19, no numbers printed",
    "concentration degree ε below which attention counts as concentrated",
    10,
    MEDIAN,
    two_bands,
    "lego/lego_s5",
    of_share=True,
)
L4 = Claim(
    "L4",
    "Attention dilutes with the length: the odds of ε grow as the number of other clauses, L + l - 2.",
    "Huang et al. 2025, section 4 (dilution), figures 6 and 7, no numbers printed; the law is our derivation, exact for the proofs' model",
    "factor by which the growth may be off",
    10,
    MEDIAN,
    dilutes_as_clauses_grow,
    "lego/lego_s5",
    of_factor=True,
)
L5 = Claim(
    "L5",
    "On longer chains, attention to the predicate falls from the second answer to the last for symmetric groups, and not for simply "
    "transitive actions; attention to the answer itself does the reverse.",
    "Huang et al. 2025, figures 6 and 7, no numbers printed",
    "part of the falling slope that the other may have",
    10,
    "10 replicates: that most do, where 92 % of all do",
    one_band_falls,
    "lego/lego_s5",
    of_share=True,
)
