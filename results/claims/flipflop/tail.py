"""R1, R2: the tail of a transformer's errors, over seeds and over the steps of one training, and that an LSTM has none.

Liu's thesis, section 3.5.6.2, figures 3.24, 3.25, 3.27 and 3.28.
"""

from collections.abc import Mapping
from dataclasses import replace

from results.claims.claim import NOT_RUN, Claim, Finding, Terms, decide, settle
from results.claims.compare import above, percent
from results.claims.evidence import Condition, Evidence
from results.claims.flipflop.looks import rebound, sparse_and_own_looks
from results.claims.flipflop.read_sets import (
    baseline,
    dense_set,
    gate_in_distribution,
    in_distribution,
    plain_transformers,
    sparse_set,
    training_p_ignore,
    training_sets,
)
from results.claims.requirements import gate_learned, require, require_all
from results.rows.plural import factors
from results.rows.summary import Replicate
from results.statistics.intervals import clopper_pearson

DECADE = 10.0
PAPERS_LSTM = {"model.name": "lstm", "model.layers": 1, "model.width": 128, "task.name": "flipflop", "train.batch": 16}
PAPERS_LSTM_STEPS = 500
PAPERS_SAMPLES = 160_000  # of the paper's transformer


def irregular_tail(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge how many of the baseline's replicates without an in-distribution error err elsewhere, and how far apart their errors lie."""
    base = baseline(evidence)
    sparse, dense = sparse_set(evidence), dense_set(evidence)
    perfect = _without_error_in_distribution(evidence, base, terms, needs)
    require([perfect], [sparse, dense], needs)
    total = len(perfect.replicates)
    wrong = total - perfect.joint_zeros([sparse, dense])[0]
    on_sparse, on_dense = (int((perfect.errors(name) > 0).sum()) for name in (sparse, dense))
    share = clopper_pearson(wrong, total)
    spreads = {name: spread(perfect, name) for name in (sparse, dense)}
    measured = (
        f"{percent(wrong, total)} of the replicates without in-distribution error err: {on_sparse} on {sparse}, {on_dense} on {dense}; "
        f"the worst errs {factors(*spreads[sparse])} as often on {sparse} as the best, and {factors(*spreads[dense])} on {dense}"
    )
    return decide(
        share.low > terms.value and on_sparse > 0 and on_dense > 0 and all(least >= DECADE for least, _ in spreads.values()),
        share.high < terms.value or 0 in (on_sparse, on_dense) or any(most < DECADE for _, most in spreads.values()),
        measured,
        f"more than {terms.value:.0%} must err on one of the two sets or on both, and on each of them the worst at least 10 times as "
        "often as the best",
    )


def _without_error_in_distribution(evidence: Evidence, base: Condition, terms: Terms, needs: int) -> Condition:
    """The baseline's replicates that read their training distribution without an error, once it has passed its gates."""
    inside = in_distribution(evidence)
    require([base], [inside], needs)
    gate_in_distribution(evidence, base, terms.gate)
    gate_learned(evidence, [base], training_sets)
    return replace(base, replicates=tuple(replicate for replicate in base.replicates if replicate.error(inside) == 0))


def spread(condition: Condition, name: str) -> tuple[float, float]:
    """Largest error rate divided by the smallest: the least and the most that the 95 % intervals of the two allow."""

    def rate(replicate: Replicate) -> float:
        return replicate.scores[name].rate

    scored = [replicate for replicate in condition.replicates if name in replicate.scores]
    best, worst = min(scored, key=rate).scores[name], max(scored, key=rate).scores[name]
    return worst.low / best.high, worst.high / best.low if best.low else float("inf")


def errors_come_back(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge in how many of these replicates sparse errors rise again by a factor of 10 while the training distribution is read rightly."""
    base = baseline(evidence)
    sparse, own = sparse_and_own_looks(evidence)
    perfect = _without_error_in_distribution(evidence, base, terms, needs)
    rises = {replicate.key: rebound(evidence, replicate.key, sparse, own) for replicate in perfect.replicates}
    watched = {key: rise for key, rise in rises.items() if rise is not None}
    require_all(len(watched), len(rises), needs, f"replicates have looks at {sparse} and {own}")
    again = sum(rise.factor >= DECADE for rise in watched.values())
    most = max(watched.values(), key=lambda rise: rise.factor)
    return decide(
        *above([clopper_pearson(again, len(watched))], terms.value),
        f"in {percent(again, len(watched))} of the replicates without in-distribution error, errors on {sparse} rise at least 10 times "
        f"from one look to a later one; the largest rise: {most}",
        f"in more than {terms.value:.0%} they must, beyond the exact intervals of both looks, while at most 1% of {own} is read wrongly at "
        "every look from one to the other",
    )


def lstm_never_errs(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge whether no replicate of the paper's LSTM errs on the sparse or the dense set.

    One that errs refutes the claim, and a diverged one errs, where the others have learned their training distribution.
    """
    trained = training_p_ignore(evidence)
    lstms = [
        condition
        for condition in evidence.with_settings(PAPERS_LSTM | {"task.p_ignore": trained})
        if condition.settings["train.steps"] <= PAPERS_LSTM_STEPS
    ]
    if not lstms:
        settle(
            NOT_RUN,
            "no condition is a one-layer LSTM of width 128 that is trained on the baseline's data for at most 500 steps of 16 strings",
        )
    lstm = max(lstms, key=lambda lstm: len(lstm.replicates))
    names = [sparse_set(evidence), dense_set(evidence)]
    zero, total = lstm.joint_zeros(names)
    if zero == total:
        require([lstm], [*names, *training_sets(evidence, lstm)], needs)
    gate_learned(evidence, [lstm], training_sets)
    return decide(
        zero == total,
        zero < total,
        f"{percent(zero, total)} without an error, {_fewer_samples(evidence, lstm)}",
        f"every replicate must be without error on {' and '.join(names)}",
    )


def _fewer_samples(evidence: Evidence, lstm: Condition) -> str:
    """How many samples the LSTM had, and how many times fewer than the study's plain transformer, or than the paper's without one."""
    samples = _samples(lstm.settings)
    plain = plain_transformers(evidence)
    if plain:
        theirs = _samples(baseline(evidence).settings)
        return f"trained on {samples:,} strings, {theirs / samples:g} times fewer than the transformer beside it"
    fewer = f"{PAPERS_SAMPLES / samples:g} times fewer than the paper's transformer, which this study has not"
    return f"trained on {samples:,} strings, {fewer}"


def _samples(settings: Mapping[str, object]) -> int:
    return int(str(settings["train.steps"])) * int(str(settings["train.batch"]))


R1 = Claim(
    "R1",
    "Transformers that read their training distribution without error have a long irregular tail of errors on sparse and on dense strings.",
    "Liu's thesis, figures 3.24, 3.25, 3.27 and 3.28",
    "share of replicates that must err outside the training distribution",
    15,
    "15 replicates without in-distribution error: shown where 85 % of all replicates err",
    irregular_tail,
    "flipflop/verdicts",
    of_share=True,
)
R1_ITERATES = Claim(
    "R1-iterates",
    "Errors on sparse strings rise and fall over the steps of one training, though the training distribution is read all the while.",
    "Liu's thesis, section 3.5.6.2, figures 3.24 and 3.27; a factor of 10 and 1 % in distribution are thresholds of ours",
    "share of replicates in which sparse errors must rise again at least 10 times",
    15,
    "15 replicates without in-distribution error: shown where errors come back in 85 % of them",
    errors_come_back,
    "flipflop/verdicts",
    of_share=True,
)
R2 = Claim(
    "R2",
    "A one-layer LSTM of width 128, trained on a fraction of the transformer's samples (a twentieth), makes no error on sparse or dense "
    "strings in any replicate.",
    "Liu's thesis, section 3.5.6.2, 100 of 100 replicates",
    "share of replicates without an error",
    15,
    "15 replicates: an LSTM of which 10 % of the replicates err is caught",
    lstm_never_errs,
    "flipflop/verdicts",
    paper_value=1.0,
    of_share=True,
)
