"""L1 and L2: which models that answer chains of the training length answer longer ones (Huang et al. 2025, figure 1a)."""

import re
from collections.abc import Mapping

import numpy as np

from results.claims.claim import NOT_RUN, PRECONDITION, Claim, Finding, Terms, decide, settle
from results.claims.evidence import Condition, Evidence
from results.claims.lego.sentences import SIMPLY_TRANSITIVE, SYMMETRY, sentences_wrong, sets_by_length
from results.claims.requirements import require
from results.statistics.intervals import Floats, Interval, quantile, quantile_interval

LEARNED = 0.99  # accuracy at the training length, below which a replicate says nothing of longer ones
FARTHEST = 32  # times the training length: 160 after 5
FAR = 0.9  # accuracy at the farthest that is still called near-perfect
PRACTICAL = {"model.name": "clauses", "model.residual": True, "model.norm": "pre"}
NO_RESIDUAL = {"model.name": "clauses", "model.residual": False, "model.norm": "none"}


def of_family(
    evidence: Evidence, family: re.Pattern[str], options: Mapping[str, object], later: bool = False
) -> list[Condition]:
    """Conditions on LEGO whose group's name is of a family and that have these options; later: stages after the first, instead of those."""
    return [
        each
        for each in evidence.conditions
        if each.settings.get("task.name") == "lego"
        and family.match(str(each.settings.get("task.group", "")))
        and ("stage.number" in each.settings) == later
        and all(each.settings.get(name) == value for name, value in options.items())
    ]


def only(found: list[Condition], what: str) -> Condition:
    if len(found) != 1:
        settle(NOT_RUN, f"{len(found)} conditions are {what}, and the claim is of one")
    return found[0]


def lengths(evidence: Evidence, base: Condition) -> dict[int, str]:
    """Sets by length, those of the training length and beyond. Settles a claim without one of each."""
    trained = base.settings["task.length"]
    along = {length: name for length, name in sets_by_length(evidence.definitions, trained).items() if length >= trained}
    if trained not in along or len(along) < 2:
        settle(NOT_RUN, f"the claim needs sets of sentences at the training length {trained} and of longer ones")
    return along


def wrong(evidence: Evidence, condition: Condition, name: str) -> Floats:
    """Shares of sentences that are not right throughout, of the replicates that have a number on a set; 1 of those that diverged."""
    if evidence.evaluations is None:
        settle(NOT_RUN, "sentences that are right throughout are counted in the evaluations, which were not read")
    shares = sentences_wrong(evidence.evaluations)
    found = [
        1.0 if each.status == "diverged" else shares[each.key, name]
        for each in condition.replicates
        if each.status == "diverged" or (name in each.scores and (each.key, name) in shares)
    ]
    return np.array(found, dtype=np.float64)


def learned(evidence: Evidence, condition: Condition, name: str, gate: float) -> str | None:
    """None where a share `gate` of the replicates reaches LEARNED at the training length, else the sentence that says how many do."""
    errors = wrong(evidence, condition, name)
    right = int((errors <= 1 - LEARNED).sum())
    if right and right >= gate * len(errors):
        return None
    return f"{right} of {len(errors)} replicates of {condition.name} answer {LEARNED:.0%} of the sentences of {name}, and {gate:.0%} must"


def gated(evidence: Evidence, base: Condition, terms: Terms, needs: int) -> dict[int, str]:
    """Sets by length, once enough replicates have numbers there and learned what they were trained on; settles the claim otherwise."""
    along = lengths(evidence, base)
    require([base], along.values(), needs)
    missed = learned(evidence, base, along[base.settings["task.length"]], terms.gate)
    if missed is not None:
        settle(PRECONDITION, missed)
    return along


def accuracy(evidence: Evidence, condition: Condition, name: str) -> Interval:
    """Interval of the median share of sentences that are right throughout."""
    errors = quantile_interval(wrong(evidence, condition, name), 0.5)
    return Interval(1 - min(errors.high, 1.0), 1 - errors.low)


