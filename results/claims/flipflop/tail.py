"""R1, R2: what a transformer's tail is, and that an LSTM has none (card F2, F4)."""

from results.claims.claim import NOT_RUN, Claim, Finding, Terms, decide, settle
from results.claims.compare import percent
from results.claims.evidence import Condition, Evidence
from results.claims.flipflop.read_sets import (
    baseline,
    dense_set,
    gate_in_distribution,
    in_distribution,
    p_ignore_of_sets,
    sparse_set,
    training_p_ignore,
)
from results.claims.requirements import require
from results.rows.summary import Replicate
from results.statistics.intervals import clopper_pearson

DECADE = 10.0


def irregular_tail(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Of the baseline's replicates without an in-distribution error: how many err elsewhere, and how far apart they lie."""
    base = baseline(evidence)
    inside, sparse, dense = in_distribution(evidence), sparse_set(evidence), dense_set(evidence)
    require([base], [inside, sparse, dense], needs)
    gate_in_distribution(evidence, base, terms.gate)
    perfect = Condition(base.name, base.settings, tuple(each for each in base.replicates if each.error(inside) == 0))
    require([perfect], [sparse, dense], needs)
    of = len(perfect.replicates)
    wrong = of - perfect.joint_zeros([sparse, dense])[0]
    on_sparse, on_dense = (int((perfect.errors(name) > 0).sum()) for name in (sparse, dense))
    share = clopper_pearson(wrong, of)
    least, most = spread(perfect, sparse)
    measured = (
        f"{percent(wrong, of)} of the replicates without in-distribution error err: {on_sparse} on {sparse}, {on_dense} on {dense}; "
        f"the worst errs {least:.3g} to {most:.3g} times as often on {sparse} as the best"
    )
    return decide(
        share.low > terms.value and on_sparse > 0 and on_dense > 0 and least >= DECADE,
        share.high < terms.value or 0 in (on_sparse, on_dense) or most < DECADE,
        measured,
        f"more than {terms.value:.0%} must err, on both sets, with at least a factor of 10 between best and worst on {sparse}",
    )


def spread(condition: Condition, name: str) -> tuple[float, float]:
    """Largest error rate divided by the smallest: the least and the most that the 95 % intervals of the two allow."""

    def rate(each: Replicate) -> float:
        return each.scores[name].rate

    scored = [each for each in condition.replicates if name in each.scores]
    best, worst = min(scored, key=rate).scores[name], max(scored, key=rate).scores[name]
    return worst.low / best.high, worst.high / best.low if best.low else float("inf")


def lstm_never_errs(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Every replicate of the LSTM, on every set jointly. One that errs refutes it; a diverged one errs."""
    found = [each for each in evidence.conditions if _is_lstm(each, training_p_ignore(evidence))]
    if not found:
        settle(NOT_RUN, "no condition is a one-layer LSTM trained on the baseline's data")
    lstm = max(found, key=lambda each: len(each.replicates))
    names = list(p_ignore_of_sets(evidence))
    sparse_set(evidence), dense_set(evidence)
    zero, of = lstm.joint_zeros(names)
    reason = f"every replicate must be without error on {', '.join(names)}"
    if zero == of:
        require([lstm], names, needs)
    return decide(zero == of, zero < of, f"{percent(zero, of)} without an error", reason)


def _is_lstm(condition: Condition, trained: float) -> bool:
    wanted = {"model.name": "lstm", "model.layers": 1, "task.name": "flipflop", "task.p_ignore": trained}
    return all(condition.settings.get(name) == value for name, value in wanted.items())


R1 = Claim(
    "R1",
    "Transformers that read their training distribution without error have a long irregular tail of errors on sparse and on dense strings.",
    "Liu's thesis, figures 3.24, 3.25, 3.27 and 3.28 (card F2)",
    "share of replicates that must err outside the training distribution",
    15,
    "15 replicates without in-distribution error: shown where 85 % of all replicates err",
    irregular_tail,
    "flipflop/verdicts",
)
R2 = Claim(
    "R2",
    "A one-layer LSTM of 133 thousand parameters, trained on 20 times fewer samples, makes no error on any set in any replicate.",
    "Liu's thesis, section 3.5.6.2, 100 of 100 replicates (card F4)",
    "share of replicates without an error",
    15,
    "15 replicates: an LSTM of which 10 % of the replicates err is caught",
    lstm_never_errs,
    "flipflop/verdicts",
)
