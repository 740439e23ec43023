"""DY3 to DY7: uniform attention, and the balance violation β with what it goes with (Li's thesis, sections 2.2.2 and 2.2.3.3).

Criteria stand in docs/studies/dyck/README.md and were fixed before the reported replicates ran.
"""

from functools import partial

import numpy as np

from results.claims.claim import NOT_RUN, PRECONDITION, Claim, Finding, Terms, decide, settle
from results.claims.compare import above, between, percent
from results.claims.dyck.arms import MINIMAL, RESAMPLES, arms, gate, long_set, middle_95, violation
from results.claims.evidence import Evidence
from results.claims.requirements import by_place, in_distribution_set, require
from results.statistics.intervals import Floats, clopper_pearson
from results.statistics.rank_correlation import spearman


def uniform_attention_suffices(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge whether most replicates with uniform attention have an accuracy above `value` on the training distribution."""
    (uniform,) = arms(evidence, MINIMAL, "uniform")[:1] or settle(NOT_RUN, "no condition has model.attention = uniform")
    own = in_distribution_set(evidence)
    require([uniform], [own], needs)
    accuracy = uniform.accuracies(own)
    right = int((accuracy > terms.value).sum())
    return decide(
        *above([clopper_pearson(right, len(accuracy))], 0.5),
        f"{percent(right, len(accuracy))} exceed {terms.value:.0%}, the median is {np.median(accuracy):.2%}",
        "most replicates must, with the whole interval above one half, and it refutes below",
    )


def penalty_lowers_violation_and_long_errors(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge whether, for both kinds of data, the penalty lowers β and errors on long prefixes in more than `value` of the pairs."""
    bases = [condition for condition in arms(evidence, MINIMAL) if evidence.beside(condition, ["train.consistency"])]
    if {base.settings["task.complete"] for base in bases} != {True, False}:
        settle(NOT_RUN, "whole strings and prefixes must each have a condition with train.consistency beside one without")
    confidence, texts, shares = 1 - 0.05 / 4, [], []
    for base in bases:
        (penalised,) = evidence.beside(base, ["train.consistency"])[:1]
        name = long_set(evidence, base)
        gate(evidence, [base, penalised], "balance", needs, [name])
        for what, one, other in (
            ("β", violation(evidence, base), violation(evidence, penalised)),
            ("long errors", base.wrong_by_seeds(name), penalised.wrong_by_seeds(name)),
        ):
            pairs = sorted(one.keys() & other.keys())
            lower = sum(other[pair] < one[pair] for pair in pairs)
            shares.append(clopper_pearson(lower, len(pairs), confidence))
            medians = [np.median([values[pair] for pair in pairs]) for values in (one, other)]
            share = percent(lower, len(pairs), confidence)
            texts.append(f"{base.name}: {what} {medians[0]:.3g} → {medians[1]:.3g}, lower in {share}")
    return decide(
        *above(shares, terms.value),
        "; ".join(texts),
        f"β and errors must be lower in more than {terms.value:g} of the pairs, whole intervals at 98.75 %, and one that is below refutes",
    )


def violation_goes_with_long_errors(
    evidence: Evidence, terms: Terms, needs: int, scored: str = "closing", sure: float = 0.0
) -> Finding:
    """Judge whether the correlation of β and accuracy on long prefixes is below `value` with whole strings, and higher with prefixes.

    Spearman's correlation over replicates without the penalty. scored, sure: options of the set of long prefixes.
    """
    bases = by_place(
        arms(evidence, MINIMAL), lambda condition: condition.settings["task.complete"], "are of one kind of strings"
    )
    if set(bases) != {True, False}:
        settle(NOT_RUN, "whole strings and prefixes must each have a condition")
    values = {}
    for complete, base in bases.items():
        name = long_set(evidence, base, scored, sure)
        gate(evidence, [base], "balance", needs, [name])
        accuracy = base.accuracy_by_seeds(name)
        pairs = [(beta, accuracy[seeds]) for seeds, beta in violation(evidence, base).items() if seeds in accuracy]
        values[complete] = np.array(pairs).T
        require_spread(base.name, values[complete])
    random = np.random.default_rng(0)
    whole, prefixes = (_resampled(values[complete], random) for complete in (True, False))
    on_whole, on_prefixes, apart = middle_95(whole), middle_95(prefixes), middle_95(prefixes - whole)
    return decide(
        on_whole.high < terms.value and apart.low > 0,
        on_whole.low >= terms.value or on_prefixes.high < terms.value,
        f"whole strings: {spearman(*values[True]):.2f} {between(on_whole)}; prefixes: {spearman(*values[False]):.2f} "
        f"{between(on_prefixes)}; difference {between(apart)}",
        f"the correlation must be below {terms.value:g} on whole strings and higher on prefixes, whole intervals; one not below on whole "
        "strings, or below it on prefixes too, refutes",
    )


def violation_falls_with_length(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge whether log β falls with log N, N the training strings' length, with a slope below `value`.

    -1 is β ∝ 1/N, the theorem's upper bound, which a steeper fall keeps too.
    """
    on_prefixes = [condition for condition in arms(evidence, MINIMAL) if condition.settings["task.complete"] is False]
    lengths = [condition.settings["task.length"] for condition in on_prefixes]
    if len(set(lengths)) < 3:
        settle(NOT_RUN, "fewer than three lengths of training prefixes")
    gate(evidence, on_prefixes, "balance", needs)
    betas = [np.array(list(violation(evidence, condition).values())) for condition in on_prefixes]
    for condition, beta in zip(on_prefixes, betas, strict=True):
        if zeros := int((beta == 0).sum()):
            settle(PRECONDITION, f"{zeros} of {len(beta)} replicates of {condition.name} have a β of 0, which has no logarithm")
    logs = [np.log(beta) for beta in betas]
    random = np.random.default_rng(0)
    x = np.log(np.array(lengths, dtype=np.float64))
    means = np.stack([log[random.integers(len(log), size=(RESAMPLES, len(log)))].mean(-1) for log in logs], axis=-1)
    centred = x - x.mean()
    slopes = means @ centred / (centred**2).sum()
    slope = float(np.array([log.mean() for log in logs]) @ centred / (centred**2).sum())
    interval = middle_95(slopes)
    medians = ", ".join(
        f"N = {n}: {np.exp(np.median(log)):.3g}" for n, log in sorted(zip(lengths, logs, strict=True), key=lambda p: p[0])
    )
    return decide(
        interval.high < terms.value,
        interval.low > terms.value,
        f"slope {slope:.2f} {between(interval)}; median β at {medians}",
        f"the slope must be below {terms.value:g}, the whole interval, and refutes above",
    )


def require_spread(name: str, values: Floats) -> None:
    """Settle a claim on a correlation where more than half of β or of the accuracies, [2, n], are equal: 0 would be no finding."""
    for what, own in zip(("β", "accuracy on long prefixes"), values, strict=True):
        most = int(np.unique(own, return_counts=True)[1].max())
        if 2 * most > len(own):
            settle(PRECONDITION, f"{most} of {len(own)} replicates of {name} have one {what}, so nothing can go with it")


def _resampled(values: Floats, random: np.random.Generator) -> Floats:
    """Correlations of resampled replicates, [RESAMPLES]; values [2, n]."""
    chosen = random.integers(values.shape[1], size=(RESAMPLES, values.shape[1]))
    return spearman(values[0][chosen], values[1][chosen])


_SOURCE = "Li 2025 (CMU-ML-25-120)"
DY3 = Claim(
    "DY3",
    "A layer of uniform attention that is given the type and the depth of each bracket predicts closing brackets with more than 99 % "
    "accuracy.",
    f"{_SOURCE}, section 2.2.2.1: corollary 2.2.1 and footnote 11",
    "accuracy to be exceeded",
    40,
    "40 replicates: shown where 72 % of all replicates exceed it",
    uniform_attention_suffices,
    "dyck/balance",
    paper_value=0.99,
    of_share=True,
)
DY4 = Claim(
    "DY4",
    "A penalty on answers that depend on closed brackets lowers the balance violation and raises the accuracy on long strings.",
    f"{_SOURCE}, figures 2.13 and 2.17",
    "share of pairs of seeds to be exceeded",
    40,
    "40 pairs of seeds: shown where four in five of all pairs are lower, in each of the four comparisons",
    penalty_lowers_violation_and_long_errors,
    "dyck/balance",
    of_share=True,
)
DY5 = Claim(
    "DY5",
    "The balance violation goes with worse accuracy on long strings for models of whole strings, and not for those of prefixes.",
    f"{_SOURCE}, figures 2.13 and 2.17",
    "correlation to be below",
    40,
    "40 replicates: a correlation below -0.43 on whole strings is shown, and one on prefixes that is 0.6 higher",
    violation_goes_with_long_errors,
    "dyck/balance",
    of_share=True,
)
DY7 = Claim(
    "DY7",
    "The balance violation goes with worse accuracy on long strings for models of whole strings, and not for those of prefixes, where "
    "an answer is right only if the right bracket has more than 0.8 of the probability of all closing brackets.",
    f"{_SOURCE}, figures 2.13 and 2.17, with the accuracy of the authors' code",
    "correlation to be below",
    80,
    "80 replicates: a correlation below -0.31 on whole strings is shown, and one on prefixes that is 0.43 higher",
    partial(violation_goes_with_long_errors, scored="stack", sure=0.8),
    "dyck/mass",
    of_share=True,
)
DY6 = Claim(
    "DY6",
    "The balance violation of a model that has learned falls with the length N of its training strings, at least like 1/√N.",
    f"{_SOURCE}, theorem 2.2.2, which bounds it by C/N; no experiment of the thesis shows it",
    "slope of log β by log N to be below",
    40,
    "40 replicates of five lengths: a slope below -0.6 is shown where β varies by a factor of 1.6 among the seeds of a length",
    violation_falls_with_length,
    "dyck/lengths",
)
