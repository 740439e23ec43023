"""DY1 and DY2: how much attention varies between replicates (Li's thesis, section 2.2.3.2).

The mean is over pairs of replicates; its interval resamples replicates, since pairs share them.
"""

from collections.abc import Mapping

import numpy as np

from results.claims.claim import NOT_RUN, TOO_FEW, Claim, Finding, Terms, decide, settle
from results.claims.compare import above, between
from results.claims.dyck.arms import MINIMAL, RESAMPLES, arms, gate, middle_95
from results.claims.evidence import Condition, Evidence
from results.rows.probe_values import OfPair
from results.statistics.intervals import Floats

STANDARD = "transformer"


def random_variation(tokens: int) -> float:
    """Mean ‖A - B‖_F² of two causal matrices whose rows are uniform on the simplex, Σ_n 2(n - 1)/(n(n + 1)) over rows of n weights."""
    return sum(2 * (n - 1) / (n * (n + 1)) for n in range(1, tokens + 1))


def varies_more_than_the_minimal_layer(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge whether attention varies more in each standard model than with the minimal first layer."""
    standard, minimal = arms(evidence, STANDARD), arms(evidence, MINIMAL)
    if not standard or not minimal:
        settle(NOT_RUN, "a standard transformer and a minimal first layer must both be there")
    gate(evidence, [*standard, *minimal], "", needs)
    random = np.random.default_rng(0)
    below, mean = resampled(evidence, minimal[0], needs, random)
    texts, ratios = [f"{minimal[0].name}: {mean:.3g}"], []
    for each in standard:
        values, own = resampled(evidence, each, needs, random)
        ratios.append(middle_95(values / below))
        texts.append(f"{each.name}: {own:.3g}, {own / mean:.2g} times {between(ratios[-1])}")
    return decide(
        *above(ratios, terms.value),
        "; ".join(texts),
        f"each standard model must vary more than {terms.value:g} times as much, the whole interval, and refutes below",
    )


def varies_more_than_a_part_of_random(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge whether each standard model varies more than `value` times as much as random attention, which is no upper bound."""
    standard = arms(evidence, STANDARD) or settle(NOT_RUN, "no condition is a standard transformer")
    gate(evidence, standard, "", needs)
    random = np.random.default_rng(0)
    texts, shares = [], []
    for each in standard:
        baseline = random_variation(2 * each.settings["task.types"] * each.settings["task.depth"] + 1)
        values, mean = resampled(evidence, each, needs, random)
        shares.append(middle_95(values / baseline))
        texts.append(f"{each.name}: {mean:.3g}, {mean / baseline:.2f} {between(shares[-1])} of {baseline:.2f}")
    return decide(
        *above(shares, terms.value),
        "; ".join(texts),
        f"each must be more than {terms.value:g} of random attention's, the whole interval, and refutes below",
    )


def resampled(evidence: Evidence, condition: Condition, needs: int, random: np.random.Generator) -> tuple[Floats, float]:
    """The mean variation over pairs of resampled replicates, [RESAMPLES], and of the replicates themselves.

    It is that of the last layer on the fixed string. A replicate that is drawn twice makes no pair with itself.
    """
    layer = condition.settings.get("model.layers", 1) - 1
    pairs = evidence.measured_by_pair("variation")
    keys = [each.key for each in condition.replicates if each.status == "finished"]
    values, missing = np.zeros((len(keys), len(keys))), 0
    for i, one in enumerate(keys):
        for j in range(i):
            found: Mapping[OfPair, float] = pairs.get(frozenset((one, keys[j])), {})
            heads = [value for (at, _, item), value in found.items() if at == layer and item == "fixed"]
            missing += not heads
            values[i, j] = values[j, i] = np.mean(heads) if heads else 0.0
    whole = len(keys) * (len(keys) - 1) // 2
    if missing == whole:
        settle(
            NOT_RUN,
            f"{condition.name} has no variation rows: manyseeds probe STORE --probe variation, with keep: all in its study",
        )
    if missing or len(keys) < needs:
        settle(
            TOO_FEW,
            f"{whole - missing} of {whole} pairs of {condition.name} have variation rows; the claim needs {needs} replicates",
        )
    counts = random.multinomial(len(keys), np.full(len(keys), 1 / len(keys)), size=RESAMPLES).astype(np.float64)
    sums = np.einsum("ri,ij,rj->r", counts, values, counts, optimize=True)
    return sums / (counts.sum(-1) ** 2 - (counts**2).sum(-1)), float(values.sum() / (2 * whole))


_SOURCE = "Li 2025 (CMU-ML-25-120), section 2.2.3.2"
DY1 = Claim(
    "DY1",
    "Attention varies far more between standard models than between models with a minimal first layer.",
    _SOURCE,
    "factor to be exceeded; 9.2 and 9.5 in the thesis",
    40,
    "40 replicates: shown where the factor is 3 and the variation of pairs spreads by its own size",
    varies_more_than_the_minimal_layer,
    "dyck/variation",
)
DY2 = Claim(
    "DY2",
    "Attention varies at least half as much between standard models as between random attention matrices (thesis: nearly as much).",
    _SOURCE,
    "part of random attention's variation to be exceeded; 0.77 and 0.80 in the thesis",
    40,
    "40 replicates: shown where the part is 0.7 and the variation of pairs spreads by its own size",
    varies_more_than_a_part_of_random,
    "dyck/variation",
    of_share=True,
)
