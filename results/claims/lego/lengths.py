"""L1 and L2: which models that answer chains of the training length answer longer ones, and C6 beside S5 (Huang et al. 2025, figure 1a)."""

import re
from collections.abc import Mapping, Sequence

import numpy as np

from results.claims.claim import NOT_RUN, PRECONDITION, Claim, Finding, Terms, decide, settle
from results.claims.compare import higher_by_pairs, median_accuracy, probability
from results.claims.evidence import Condition, Evidence, Seeds, differing
from results.claims.lego.sentences import SIMPLY_TRANSITIVE, SYMMETRY, sentences_wrong, sets_by_length
from results.claims.requirements import only, require, require_each
from results.statistics.intervals import Floats, Interval, quantile
from results.statistics.unpaired import superiority

LEARNED = 0.99  # accuracy at the training length, below which a replicate says nothing of longer ones
FARTHEST = 32  # times the training length: 160 after 5
FAR = 0.9  # accuracy at the farthest that is still called near-perfect
PRACTICAL = {"model.name": "clauses", "model.residual": True, "model.norm": "pre"}
NO_RESIDUAL = {"model.name": "clauses", "model.residual": False, "model.norm": "none"}


def of_family(
    evidence: Evidence, family: re.Pattern[str], options: Mapping[str, object], later: bool = False
) -> list[Condition]:
    """Conditions on LEGO with these options whose group's name matches `family`. later: take stages after the first, not first ones."""
    return [
        condition
        for condition in evidence.with_settings({"task.name": "lego", **options})
        if family.match(str(condition.settings.get("task.group", ""))) and ("stage.number" in condition.settings) == later
    ]


def lengths(evidence: Evidence, base: Condition) -> dict[int, str]:
    """Sets of free runs by length, those of the training length and beyond. Settles a claim without one of each.

    The paper's models read their own answers; one that reads the true ones never goes astray.
    """
    trained, forced = base.settings["task.length"], base.settings.get("task.decode")
    free = {name: changed for name, changed in evidence.definitions.items() if changed.get("decode", forced) == "greedy"}
    along = {length: name for length, name in sets_by_length(free, trained).items() if length >= trained}
    if trained not in along or len(along) < 2:
        settle(NOT_RUN, f"the claim needs sets of freely run sentences at the training length {trained} and of longer ones")
    return along


def by_seeds(evidence: Evidence, condition: Condition, name: str) -> dict[Seeds, float]:
    """Fraction of sentences with an error, by seeds of a replicate that has a number on a set; 1 for one that diverged."""
    if evidence.evaluations is None:
        settle(NOT_RUN, "sentences that are right throughout are counted in the evaluations, which were not read")
    shares = sentences_wrong(evidence.evaluations)
    return {
        replicate.seeds: 1.0 if replicate.status == "diverged" else shares[replicate.key, name]
        for replicate in condition.replicates
        if replicate.status == "diverged" or (name in replicate.scores and (replicate.key, name) in shares)
    }


def wrong(evidence: Evidence, condition: Condition, name: str) -> Floats:
    """The fractions of `by_seeds`, [replicates]."""
    return np.array(list(by_seeds(evidence, condition, name).values()), dtype=np.float64)


def errs_more(
    evidence: Evidence, first: Condition, second: Condition, name: str, needs: int, confidence: float
) -> tuple[float, Interval, str]:
    """The chance that the second has more sentences wrong (ties count half), its interval, and how they were compared.

    They are compared in pairs where seeds are shared.
    """
    one, other = (by_seeds(evidence, condition, name) for condition in (first, second))
    if len(one.keys() & other.keys()) >= needs:
        return *higher_by_pairs(one, other, confidence), "pairs"
    require_each(len(one), len(other), needs, f"have a number on {name}")
    return *superiority(list(one.values()), list(other.values()), confidence), "unpaired"


def learned(evidence: Evidence, condition: Condition, name: str, gate: float) -> str | None:
    """None where a share `gate` of the replicates reaches LEARNED at the training length, else the sentence that says how many do."""
    errors = wrong(evidence, condition, name)
    right = int((errors <= 1 - LEARNED).sum())
    if right and right >= gate * len(errors):
        return None
    return f"{right} of {len(errors)} replicates of {condition.name} answer {LEARNED:.0%} of the sentences of {name}; {gate:.0%} must"


def gated(evidence: Evidence, base: Condition, terms: Terms, needs: int) -> dict[int, str]:
    """Sets by length, once enough replicates have numbers there and learned what they were trained on; settles the claim otherwise."""
    along = lengths(evidence, base)
    require([base], along.values(), needs)
    missed = learned(evidence, base, along[base.settings["task.length"]], terms.gate)
    if missed is not None:
        settle(PRECONDITION, missed)
    return along


def describe(evidence: Evidence, condition: Condition, along: dict[int, str]) -> str:
    """Best and median accuracy by length."""
    rows = {length: wrong(evidence, condition, name) for length, name in along.items()}
    shown = (
        f"{length}: {1 - errors.min():.3f} / {1 - quantile(errors, 0.5):.3f}" for length, errors in rows.items() if errors.size
    )
    return f"{condition.name}, best / median by length: {', '.join(shown)}"


def reach(evidence: Evidence, condition: Condition, along: dict[int, str], value: float) -> Floats:
    """By replicate, the length at which accuracy falls below `value`, in training lengths: see `falls_below`."""
    rows = np.stack([wrong(evidence, condition, name) for name in along.values()])
    return np.array([falls_below(list(along), column, value) for column in rows.T]) / condition.settings["task.length"]


