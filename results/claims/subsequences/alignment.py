"""S6: a traced pair brings its answer back as often as the corpus has it there (after Sun et al. 2025, figure 6)."""

from collections.abc import Mapping

import numpy as np

from results.claims.claim import NOT_RUN, PRECONDITION, Claim, Finding, Terms, decide, settle
from results.claims.evidence import Condition, Evidence
from results.claims.requirements import in_distribution_set, require, require_probed
from results.rows.probe_values import Name, by_item, parts
from results.statistics.intervals import quantile, quantile_interval

PROBE = "alignment"
IN_PAPER = 0.72  # figure 6
PAIRS = 10  # of a replicate; of 7 pairs one in twenty has a correlation above the paper's although nothing ties them
LEARNED = 0.05  # largest error above that of the best answers at which pairs count as learned


def aligned(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge the correlation of S_rep and P(answer | pair) in every condition, by the exact interval of its median over replicates.

    It is Pearson's over the pairs of a replicate, with one point for each pair.
    """
    compared = evidence.of_task("associations")
    if not compared:
        settle(NOT_RUN, "no condition is on the task associations")
    name = in_distribution_set(evidence)
    require(compared, [name], needs)
    require_probed(evidence, compared, PROBE, needs)
    intervals, parts = [], []
    for condition in compared:
        rows = [values for _, values in evidence.probed(condition, PROBE)]
        _learned(condition, name, rows[0])
        if (fewest := min(len(column(values, "exact")) for values in rows)) < PAIRS:
            settle(NOT_RUN, f"{condition.name} has {fewest} pairs, and a correlation over them needs {PAIRS}: set task.pairs")
        r = np.array([pearson(values) for values in rows])
        interval = quantile_interval(r, 0.5, 1 - 0.05 / len(compared), least=-1.0)
        low, high = interval.low, min(interval.high, 1.0)
        planted = np.mean([np.mean(column(values, "planted")) for values in rows])
        intervals.append((low, high))
        parts.append(
            f"{condition.name}: median r = {quantile(r, 0.5):.3f} [{low:.3f}, {high:.3f}] over {len(r)} replicates of "
            f"{len(column(rows[0], 'exact'))} pairs, {min(r):.3f} to {max(r):.3f}; {planted:.1%} of the traced tokens are the pair's"
        )
    return decide(
        all(low > terms.value for low, _ in intervals),
        any(high < terms.value for _, high in intervals),
        "; ".join(parts),
        f"S_rep of the traced pair and the exact P(answer | pair in the string) must correlate above {terms.value:g}, by the interval of "
        f"the median replicate; the paper has {IN_PAPER:g}",
    )


def pearson(values: Mapping[Name, float]) -> float:
    """Correlation of S_rep and P over the pairs of a replicate. Settles the claim where P is the same for all."""
    said, exact = column(values, "srep"), column(values, "exact")
    if not len(said) == len(exact) > 0:
        settle(NOT_RUN, f"rows of the probe {PROBE} are missing for some pairs: probe the study again")
    if np.ptp(exact) == 0:
        settle(NOT_RUN, "P(answer | pair) is the same for all pairs: set task.spread")
    return pearson_r(said, exact)


def pearson_r(said: np.ndarray, exact: np.ndarray) -> float:
    """Pearson's correlation over pairs whose P differs; 0 where S_rep is the same for all."""
    return float(np.corrcoef(said, exact)[0, 1]) if np.ptp(said) > 0 else 0.0


def column(values: Mapping[Name, float], name: str) -> np.ndarray:
    """A value of the probe for each pair, in the order of the pairs."""
    items = {int(gaps[0]): value for (*_, item), value in values.items() if (gaps := parts(item, f"pair={{n}} {name}"))}
    return np.array([items[pair] for pair in sorted(items)])


def _learned(condition: Condition, name: str, values: Mapping[Name, float]) -> None:
    """Settle the claim where the median replicate is not nearly as right as can be: it has not learned the corpus."""
    best = by_item(values).get("least error")
    if best is None:
        settle(NOT_RUN, f"rows of the probe {PROBE} lack the least error: probe the study again")
    error = quantile(condition.errors(name), 0.5)
    if not error <= best + LEARNED:
        settle(
            PRECONDITION,
            f"the median replicate of {condition.name} errs in {error:.1%} of the strings of {name}, where {best:.1%} can't be told: its "
            f"pairs are not learned, within {LEARNED:.0%}",
        )


S6 = Claim(
    "S6",
    "How often a traced pair brings its answer back correlates with how often the corpus has that answer behind the pair.",
    f"Sun et al. 2025, figure 6: Pearson {IN_PAPER:g}, of a language model and its corpus",
    "correlation that the median replicate's must be above",
    10,
    "10 replicates: the exact interval of their median has two ends",
    aligned,
    "subsequences/alignment",
    study_reduced=True,
    paper_value=IN_PAPER,
    of_share=True,
)
