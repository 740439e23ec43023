"""N1, N2 and N6: plateaus at the losses of the k-grams, in their order (Varre et al. 2025, figures 1, 3 and 7).

Rows are the averages over the set that is scored on the way. What the paper shows are single runs; thresholds are ours.
"""

import itertools
import math

import numpy as np

from results.claims import requirements
from results.claims.claim import PRECONDITION, Claim, Finding, Part, Terms, decide, decide_all, settle
from results.claims.compare import above, between, percent
from results.claims.evidence import Evidence
from results.claims.ngrams.courses import DROP, PERSISTS, Course, conditions, courses, first_run, gate
from results.statistics.intervals import clopper_pearson, quantile_interval

ATTENTION_ALONE = ("simple_disentangled", "disentangled", "attn_only")
WITH_MLP = ("attn_mlp",)
AT_ONCE = 0.25  # share of the time at the unigram; ours, the paper's figure 7 shows about 0.1


def plateaus_at_the_k_grams(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge how far the losses at each stage but the last are from the k-gram's losses with its smoothings."""
    trainings = {condition.name: courses(evidence, condition) for condition in conditions(evidence, needs, ATTENTION_ALONE)}
    gate(trainings, terms.gate)
    for name, own in trainings.items():
        refuse_alike(name, own[0], terms.value)
    count = sum(own[0].order - 1 for own in trainings.values())
    parts = []
    for name, own in trainings.items():
        for k in range(1, own[0].order):
            levels = [course.plateau(k) for course in own]
            apart = [distance(course, k) for course in own]
            interval = quantile_interval(apart, 0.5, 1 - 0.05 / count)
            there = [level for level in levels if level is not None]
            low, high = band(own[0], k)
            text = (
                f"{name}, k = {k}: median loss {np.median(there):.3f} in {len(there)} of {len(own)}, beside {low:.3f} … {high:.3f}, "
                f"{np.median(apart):.3f} apart {between(interval)}"
                if there
                else f"{name}, k = {k}: in none of {len(own)}"
            )
            parts.append(Part(interval.high <= terms.value, interval.low > terms.value, text))
    return decide_all(
        parts,
        "",
        f"the median distance to the k-gram's losses, between its best smoothing and the prior's, must be at most {terms.value:g} for "
        "every k below n, and refutes where it is more; the distance of a replicate is the median over its looks at the stage",
    )


def refuse_alike(name: str, course: Course, margin: float) -> None:
    """Settle the claim where a loss between those of two successive k-grams may lie within the margin of both."""
    for k in range(1, course.order):
        (low, high), (below, above) = band(course, k), band(course, k + 1)
        if low - above <= 2 * margin:
            settle(
                PRECONDITION,
                f"{name}: the {k}-gram's losses, {low:.3f} … {high:.3f}, and the {k + 1}-gram's, {below:.3f} … {above:.3f}, are not "
                f"{2 * margin:g} apart, so a loss between them is within {margin:g} of both: take data on which they are",
            )


def band(course: Course, k: int) -> tuple[float, float]:
    """The k-gram's loss with its best smoothing, and with the prior's, which the paper draws."""
    own = {name: loss for name, loss in course.levels.items() if name.startswith(f"{k}-gram a=")}
    return min(own.values()), own[f"{k}-gram a={course.alpha:g}"]


def distance(course: Course, k: int) -> float:
    """The median over the looks at stage k of how far the loss is from the k-gram's losses; infinity where the stage has no plateau.

    A loss that slides past them, and does not stay, is far from them at most looks, whatever its own median.
    """
    if course.plateau(k) is None:
        return np.inf
    low, high = band(course, k)
    losses = course.loss[course.looks(k)]
    return float(np.median(np.maximum(np.maximum(low - losses, losses - high), 0.0)))


def in_order(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge the share of replicates that pass through every stage in order, each with looks of its own and a lower loss.

    It is a share of those that come to the last stage, or leave the order before it; the others say nothing yet of the whole order.
    """
    trainings = {condition.name: courses(evidence, condition) for condition in conditions(evidence, needs, ATTENTION_ALONE)}
    gate(trainings, terms.gate)
    ended = {name: [course for course in own if ended_or_left(course)] for name, own in trainings.items()}
    answers = {name: [passes_in_order(course) for course in own] for name, own in ended.items()}
    waiting = ", ".join(f"{len(own) - len(ended[name])} of {len(own)} of {name}" for name, own in trainings.items())
    what = "pass through all stages in order, each with a lower loss"
    least = f"; a loss is lower by at least {DROP:.0%} of the distance between the k-grams' own"
    return _shares(answers, terms, what, f" (not yet at the last stage: {waiting})", least)


def ended_or_left(course: Course) -> bool:
    """Whether a training has begun its last stage, or a stage out of order."""
    return bool(np.isfinite(course.begins(course.order))) or list(course.learned) != list(range(1, 1 + len(course.learned)))


def passes_in_order(course: Course) -> bool:
    """Whether a training passes its stages in order, up to the last begun; learning a lag before a lower one breaks the order.

    Each step lowers the loss by at least DROP of what the two k-grams' losses differ by, with their best smoothing.
    """
    lags = list(course.learned)
    reached = 1 + len(lags)
    if lags != list(range(1, reached)) or reached == 1:
        return False
    levels = [level for k in range(1, reached + 1) if (level := course.plateau(k)) is not None]
    return len(levels) == reached and all(
        later < earlier and earlier - later >= least_fall(course, k)
        for k, (earlier, later) in enumerate(itertools.pairwise(levels), 1)
    )


def least_fall(course: Course, k: int) -> float:
    """By how much the loss must fall from stage k to the next one; 0 after the last, where a lag beyond n - 1 is learned too."""
    return DROP * (band(course, k)[0] - band(course, k + 1)[0]) if k < course.order else 0.0


def one_plateau(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge the share of replicates with MLPs whose loss goes from the unigram's to below the (n - 1)-gram's with no plateau between.

    Losses are used, and not heads: with MLPs one head may read several lags, so that none of them has most of its weight.
    """
    trainings = {
        condition.name: courses(evidence, condition) for condition in conditions(evidence, needs, WITH_MLP, least_order=3)
    }
    for name, own in trainings.items():
        below = sum(math.isfinite(leaves(course, course.order - 1)) for course in own)
        what = f"replicates of {name} come below the {own[0].order - 1}-gram's loss by the last step"
        requirements.gate(below, len(own), terms.gate, what, "must: train for longer")
    answers = {name: [skips(course) for course in own] for name, own in trainings.items()}
    return _shares(answers, terms, "go from the unigram to the n-gram at once")


def leaves(course: Course, k: int) -> float:
    """The step at which the loss has gone DROP of the way from the k-gram's to the next one's, both with their best smoothing.

    It must stay there, or lower, for PERSISTS looks; infinity where it does not.
    """
    here, there = band(course, k)[0], band(course, k + 1)[0]
    after = first_run(course.loss < here - DROP * (here - there))
    return np.inf if after is None else float(course.steps[after])


def skips(course: Course) -> bool:
    """Whether it stays at the unigram's loss, and leaves those of all k-grams between within AT_ONCE of the time that it stayed."""
    first, last = leaves(course, 1), leaves(course, course.order - 1)
    return stays_at_the_unigram(course) and last <= (1 + AT_ONCE) * first and np.isfinite(last)


def stays_at_the_unigram(course: Course) -> bool:
    """Whether most looks before it leaves the unigram's loss are no higher above it than DROP of the way to the bigram's."""
    (best, highest), (bigram, _) = band(course, 1), band(course, 2)
    before = course.loss[course.steps < leaves(course, 1)]
    return len(before) >= PERSISTS and float(np.median(before)) <= highest + DROP * (best - bigram)


def _shares(answers: dict[str, list[bool]], terms: Terms, what: str, more: str = "", criterion: str = "") -> Finding:
    confidence = 1 - 0.05 / len(answers)
    intervals = {name: clopper_pearson(sum(own), len(own), confidence) for name, own in answers.items()}
    return decide(
        *above(intervals.values(), terms.value),
        "; ".join(f"{name}: {percent(sum(own), len(own), confidence)} {what}" for name, own in answers.items()) + more,
        f"the exact interval must lie above {terms.value:g} in every condition, and refutes below{criterion}",
    )


_SOURCE = "Varre et al. 2025"
N1 = Claim(
    "N1",
    "Training stays on plateaus whose losses are those of the k-gram estimators, k = 1 … n - 1.",
    f"{_SOURCE}, figures 1 and 3",
    "largest median distance of a plateau's loss from the k-gram's, in nats",
    25,
    "25 replicates: a median distance below 0.02 is shown where 72 % of all replicates are below it",
    plateaus_at_the_k_grams,
    "ngrams/figure6",
)
N2 = Claim(
    "N2",
    "The k-grams are learned in the order k = 1, 2, …, n: lag after lag is read by a head, each with a lower loss.",
    f"{_SOURCE}, figures 1 and 3",
    "share of replicates that must be exceeded",
    25,
    "25 replicates, a share of 0.75 to be exceeded: shown where 98 % of all replicates keep the order",
    in_order,
    "ngrams/figure3",
    of_share=True,
)
N6 = Claim(
    "N6",
    "With MLPs there is one plateau alone, that of the unigram.",
    f"{_SOURCE}, figure 7",
    "share of replicates that must be exceeded",
    25,
    "25 replicates, a share of 0.75 to be exceeded: shown where 98 % of all replicates have one plateau",
    one_plateau,
    "ngrams/figure7",
    of_share=True,
)
