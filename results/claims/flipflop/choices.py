"""R6, R7, R8: algorithmic choices against the baseline (Liu's thesis, figures 3.25, 3.26 and 3.31 to 3.38)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Literal

import scipy

from results.claims.claim import NOT_REPRODUCED, NOT_RUN, PRECONDITION, Claim, Finding, Terms, decide, settle
from results.claims.compare import exceeds, median, percent, probability
from results.claims.evidence import Condition, Evidence, differing
from results.claims.flipflop.read_sets import (
    baseline,
    dense_set,
    gate_in_distribution,
    has_learned,
    same_data,
    sparse_set,
    training_sets,
)
from results.claims.requirements import gate_learned, gate_tail, require, require_probed
from results.statistics.intervals import clopper_pearson, quantile, quantile_interval
from results.statistics.unpaired import superiority

NOT_TRAINED = ("none", "sinusoidal", "rotary", "alibi")  # the thesis' encodings beside the learned table
THESIS_DROPOUT = 0.5
MORE_OFTEN_THAN_NOT = 0.5
MOST_FOUND = 0.05  # of the settings: what "extremely difficult to find" still allows is a threshold of ours
HARD = 0.5  # mean largest weight from which attention counts as hard: most of it lies on one key; ours
# of 0.05 in all; half of it for each of two sets, as the risk that the lower end of an interval lies above the median
RISK_OF_MEDIANS = 0.02
PENALTIES = 4  # fewer that fail do not refute a sentence about the best of 144: a threshold of ours
SETTINGS_OF_THE_THESIS = 405  # beside the baseline
BREADTH, KINDS_NEEDED = 20, 5  # settings that have learned, of so many kinds: what counts as a sweep is a threshold of ours
KINDS = {
    "data and steps": ("train.steps", "train.pool"),
    "size": ("model.layers", "model.width", "model.heads", "model.head_dim"),
    "dropout and weight decay": (
        "model.embedding_dropout",
        "model.attention_dropout",
        "model.feed_forward_dropout",
        "model.residual_dropout",
        "train.weight_decay",
    ),
    "positions and activations": ("model.positions", "model.activation"),
    "optimizer": ("train.lr", "train.betas", "train.batch"),
    "attention sharpening": ("train.sharpen",),
}


def dropout_lowers_sparse_errors(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge embedding dropout of 0.5; other values are not what the thesis speaks of."""
    dropped = [
        condition
        for condition in evidence.beside(baseline(evidence), ["model.embedding_dropout"])
        if condition.settings["model.embedding_dropout"] == THESIS_DROPOUT
    ]
    title = f"embedding dropout {THESIS_DROPOUT:g}"
    if not dropped:
        settle(NOT_RUN, f"no condition is the baseline with {title}")
    return _lowers(evidence, terms, needs, dropped, [title], sparse_set(evidence), "all")


