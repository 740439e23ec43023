"""R4, R5: other training data against more of everything (card F8, F9)."""

from results.claims.claim import NOT_RUN, Claim, Finding, Terms, decide, settle
from results.claims.compare import exceeds, percent, share_below
from results.claims.evidence import Condition, Evidence
from results.claims.flipflop.read_sets import (
    baseline,
    dense_set,
    gate_in_distribution,
    p_ignore_of_sets,
    sparse_set,
    training_p_ignore,
)
from results.claims.requirements import gate_tail, require

THESIS_MIXTURE = {0.9, 0.98, 0.1}
FACTOR = 10.0  # "by far", "orders of magnitude": at least one
SIZE = ("model.layers", "model.width", "model.heads", "model.head_dim")


def mixture(evidence: Evidence, base: Condition) -> Condition:
    """The baseline trained on several p_ignore on both sides of its own; the thesis' three of them before others."""
    found = [each for each in evidence.beside(base, ["task.p_ignore"]) if isinstance(each.settings["task.p_ignore"], list)]
    found = [each for each in found if _around(each.settings["task.p_ignore"], training_p_ignore(evidence))]
    if not found:
        settle(NOT_RUN, "no condition is the baseline trained on a mixture of sparse and dense strings")
    return min(found, key=lambda each: (set(each.settings["task.p_ignore"]) != THESIS_MIXTURE, -len(each.replicates)))


def rare_strings_help_most(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Mixture against baseline: median at least a factor below on each set, and a share without error not below the paper's."""
    base, sets = baseline(evidence), (sparse_set(evidence), dense_set(evidence))
    mixed, every = mixture(evidence, base), list(p_ignore_of_sets(evidence))
    require([base, mixed], every, needs)
    gate_in_distribution(evidence, base, terms.gate)
    for name in sets:
        gate_tail(base, name)
    above = {name: exceeds(base.errors(name), mixed.errors(name), FACTOR, 1 - 0.05 / len(sets)) for name in sets}
    zero, of = mixed.joint_zeros(every)
    p = share_below(zero, of, terms.value, terms.of)
    parts = ", ".join(f"{found} on {name}" for name, found in above.items())
    return decide(
        all(found.interval.low > 0.5 for found in above.values()) and p >= 0.05,
        any(found.interval.high < 0.5 for found in above.values()) or p < 0.05,
        f"{percent(zero, of)} of the mixture's replicates without an error; the baseline's median error is above the mixture's by {parts}",
        f"P is the chance that a baseline replicate errs over 10 times as often, and must lie above 1/2 on each set; the share without "
        f"error must not lie below the paper's (p = {p:.2g})",
    )


def resources_trade(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Most steps against fewest, fresh and on a pool: fewer sparse errors, more dense ones; these and larger models far above R4."""
    base, sparse, dense = baseline(evidence), sparse_set(evidence), dense_set(evidence)
    axes = [pair for pair in (_fresh(evidence, base), _pool(evidence, base)) if pair]
    if not axes:
        settle(NOT_RUN, "no two conditions differ in train.steps alone, on fresh strings or on a fixed pool")
    mixed = mixture(evidence, base)
    larger = [each for each in evidence.beside(base, SIZE) if _larger(each, base)]
    scaled = [most for _, most in axes] + larger
    require([*(each for pair in axes for each in pair), *larger, base, mixed], [sparse, dense], needs)
    gate_in_distribution(evidence, base, terms.gate)
    for reference, _ in axes:
        gate_tail(reference, sparse)
    confidence = 1 - 0.05 / (2 * len(axes))
    better = [exceeds(few.errors(sparse), most.errors(sparse), 1, confidence) for few, most in axes]
    worse = [exceeds(most.errors(dense), few.errors(dense), 1, confidence) for few, most in axes]
    far = [exceeds(each.errors(sparse), mixed.errors(sparse), terms.value, 1 - 0.05 / len(scaled)) for each in scaled]
    measured = "; ".join(
        f"with train.steps {_steps(few)} -> {_steps(most)}{' on a fixed pool' if few.settings['train.pool'] else ''} the median error "
        f"falls by {b} on {sparse} and grows by {w} on {dense}"
        for (few, most), b, w in zip(axes, better, worse, strict=True)
    )
    least = min(range(len(scaled)), key=lambda i: far[i].chance)
    tests = [*better, *worse, *far]
    return decide(
        all(found.interval.low > 0.5 for found in tests),
        any(found.interval.high < 0.5 for found in tests),
        f"{measured}; {scaled[least].name}, the nearest to the mixture, is above it by {far[least]} on {sparse}",
        f"sparse errors must fall and dense ones grow, and sparse ones stay over {terms.value:g} times the mixture's: each P above 1/2",
    )


def _around(mixed: list[float], trained: float) -> bool:
    return min(mixed) < trained < max(mixed)


def _fresh(evidence: Evidence, base: Condition) -> tuple[Condition, Condition] | None:
    found = [each for each in evidence.beside(base, ["train.steps"]) if _steps(each) > _steps(base)]
    return (base, max(found, key=_steps)) if found else None


def _pool(evidence: Evidence, base: Condition) -> tuple[Condition, Condition] | None:
    pools = [each for each in evidence.beside(base, ["train.pool", "train.steps"]) if each.settings["train.pool"]]
    pairs = [(few, most) for few in pools for most in evidence.beside(few, ["train.steps"]) if _steps(most) > _steps(few)]
    return max(pairs, key=lambda pair: _steps(pair[1]) / _steps(pair[0])) if pairs else None


def _steps(condition: Condition) -> int:
    return condition.settings["train.steps"]


def _larger(one: Condition, base: Condition) -> bool:
    return all(one.settings[name] >= base.settings[name] for name in ("model.layers", "model.width"))


R4 = Claim(
    "R4",
    "Training on rare strings (a mixture of p_ignore 0.9, 0.98 and 0.1) is by far the best fix: far fewer errors on each set.",
    "Liu's thesis, sections 3.5.4.1 and 3.5.6.3, 6 of 25 replicates without an error (card F8)",
    "share of replicates without an error on any set",
    15,
    "15 replicates of each: shown where a baseline replicate errs over 10 times as often as a mixture replicate in 81 % of the pairs",
    rare_strings_help_most,
    "flipflop/verdicts",
)
R5 = Claim(
    "R5",
    "More data, steps or size helps orders of magnitude less than rare strings; data and steps trade dense errors for sparse ones.",
    "Liu's thesis, figures 3.25 and 3.30 (card F9)",
    "factor that the median sparse error must stay above the mixture's",
    25,
    "25 replicates of each, two axes: a direction is shown where one condition errs more in 77 % of the pairs",
    resources_trade,
    "flipflop/resources",
)
