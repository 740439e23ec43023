"""R6, R7, R8: algorithmic choices against the baseline (card F10, F11, F13, F14)."""

from statistics import fmean

import scipy

from results.claims.claim import NOT_REPRODUCED, NOT_RUN, Claim, Finding, Terms, decide, settle
from results.claims.compare import between, exceeds, percent
from results.claims.evidence import Condition, Evidence, differing
from results.claims.flipflop.read_sets import baseline, dense_set, gate_in_distribution, p_ignore_of_sets, sparse_set
from results.claims.requirements import gate_tail, require, require_probed
from results.statistics.intervals import clopper_pearson, quantile
from results.statistics.unpaired import superiority

NOT_TRAINED = ("none", "sinusoidal", "rotary", "alibi")  # the thesis' encodings beside the learned table
MORE_OFTEN_THAN_NOT = 0.5


def choices_move_errors(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Embedding dropout 0.5 on sparse strings; the best non-trainable encoding on dense ones, corrected over encodings."""
    base, sparse, dense = baseline(evidence), sparse_set(evidence), dense_set(evidence)
    dropped = [each for each in evidence.beside(base, ["model.embedding_dropout"]) if _is(each, "model.embedding_dropout", 0.5)]
    fixed = [each for each in evidence.beside(base, ["model.positions"]) if each.settings["model.positions"] in NOT_TRAINED]
    if not dropped or not fixed:
        what = "embedding dropout 0.5" if not dropped else f"positions {', '.join(NOT_TRAINED)}"
        settle(NOT_RUN, f"no condition is the baseline with {what}")
    require([base, *dropped, *fixed], [sparse, dense], needs)
    gate_in_distribution(evidence, base, terms.gate)
    gate_tail(base, sparse)
    gate_tail(base, dense)
    lower = exceeds(base.errors(sparse), dropped[0].errors(sparse), terms.value)
    found = [(each, exceeds(base.errors(dense), each.errors(dense), 1, 1 - 0.05 / len(fixed))) for each in fixed]
    parts = ", ".join(f"{each.settings['model.positions']} {result}" for each, result in found)
    return decide(
        lower.interval.low > 0.5 and any(result.interval.low > 0.5 for _, result in found),
        lower.interval.high < 0.5 or all(result.interval.high < 0.5 for _, result in found),
        f"embedding dropout 0.5 lowers the median error on {sparse} by {lower}; on {dense} positions lower it by: {parts}",
        f"P is the chance that a baseline replicate errs over {terms.value:g} times as often as one with dropout, or more than one with an "
        "encoding that is not trained, and must lie above 1/2: for dropout, and for at least one encoding",
    )


def nothing_improves_both(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """P(sparse and dense error below the baseline's medians) of every other transformer on the same data, corrected over them."""
    base, sparse, dense = baseline(evidence), sparse_set(evidence), dense_set(evidence)
    others = [each for each in evidence.conditions if each is not base and _same_data(each, base)]
    if not others:
        settle(NOT_RUN, "no other condition is a transformer trained on the baseline's data")
    require([base, *others], [sparse, dense], needs)
    gate_in_distribution(evidence, base, terms.gate)
    gate_tail(base, sparse)
    gate_tail(base, dense)
    below = quantile(base.errors(sparse), 0.5), quantile(base.errors(dense), 0.5)
    counts = [_both_below(each, (sparse, dense), below) for each in others]
    risk = 0.05 / len(others)
    p = [float(scipy.stats.binomtest(k, n, MORE_OFTEN_THAN_NOT, "greater").pvalue) for k, n in counts]
    most = [clopper_pearson(k, n, 1 - 2 * risk).high for k, n in counts]
    top = max(range(len(others)), key=lambda i: counts[i][0] / counts[i][1])
    return decide(
        max(most) < terms.value,
        min(p) < risk,
        f"{len(others)} conditions; the best, {others[top].name}, improves both in {percent(*counts[top])} of its replicates",
        f"no condition may improve both more often than not (p = {min(p):.2g} against {risk:.2g}), and each must be shown to do so in "
        f"less than {terms.value:.0%} of its replicates (at most {max(most):.1%})",
    )


def sharpened_still_err(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Errors persist and are rarer, by the error rows; attention is harder than the baseline's, by those of the attention probe."""
    base, sparse = baseline(evidence), sparse_set(evidence)
    sharp = evidence.beside(base, ["train.sharpen"])
    if not sharp:
        settle(NOT_RUN, "no condition is the baseline with an attention-sharpening penalty")
    names = list(p_ignore_of_sets(evidence))
    require([base, *sharp], names, needs)
    gate_in_distribution(evidence, base, terms.gate)
    gate_tail(base, sparse)
    confidence = 1 - 0.05 / len(sharp)
    zeros = [each.joint_zeros(names) for each in sharp]
    errless = [
        each.name for each, count in zip(sharp, zeros, strict=True) if clopper_pearson(*count, confidence).low > terms.value
    ]
    fewer = [exceeds(base.errors(sparse), each.errors(sparse), 1, confidence) for each in sharp]
    best = max(range(len(sharp)), key=lambda i: fewer[i].chance)
    measured = (
        f"{sharp[best].name}, the best of {len(sharp)}, lowers the median error on {sparse} by {fewer[best]}; "
        f"{percent(*zeros[best])} of its replicates are without an error"
    )
    if errless:
        return Finding(
            NOT_REPRODUCED, measured, f"more than {terms.value:.0%} of the replicates are without an error: {errless[0]}"
        )
    if all(found.interval.high < 0.5 for found in fewer):
        return Finding(NOT_REPRODUCED, measured, f"every sharpened condition errs more than the baseline on {sparse}")
    if not all(evidence.probed(each, "attention") for each in (base, *sharp)):
        return Finding(
            NOT_RUN,
            measured,
            "the errors do not contradict it, but that attention is hard is only seen by a probe of attention",
        )
    require_probed(evidence, [base, *sharp], "attention", needs)
    plain = _hardness(evidence, base)
    harder = [superiority(plain, _hardness(evidence, each), confidence) for each in sharp]
    shown = ", ".join(
        f"{each.name} P = {chance:.2f} {between(interval)}" for each, (chance, interval) in zip(sharp, harder, strict=True)
    )
    persist = all(clopper_pearson(*count, confidence).high < terms.value for count in zeros)
    return decide(
        persist and all(interval.low > 0.5 for _, interval in harder) and any(found.interval.low > 0.5 for found in fewer),
        any(interval.high < 0.5 for _, interval in harder),
        f"{measured}; attention is harder than the baseline's: {shown}",
        "every sharpened condition must attend harder (mean largest weight) in more than half of the pairs, one must err less, and "
        f"less than {terms.value:.0%} of the replicates may be without an error",
    )


def _hardness(evidence: Evidence, condition: Condition) -> list[float]:
    """Of each replicate, the largest attention weight of a row in the mean over rows, heads and layers."""
    found = evidence.probed(condition, "attention")
    return [fmean(value for (_, _, _, item), value in values.items() if item == "largest") for _, values in found]


def _both_below(condition: Condition, names: tuple[str, str], below: tuple[float, float]) -> tuple[int, int]:
    pairs = [(each.error(names[0]), each.error(names[1])) for each in condition.replicates]
    known = [(x, y) for x, y in pairs if x is not None and y is not None]
    return sum(x < below[0] and y < below[1] for x, y in known), len(known)


def _same_data(condition: Condition, base: Condition) -> bool:
    different = [name for name in differing(condition, base) if name.startswith("task.") and name != "task.mode"]
    return condition.settings["model.name"] == base.settings["model.name"] and not different


def _is(condition: Condition, name: str, value: float) -> bool:
    return condition.settings[name] == value


R6 = Claim(
    "R6",
    "Algorithmic choices move errors by orders of magnitude: embedding dropout 0.5 sparse ones, encodings that are not trained dense ones.",
    "Liu's thesis, figures 3.31 and 3.32 (card F10, F11)",
    "factor by which embedding dropout 0.5 lowers the median sparse error",
    15,
    "15 replicates of each, four encodings: a part is shown where the baseline errs more (10 times as often) in 83 % of the pairs",
    choices_move_errors,
    "flipflop/verdicts",
)
R7 = Claim(
    "R7",
    "No setting other than other training data reliably improves both sparse and dense errors over the baseline.",
    "Liu's thesis, figure 3.25 left, 10,625 models (card F14)",
    "share of replicates with both errors below the baseline's medians that counts as reliably",
    15,
    "15 replicates of each of 40 conditions: one that improves both in 95 % of its replicates is caught",
    nothing_improves_both,
    "flipflop/sharpen",
)
R8 = Claim(
    "R8",
    "Attention sharpening makes attention hard and errors rarer, but errors persist.",
    "Liu's thesis, figures 3.26, 3.32 and 3.33 to 3.38 (card F13, F15)",
    "share of replicates without an error that would count as errors gone",
    15,
    "15 replicates of up to 4 sharpened conditions: one of which 90 % of the replicates have no error is caught",
    sharpened_still_err,
    "flipflop/sharpen",
)