def fixed_positions_lower_dense_errors(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge the encodings that are not trained: all that the study has must lower dense errors."""
    base = baseline(evidence)
    fixed = [
        condition
        for condition in evidence.beside(base, ["model.positions"])
        if condition.settings["model.positions"] in NOT_TRAINED
    ]
    if not fixed:
        settle(NOT_RUN, f"no condition is the baseline with positions {', '.join(NOT_TRAINED)}")
    titles = [f"positions {condition.settings['model.positions']}" for condition in fixed]
    return _lowers(evidence, terms, needs, fixed, titles, dense_set(evidence), "all")


def sharpening_lowers_sparse_errors(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge the penalties with which models have learned: one must lower sparse errors, as the thesis says of the best of its 144.

    Fewer than `PENALTIES` can't refute the claim, because they say too little of the best.
    """
    base, name = baseline(evidence), sparse_set(evidence)
    sharpened = _sharpened(evidence, base)
    require(sharpened, [name, *training_sets(evidence, base)], needs)
    learned = [condition for condition in sharpened if has_learned(evidence, condition)] or sharpened
    finding = _lowers(evidence, terms, needs, learned, [condition.name for condition in learned], name, "at least one")
    if len(learned) < len(sharpened):
        left_out = (
            f"{len(sharpened) - len(learned)} of {len(sharpened)} penalties are left out: models have not learned with them"
        )
        finding = replace(finding, measured=f"{finding.measured}; {left_out}")
    if finding.verdict == NOT_REPRODUCED and len(learned) < PENALTIES:
        what = f"{len(learned)} of the thesis' 144 penalties can't refute what it says of the best: {PENALTIES} that have learned can"
        settle(NOT_RUN, what, finding.measured)
    return finding


def _lowers(
    evidence: Evidence,
    terms: Terms,
    needs: int,
    changed: Sequence[Condition],
    titles: Sequence[str],
    name: str,
    which: Literal["all", "at least one"],
) -> Finding:
    """Judge whether these conditions err `terms.value` times less than the baseline on a set, corrected for their number."""
    base = baseline(evidence)
    compared = [base, *changed]
    require(compared, [name, *(own for condition in compared for own in training_sets(evidence, condition))], needs)
    gate_in_distribution(evidence, base, terms.gate)
    gate_learned(evidence, compared, training_sets)
    gate_tail(base, name)
    confidence = 1 - 0.05 / len(changed)
    lower = [exceeds(base.errors(name), condition.errors(name), terms.value, confidence) for condition in changed]
    parts = "; ".join(f"{title}, it {result.moves(to_first=False)}" for title, result in zip(titles, lower, strict=True))
    more = f"over {terms.value:g} times as often" if terms.value != 1 else "more"
    shown, refuted = [result.interval.low > 0.5 for result in lower], [result.interval.high < 0.5 for result in lower]
    return decide(
        all(shown) if which == "all" else any(shown),
        any(refuted) if which == "all" else all(refuted),
        f"the median error on {name}: with {parts}",
        f"P is the chance that a baseline replicate errs {more}, and must lie above 1/2 for {which}",
    )


def nothing_improves_both(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge whether hardly any other transformer on the same data improves both errors over the baseline's medians more often than not.

    Shown if none does; refuted if more than one in 20 does. The thesis found such a setting "extremely difficult to find".
    Settings that have not learned their training distribution are left out; the others must be a sweep. Tests are corrected for the number
    of settings. All are compared with the same few baselines, so a setting refutes the claim only if it improves on the lower ends of the
    intervals of the baseline's medians.
    """
    base, sparse, dense = baseline(evidence), sparse_set(evidence), dense_set(evidence)
    others = [condition for condition in evidence.conditions if condition is not base and same_data(condition, base)]
    if not others:
        settle(NOT_RUN, "no other condition is a transformer trained on the baseline's data")
    _refuse_narrow(NOT_RUN, others, base, "")
    require([base, *others], [sparse, dense, *training_sets(evidence, base)], needs)
    gate_in_distribution(evidence, base, terms.gate)
    gate_learned(evidence, [base], training_sets)
    gate_tail(base, sparse)
    gate_tail(base, dense)
    learned = [condition for condition in others if has_learned(evidence, condition)]
    _refuse_narrow(PRECONDITION, learned, base, " that have learned their training distribution")
    errors = {name: base.errors(name) for name in (sparse, dense)}
    counts = [_both_below(condition, {name: quantile(e, 0.5) for name, e in errors.items()}) for condition in learned]
    surely = {name: quantile_interval(e, 0.5, 1 - RISK_OF_MEDIANS).low for name, e in errors.items()}
    clear = [_both_below(condition, surely) for condition in learned]
    risk = (0.05 - RISK_OF_MEDIANS) / len(learned)
    p = [float(scipy.stats.binomtest(k, n, MORE_OFTEN_THAN_NOT, "greater").pvalue) for k, n in clear]
    most = [clopper_pearson(k, n, 1 - 2 * 0.05 / len(learned)).high for k, n in counts]
    top = max(range(len(learned)), key=lambda i: counts[i][0] / counts[i][1])
    left_out = f" ({len(others) - len(learned)} more have not learned and are left out)" if len(learned) < len(others) else ""
    return decide(
        max(most) < terms.value,
        sum(each < risk for each in p) > MOST_FOUND * len(learned),
        f"{len(learned)} of the thesis' {SETTINGS_OF_THE_THESIS} settings, or others of their kinds{left_out}; the best, "
        f"{learned[top].name}, improves both in {percent(*counts[top])} of its replicates",
        f"no more than {MOST_FOUND:.0%} of the settings may improve both more often than not, noise of the baseline's medians allowed "
        f"for (least p = {min(p):.2g} against {risk:.2g}), and each must be shown to do so in "
        f"less than {terms.value:.0%} of its replicates (at most {max(most):.1%})",
    )


def sharpened_still_err(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge whether errors on sparse or dense strings persist with sharpening, and attention is hard, and harder than the baseline's.

    The probe of attention shows how hard it is.
    """
    base = baseline(evidence)
    sharp = _sharpened(evidence, base)
    names = [sparse_set(evidence), dense_set(evidence)]
    require([base, *sharp], [*names, *training_sets(evidence, base)], needs)
    gate_in_distribution(evidence, base, terms.gate)
    gate_learned(evidence, [base, *sharp], training_sets)
    gate_tail(base, names[0])
    confidence = 1 - 0.05 / len(sharp)
    zeros = [condition.joint_zeros(names) for condition in sharp]
    errless = [
        condition.name
        for condition, count in zip(sharp, zeros, strict=True)
        if clopper_pearson(*count, confidence).low > terms.value
    ]
    best = max(range(len(sharp)), key=lambda i: zeros[i][0] / zeros[i][1])
    measured = (
        f"{percent(*zeros[best])} of the replicates of {sharp[best].name}, the best of {len(sharp)}, are without an error on "
        f"{' and '.join(names)}"
    )
    if errless:
        return Finding(
            NOT_REPRODUCED, measured, f"more than {terms.value:.0%} of the replicates are without an error: {errless[0]}"
        )
    if not all(evidence.probed(condition, "attention") for condition in (base, *sharp)):
        return Finding(
            NOT_RUN,
            measured,
            "the errors do not contradict it, but that attention is hard is only seen by a probe of attention",
        )
    require_probed(evidence, [base, *sharp], "attention", needs)
    plain, weights = _hardness(evidence, base), [_hardness(evidence, condition) for condition in sharp]
    harder = [superiority(plain, own, confidence) for own in weights]
    middles = [median(own, confidence) for own in weights]
    shown = ", ".join(
        f"{condition.name} {middle:.2f}, {probability(chance, interval)}"
        for condition, middle, (chance, interval) in zip(sharp, middles, harder, strict=True)
    )
    persist = all(clopper_pearson(*count, confidence).high < terms.value for count in zeros)
    return decide(
        persist and all(interval.low > 0.5 for _, interval in harder) and all(middle.interval.low > HARD for middle in middles),
        any(interval.high < 0.5 for _, interval in harder) or any(middle.interval.high < HARD for middle in middles),
        f"{measured}; median of the mean largest weight, and the chance that it is above the baseline's, whose median is "
        f"{median(plain).value:.2f}: {shown}",
        f"in every sharpened condition the mean largest weight must have a median above {HARD:g}, and be larger than the baseline's in "
        f"more than half of the pairs, and less than {terms.value:.0%} of its replicates may be without an error",
    )


def _sharpened(evidence: Evidence, base: Condition) -> list[Condition]:
    """The conditions with a penalty; one of weight 0 is the baseline again."""
    sharp = [
        condition for condition in evidence.beside(base, ["train.sharpen"]) if condition.settings.get("train.sharpen.weight")
    ]
    if not sharp:
        settle(NOT_RUN, "no condition is the baseline with an attention-sharpening penalty")
    return sharp


def _refuse_narrow(verdict: str, settings: Sequence[Condition], base: Condition, which: str) -> None:
    kinds = {kind for setting in settings for kind in _kinds(setting, base)}
    if len(settings) < BREADTH or len(kinds) < KINDS_NEEDED:
        settle(
            verdict,
            f"{len(settings)} settings{which}, of {len(kinds)} kinds ({', '.join(sorted(kinds)) or 'none'}), are no sweep: the thesis has "
            f"{SETTINGS_OF_THE_THESIS} of {len(KINDS)}, and the claim asks for {BREADTH} of {KINDS_NEEDED}",
        )


def _kinds(condition: Condition, base: Condition) -> set[str]:
    """The kinds of choices in which it differs from the baseline."""
    options = differing(condition, base)
    return {kind for kind, names in KINDS.items() if any(o == n or o.startswith(f"{n}.") for o in options for n in names)}


def _hardness(evidence: Evidence, condition: Condition) -> list[float]:
    """Largest attention weight of a row, averaged over rows, heads and layers, by replicate."""
    probed = evidence.probed(condition, "attention")
    return [fmean(value for (_, _, _, item), value in values.items() if item == "largest") for _, values in probed]


def _both_below(condition: Condition, below: Mapping[str, float]) -> tuple[int, int]:
    """How many of its replicates err less on every set than is given for it, and of how many."""
    rates = condition.rates(list(below))
    return int((rates < list(below.values())).all(1).sum()), len(rates)


R6 = Claim(
    "R6",
    "Embedding dropout of 0.5 lowers errors on sparse strings by orders of magnitude.",
    "Liu's thesis, section 3.5.4.2 and figure 3.31: two orders of magnitude; one is asked for",
    "factor by which embedding dropout lowers the median sparse error",
    15,
    "15 replicates of each: shown where the baseline errs that many times as often in 80 % of the pairs",
    dropout_lowers_sparse_errors,
    "flipflop/verdicts",
)
R6_POSITIONS = Claim(
    "R6-positions",
    "Encodings of positions that are not trained lower errors on dense strings.",
    "Liu's thesis, section 3.5.6.4 and figure 3.32, no numbers",
    "factor by which each encoding lowers the median dense error",
    15,
    "15 replicates of each, four encodings: shown where the baseline errs more than each in 91 % of the pairs",
    fixed_positions_lower_dense_errors,
    "flipflop/positions",
)
R6_SHARPENING = Claim(
    "R6-sharpening",
    "Sharpening attention lowers errors on sparse strings by about an order of magnitude.",
    "Liu's thesis, section 3.2.2 of reasoning errors, 3.5.4.2 and 3.5.6.4 without the number, figure 3.32",
    "factor by which the best penalty lowers the median sparse error",
    15,
    "15 replicates of each, four penalties: one is shown where the baseline errs that many times as often in 87 % of the pairs",
    sharpening_lowers_sparse_errors,
    "flipflop/sharpen",
    paper_value=10.0,
)
R7 = Claim(
    "R7",
    "Hardly any setting other than other training data reliably improves both sparse and dense errors over the baseline.",
    "Liu's thesis, section 3.5.4.2 and figure 3.25 left, 10,625 models of the baseline and of 405 settings",
    "share of replicates with both errors below the baseline's medians that counts as reliably",
    15,
    "25 replicates of each of 44 conditions: three that improve both in 95 % of them refute it in 35 % of the studies",
    nothing_improves_both,
    "flipflop/choices",
    of_share=True,
)
R8 = Claim(
    "R8",
    "Attention sharpening makes attention hard, but errors on sparse or dense strings persist.",
    "Liu's thesis, figures 3.26, 3.32 and 3.33 to 3.38",
    "share of replicates without a sparse or dense error that would count as errors gone",
    15,
    "15 replicates of up to 4 sharpened conditions: one of which 90 % of the replicates have no error is caught",
    sharpened_still_err,
    "flipflop/verdicts",
    of_share=True,
)
