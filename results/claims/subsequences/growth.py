"""S3: when rare pairs are learned (after Sun et al. 2025, proposition 2.5).

Rows are those of `manyseeds probe STORE --probe associations` at the kept steps: frequency, gap and gradient of every pair.
"""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from results.claims.claim import NOT_RUN, PRECONDITION, Claim, Finding, Part, Terms, decide_all, settle
from results.claims.compare import median
from results.claims.evidence import Condition, Evidence
from results.claims.requirements import in_distribution_set, require, require_all
from results.rows.summary import of_replicates
from results.statistics.intervals import Floats
from results.statistics.survival_slope import beyond_onset

LEARNED = 0.1  # gap below which a pair counts as learned
MARGIN = 0.2  # tolerance of the exponent, to either side
PLAIN = ("sgd",)  # the case of the proposition
ADAPTIVE = ("adam", "adamw")  # which divide by the size of past gradients: on them the proposition is silent
OPTIMIZERS = (*PLAIN, *ADAPTIVE)
Pairs = dict[str, Floats]  # frequency, gap, gradient; one number per pair
Steps = dict[int, Pairs]


def measured(evidence: Evidence, needs: int, optimizers: Sequence[str] = OPTIMIZERS) -> dict[str, list[Steps]]:
    """Measurements of the finished replicates, by condition, for conditions whose pairs are not equally frequent.

    Settles a claim where there is no such condition with one of these optimizers, or a replicate without rows.
    """
    compared = [
        condition
        for condition in evidence.of_task("associations")
        if condition.settings["task.zipf"] > 0 and condition.settings["train.optimizer"] in optimizers
    ]
    if not compared:
        settle(NOT_RUN, f"no condition is of associations whose pairs are not equally frequent, with {' or '.join(optimizers)}")
    require(compared, [in_distribution_set(evidence)], needs)
    rows = evidence.measured_by_step("associations")
    return {condition.name: _of(condition, rows, needs) for condition in compared}


def _of(condition: Condition, rows: Mapping[str, Mapping[int, Mapping[str, float]]], needs: int) -> list[Steps]:
    measured = of_replicates(condition.finished, rows)
    if not measured:
        settle(
            NOT_RUN, f"{condition.name} has no rows: manyseeds probe STORE --probe associations, with kept steps in its study"
        )
    require_all(len(measured), len(condition.finished), needs, f"finished replicates of {condition.name} have rows")
    if min(len(steps) for steps in measured) < 4:
        settle(NOT_RUN, f"{condition.name} has rows at fewer than 4 steps: keep more of them")
    return [{step: arrays(items) for step, items in sorted(steps.items())} for steps in measured]


def arrays(items: Mapping[str, float]) -> Pairs:
    """Items such as "pair=3 gap" as arrays in the order of the pairs' numbers. Where one lacks, `Items` refuse it."""
    names = ("frequency", "gap", "gradient")
    count = max(1, *(sum(item.endswith(f" {name}") for item in items) for name in names))
    return {name: np.array([items[f"pair={pair} {name}"] for pair in range(count)], dtype=np.float64) for name in names}


def learned_between(steps: Steps) -> tuple[Floats, Floats]:
    """The first kept step at which each pair's gap is below LEARNED, after the step before it: infinity where there is none."""
    kept = sorted(steps)
    below = np.array([steps[step]["gap"] < LEARNED for step in kept])
    first, ever = below.argmax(0), below.any(0)
    high = np.where(ever, np.array(kept, dtype=np.float64)[first], np.inf)
    low = np.where(ever, np.array([0, *kept], dtype=np.float64)[first], kept[-1])
    return low, high


def rare_pairs_take_longer(evidence: Evidence, terms: Terms, needs: int, optimizers: Sequence[str]) -> Finding:
    """Judge the exponent of frequency in the steps beyond a common onset, by the interval of its median over replicates."""
    by_condition = measured(evidence, needs, optimizers)
    parts = []
    for name, replicates in by_condition.items():
        times = [learned_between(steps) for steps in replicates]
        shares = [float(np.isfinite(high).mean()) for _, high in times]
        least = max(
            terms.gate, 4 / min(len(high) for _, high in times)
        )  # an onset, a scale, an exponent and a spread need four
        if min(shares) < least:
            settle(
                PRECONDITION,
                f"one of the {len(shares)} replicates of {name} brings the gap of {min(shares):.0%} of its pairs below {LEARNED:g}, and "
                f"{least:.0%} must be in each: train for longer",
            )
        early = [float((low == 0).mean()) for low, _ in times]
        if max(early) >= 1 - least:
            settle(
                PRECONDITION,
                f"{max(early):.0%} of the pairs of a replicate of {name} are learned before the first kept step: keep earlier ones",
            )
        frequencies = [np.log(next(iter(steps.values()))["frequency"]) for steps in replicates]
        fitted = [beyond_onset(x, low, high) for x, (low, high) in zip(frequencies, times, strict=True)]
        onsets, exponents = (np.array(each) for each in zip(*fitted, strict=True))
        middle = median(exponents, 1 - 0.05 / len(by_condition), least=-np.inf)
        text = (
            f"{name}: {middle:.2f} over {len(exponents)} replicates, beyond an onset of {np.median(onsets):.0f} steps (median); "
            f"{sum(int(np.isinf(high).sum()) for _, high in times)} of {sum(len(high) for _, high in times)} pairs not learned"
        )
        low, high = middle.interval.low, middle.interval.high
        within = terms.value - MARGIN <= low and high <= terms.value + MARGIN
        without = high < terms.value - MARGIN or low > terms.value + MARGIN
        parts.append(Part(within, without, text))
    return decide_all(
        parts,
        f"exponent b of frequency, where the steps until the gap is below {LEARNED:g} are t₀ + c · frequency^b, median with its exact "
        "interval: ",
        f"the whole interval must lie in {terms.value - MARGIN:g} … {terms.value + MARGIN:g}; refuted where it lies wholly outside. Pairs "
        "that are not learned count as learned later than the last step",
    )


S3 = Claim(
    "S3",
    "With plain gradient descent the steps until a pair is learned, beyond a common onset, are in inverse proportion to its frequency.",
    "Sun et al. 2025, proposition 2.5; a prediction of ours, no experiment in the paper",
    "exponent of frequency in the steps beyond an onset, to within 0.2",
    10,
    "10 replicates: an exponent of -1 is shown where those of replicates have a standard deviation of 0.14 at most",
    partial(rare_pairs_take_longer, optimizers=PLAIN),
    "subsequences/long_tail",
)
S3_ADAM = Claim(
    "S3-adam",
    "With Adam or AdamW, which divide by the size of past gradients, the steps until a pair is learned, beyond a common onset, are in "
    "inverse proportion to its frequency.",
    "a prediction of ours; Sun et al. 2025 have neither theory nor an experiment on it",
    "exponent of frequency in the steps beyond an onset, to within 0.2",
    10,
    "10 replicates: an exponent of -1 is shown where those of replicates have a standard deviation of 0.14 at most",
    partial(rare_pairs_take_longer, optimizers=ADAPTIVE),
    "subsequences/long_tail",
)
