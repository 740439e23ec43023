"""S5: the events that a wrong read is traced to act on its probability one by one (after Sun et al. 2025, proposition 2.3)."""

from collections.abc import Mapping
from statistics import median

import numpy as np

from results.claims import compare
from results.claims.claim import NOT_RUN, PRECONDITION, TOO_FEW, Claim, Finding, Terms, decide, settle
from results.claims.evidence import Condition, Evidence
from results.claims.requirements import gate_learned
from results.rows.probe_values import Name
from results.rows.summary import Replicate
from results.statistics.intervals import Floats

EXPLAINED = 0.1  # least explained share of the variance of ln P(wrong): a part of less means nothing
PROBE = "trace"


def additive(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge the share of products of pairs in what the events explain, in every condition.

    Each replicate has its median over its wrong reads; the interval is that of the median replicate.
    """
    medians = {
        condition.name: _of(evidence, condition, needs)
        for condition in evidence.conditions
        if evidence.probed(condition, PROBE)
    }
    if not medians:
        settle(
            NOT_RUN,
            "no replicate has trace rows: manyseeds trace STORE all --events 4 --method random, with keep: all in its study",
        )
    gate_learned(evidence, (condition for condition in evidence.conditions if condition.name in medians))
    confidence, texts, shares, weak = 1 - 0.05 / len(medians), [], [], []
    for name, columns in medians.items():
        share, alone, total = (compare.median(values, confidence) for values in columns)
        texts.append(
            f"{name}: the events alone explain {alone:.3f} of the variance of ln P(wrong), with products of pairs {total:.3f}; the "
            f"products' part is {share:.3f} (medians of {len(columns[0])} replicates)"
        )
        shares.append(share.interval)
        if not total.interval.low > EXPLAINED:
            weak.append(name)
    measured = "; ".join(texts)
    if weak:
        settle(
            PRECONDITION, f"the events of {', '.join(weak)} are not shown to explain {EXPLAINED:g} of the variance", measured
        )
    return decide(
        all(share.high < terms.value for share in shares),
        any(share.low > terms.value for share in shares),
        measured,
        f"products of pairs must be less than {terms.value:g} of what they and the events explain, in the median replicate",
    )


def _of(evidence: Evidence, condition: Condition, needs: int) -> tuple[Floats, Floats, Floats]:
    """Interaction, r2 and r2_pairs by replicate, each the median over its wrong reads. Settles a claim on too few replicates."""
    reads = {replicate.key: _reads(values) for replicate, values in evidence.probed(condition, PROBE)}
    sets = {name.split(" ")[0] for by_read in reads.values() for name in by_read}
    missing = sum(
        replicate.status == "missing" or (_errs(replicate, sets) and not reads.get(replicate.key))
        for replicate in condition.replicates
    )
    traced = [list(by_read.values()) for by_read in reads.values() if any("interaction" in read for read in by_read.values())]
    if missing or len(traced) < needs:
        settle(
            TOO_FEW,
            f"{len(traced)} replicates of {condition.name} have wrong reads traced to two events or more; the claim needs {needs} and "
            f"all that err: {missing} are missing",
        )
    interaction, r2, pairs = (
        np.array([median(read[name] for read in replicate_reads if name in read) for replicate_reads in traced])
        for name in ("interaction", "r2", "r2_pairs")
    )
    return interaction, r2, pairs


def _reads(values: Mapping[Name, float]) -> dict[str, dict[str, float]]:
    """The measures of additivity by wrong read (set, string and position), for reads with two events or more."""
    reads: dict[str, dict[str, float]] = {}
    for (*_, item), value in values.items():
        read, _, name = (item or "").rpartition(" ")
        if name in ("interaction", "r2", "r2_pairs"):
            reads.setdefault(read, {})[name] = value
    return {read: numbers for read, numbers in reads.items() if "r2_pairs" in numbers}


def _errs(replicate: Replicate, sets: set[str]) -> bool:
    """Whether it finished and has an error on one of the sets, so that there is something to trace."""
    return replicate.status == "finished" and any(name in replicate.scores and replicate.scores[name].errors for name in sets)


S5 = Claim(
    "S5",
    "The events that a wrong read is traced to act on ln P(wrong) one by one: products of pairs add little.",
    "Sun et al. 2025, proposition 2.3, no number printed",
    "part of the explained variance that products of pairs must stay below",
    10,
    "10 replicates: the interval of their median is from the 2nd to the 9th of them",
    additive,
    "subsequences/additivity",
    study_reduced=True,
    of_share=True,
)
