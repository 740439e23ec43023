"""T0: the least error of a model that sees only the last n tokens (Liu's thesis, section 3.5)."""

from results.claims.claim import NOT_RUN, PRECONDITION, Claim, Finding, Part, Terms, decide_all, settle
from results.claims.compare import between
from results.claims.evidence import Condition, Evidence
from results.claims.flipflop.read_sets import dense_set, p_ignore_of_sets, sparse_set
from results.claims.requirements import require
from results.statistics.intervals import quantile_interval

VISIBLE = 400  # expected errors, which vary by 5 % from one sample of strings to another


def floor(p_ignore: float, context: int, length: int, symbols: int = 2) -> float:
    """Least expected error rate on FFL(length, p_ignore) from the last `context` tokens, the `r` that asks included.

    m = ceil((context - 1)/2) earlier instructions leave evidence: whole pairs, and of the oldest its symbol alone where `context` is
    even. Without evidence of a write or read the best guess fails for 1 - 1/symbols; a lone symbol is the wanted one unless its
    instruction is an ignore, so it counts as a whole pair. The first instruction is a write, so reads among the first m + 1 never
    fail; the last instruction is always a read. `length` in tokens.
    """
    m, instructions = context // 2, length // 2
    read = (1 - p_ignore) / 2
    blind = max(instructions - 2 - m, 0) * read + (m < instructions - 1)
    return (1 - 1 / symbols) * p_ignore**m * blind / ((instructions - 2) * read + 1)


def limited_context_fails(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge whether the median error of every model with a limited context reaches `value` times its floor, on sparse and on dense strings.

    A model that guesses is above every floor, so dense errors must be fewer than the sparse floor. A floor of fewer than VISIBLE errors is
    not asked for: the strings of a set, which all replicates share, may have fewer by chance.
    """
    seeing = [(tokens, condition) for condition in evidence.conditions if (tokens := _context(condition))]
    if not seeing:
        settle(NOT_RUN, "no condition's model has an option `context`, the number of last tokens that it sees")
    names = [sparse_set(evidence), dense_set(evidence)]
    require([condition for _, condition in seeing], names, needs)
    confidence = 1 - 0.05 / (len(names) * len(seeing))
    parts = []
    for tokens, limited in seeing:
        length, symbols = limited.settings["task.length"], limited.settings.get("task.symbols", 2)
        floors = [floor(p_ignore_of_sets(evidence)[name], tokens, length, symbols) for name in names]
        medians = [quantile_interval(limited.errors(name), 0.5, confidence) for name in names]
        scored = [[each.scores[name].reads for each in limited.replicates if name in each.scores] for name in names]
        reads = [max(counts, default=0) for counts in scored]  # none where all have diverged
        rows = [row for row, n in zip(zip(names, floors, medians, strict=True), reads, strict=True) if row[1] * n >= VISIBLE]
        if not rows or rows[0][0] != names[0]:
            settle(
                NOT_RUN,
                f"the floor of {limited.name} on {names[0]} is {floors[0]:.3g} of {reads[0]:,} reads, fewer than {VISIBLE} errors",
            )
        if medians[1].high >= floors[0]:
            settle(
                PRECONDITION,
                f"the median error of {limited.name} on {names[1]}, {between(medians[1])}, is not below the floor on {names[0]}, "
                f"{floors[0]:.3g}: few dense errors are part of the claim, and a model that guesses is above any floor",
            )
        measured = ", ".join(
            f"{name} {between(median)} with floor {least:.3g}"
            for name, least, median in zip(names, floors, medians, strict=True)
        )
        parts.append(
            Part(
                all(median.low >= terms.value * least for _, least, median in rows),
                any(median.high < terms.value * least for _, least, median in rows),
                f"{limited.name}: {measured}",
            )
        )
    return decide_all(
        parts,
        "",
        f"the median error of every model must be at least {terms.value:g} of the floor of its tokens, on each set where the floor is "
        f"at least {VISIBLE} errors",
    )


def _context(condition: Condition) -> int | None:
    """Tokens that a model sees, where it has an option of that name."""
    return condition.settings.get("model.context")


T0 = Claim(
    "T0",
    "A model that sees only the last n tokens errs on at least about p_ignore^ceil((n-1)/2) / 2 of the reads: many sparse, few dense ones.",
    "Liu's thesis, section 3.5.3, in words; the bound is ours",
    "part of the floor that the median error must reach",
    8,
    "8 replicates of one model: a median of which the interval is bounded on both sides",
    limited_context_fails,
    "flipflop/context",
    of_share=True,
)