def describe(evidence: Evidence, condition: Condition, along: dict[int, str]) -> str:
    """Best and median accuracy by length."""
    rows = {length: wrong(evidence, condition, name) for length, name in along.items()}
    shown = (f"{length}: {1 - each.min():.3f} / {1 - quantile(each, 0.5):.3f}" for length, each in rows.items() if each.size)
    return f"{condition.name}, best / median by length: {', '.join(shown)}"


def reach(evidence: Evidence, condition: Condition, along: dict[int, str], value: float) -> Floats:
    """Of each replicate, the longest tested length up to which every one has this accuracy, in training lengths; 0: none has."""
    trained = condition.settings["task.length"]
    right = np.stack([wrong(evidence, condition, name) <= 1 - value for name in along.values()])
    reached = np.logical_and.accumulate(right, axis=0).sum(0)
    return np.array([0.0, *(length / trained for length in along)])[reached]


def simply_transitive_goes_far(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Medians at every length up to 32 times the training's."""
    base = only(of_family(evidence, SIMPLY_TRANSITIVE, PRACTICAL), "the practical model on a simply transitive action")
    along = gated(evidence, base, terms, needs)
    trained = base.settings["task.length"]
    if max(along) < FARTHEST * trained:
        settle(NOT_RUN, f"the longest sentences are of {max(along)}, and the claim is of {FARTHEST} times {trained}")
    middles = {length: accuracy(evidence, base, name) for length, name in along.items()}
    wanted = {length: terms.value if length < FARTHEST * trained else min(FAR, terms.value) for length in along}
    return decide(
        all(middles[length].low >= wanted[length] for length in along),
        any(middles[length].high < wanted[length] for length in along),
        describe(evidence, base, along),
        f"the median must be {terms.value:g} or more below {FARTHEST * trained}, and {min(FAR, terms.value):g} from there on",
    )


def symmetry_stops(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Medians at twice the training length, and at the longest."""
    base = only(of_family(evidence, SYMMETRY, PRACTICAL), "the practical model on all permutations")
    along = gated(evidence, base, terms, needs)
    trained = base.settings["task.length"]
    if 2 * trained not in along or max(along) < FARTHEST * trained:
        settle(NOT_RUN, f"the claim needs sets of twice and of {FARTHEST} times the training length {trained}")
    twice, last = (accuracy(evidence, base, along[length]) for length in (2 * trained, max(along)))
    multiples = reach(evidence, base, along, terms.value)
    low, middle, high = (quantile(multiples, q) for q in (0.0, 0.5, 1.0))
    return decide(
        twice.low >= terms.value and last.high < terms.value,
        twice.high < terms.value or last.low >= terms.value,
        f"{describe(evidence, base, along)}; {terms.value:g} is kept up to {middle:g} times the training length ({low:g} to {high:g})",
        f"the median must be {terms.value:g} or more at {2 * trained}, and less at {max(along)}",
    )


_MEDIAN = "10 replicates: a median of which the interval is bounded on both sides"
L1 = Claim(
    "L1",
    "Trained on chains of 5 simply transitive actions, the model is near-perfect up to chains of 160.",
    "Huang et al. 2025, theorem 4.1 and figure 1a, no numbers printed",
    "accuracy that counts as near-perfect; 0.9 at 32 times the training length",
    10,
    _MEDIAN,
    simply_transitive_goes_far,
    "lego/lego_c6",
)
L2 = Claim(
    "L2",
    "Trained on chains of 5 permutations, the model is right on chains longer by a constant factor alone: at 10, and not at 160.",
    "Huang et al. 2025, theorem 5.1 and figure 1a, no numbers printed",
    "accuracy that counts as right",
    10,
    _MEDIAN,
    symmetry_stops,
    "lego/lego_s5",
)