def falls_below(lengths: Sequence[int], shares: Sequence[float] | Floats, value: float) -> float:
    """The length at which a share 1 - `value` of the sentences is wrong, between tested lengths by a line over the log of the length.

    0 where the shortest is wrong that often; the longest where none is.
    """
    for at, share in enumerate(shares):
        if share > 1 - value:
            if at == 0:
                return 0.0
            low, high = np.log(lengths[at - 1]), np.log(lengths[at])
            part = (1 - value - shares[at - 1]) / (share - shares[at - 1])
            return float(np.exp(low + part * (high - low)))
    return float(lengths[-1])


def kept_up_to(reached: Floats, q: float, longest: float) -> str:
    """A quantile of what `falls_below` returns, as "13.1"; "at least 32" where replicates that it ranks highest fall nowhere."""
    open_ended = np.isinf(quantile(np.where(reached >= longest, np.inf, reached), q))
    return f"{'at least ' if open_ended else ''}{quantile(reached, q):.3g}"


def simply_transitive_goes_far(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge the median accuracy of simply transitive actions at every length up to 32 times the training's."""
    base = only(of_family(evidence, SIMPLY_TRANSITIVE, PRACTICAL), "the practical model on a simply transitive action")
    along = gated(evidence, base, terms, needs)
    trained = base.settings["task.length"]
    if max(along) < FARTHEST * trained:
        settle(NOT_RUN, f"the longest sentences are of {max(along)}, and the claim is of {FARTHEST} times {trained}")
    confidence = 1 - 0.05 / len(along)
    middles = {length: median_accuracy(wrong(evidence, base, name), confidence) for length, name in along.items()}
    wanted = {length: terms.value if length < FARTHEST * trained else min(FAR, terms.value) for length in along}
    return decide(
        all(middles[length].low >= wanted[length] for length in along),
        any(middles[length].high < wanted[length] for length in along),
        describe(evidence, base, along),
        f"the median must be {terms.value:g} or more below {FARTHEST * trained}, and {min(FAR, terms.value):g} from there on",
    )


def symmetry_stops(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge symmetry actions by the median accuracy at twice the training length, and beside simply transitive ones at the longest.

    At the longest a simply transitive action after as many steps must err less, and be right: one that stops as well goes on nowhere.
    """
    base = only(of_family(evidence, SYMMETRY, PRACTICAL), "the practical model on all permutations")
    other = only(of_family(evidence, SIMPLY_TRANSITIVE, PRACTICAL), "the practical model on a simply transitive action")
    apart = sorted(name for name in differing(base, other) if name != "task.group")
    if apart:
        settle(NOT_RUN, f"{base.name} and {other.name} differ in {apart[0]} too: the claim is of equal trainings")
    along = gated(evidence, base, terms, needs)
    gated(evidence, other, terms, needs)
    trained = base.settings["task.length"]
    if 2 * trained not in along or max(along) < FARTHEST * trained:
        settle(NOT_RUN, f"the claim needs sets of twice and of {FARTHEST} times the training length {trained}")
    confidence = 1 - 0.05 / 4  # three medians and P
    twice, last = (median_accuracy(wrong(evidence, base, along[length]), confidence) for length in (2 * trained, max(along)))
    chance, interval, how = errs_more(evidence, other, base, along[max(along)], needs, confidence)
    kept = []
    for condition in (base, other):
        reached = reach(evidence, condition, along, terms.value)
        low, middle, high = (kept_up_to(reached, q, max(along) / trained) for q in (0.0, 0.5, 1.0))
        kept.append(f"{condition.name} keeps {terms.value:g} up to {middle} times the training length ({low} to {high})")
    stops = twice.low >= terms.value and last.high < terms.value and interval.low > 0.5
    goes_on = median_accuracy(wrong(evidence, other, along[max(along)]), confidence)
    measured = (
        f"at {max(along)} {base.name} errs more than {other.name}: {probability(chance, interval)}, {how}; {'; '.join(kept)}; "
        f"{describe(evidence, base, along)}; {describe(evidence, other, along)}"
    )
    if stops and goes_on.high < terms.value:
        settle(
            PRECONDITION,
            f"the median accuracy of {other.name} at {max(along)} is below {terms.value:g} too, so it does not go on where {base.name} "
            "stops",
            measured,
        )
    return decide(
        stops and goes_on.low >= terms.value,
        twice.high < terms.value or last.low >= terms.value or interval.high < 0.5,
        measured,
        f"the median on permutations must be {terms.value:g} or more at {2 * trained}, less at {max(along)}, and P there above 1/2; "
        f"that of {other.name} must be {terms.value:g} or more at {max(along)}",
    )


MEDIAN = "10 replicates: a median of which the interval is bounded on both sides"
L1 = Claim(
    "L1",
    "Trained on chains of 5 simply transitive actions, the model is near-perfect up to chains of 160.",
    "Huang et al. 2025, theorem 4.1 and figure 1a, no numbers printed",
    "accuracy that counts as near-perfect; 0.9 at 32 times the training length",
    10,
    MEDIAN,
    simply_transitive_goes_far,
    "lego/lego_groups",
    of_share=True,
)
L2 = Claim(
    "L2",
    "Trained on chains of 5 permutations, the model is right on chains longer by a constant factor alone: at 10, and not at 160, where a "
    "model of simply transitive actions goes on.",
    "Huang et al. 2025, theorem 5.1 and figure 1a, no numbers printed",
    "accuracy that counts as right",
    10,
    MEDIAN,
    symmetry_stops,
    "lego/lego_groups",
    of_share=True,
)
