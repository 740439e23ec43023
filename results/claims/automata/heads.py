"""A3: heads of the last layer that look for the ends of a gridworld, from rows of the probe `boundaries` (Liu's thesis, figure 3.17)."""

from results.claims.automata.groups import arms, automaton, gate_right
from results.claims.claim import NOT_RUN, Claim, Finding, Part, Terms, decide_all, settle
from results.claims.compare import above, percent
from results.claims.evidence import Evidence
from results.claims.requirements import in_distribution_set, require, require_probed
from results.rows.probe_values import Name
from results.statistics.intervals import clopper_pearson, quantile

RIGHT = 0.99  # accuracy at the training length, below which a replicate's heads say nothing
MAJORITY = 0.5


def heads_find_the_ends(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge whether most replicates have a head in the last layer that looks at visits of the ends, and not before the latest visit.

    Its mass on visits must be `value` times that of uniform attention, and its mass before the latest visit 1/`value` times.
    """
    causal = [condition for condition in arms(evidence) if condition.settings["model.causal"]]
    gridworlds = [condition for condition in causal if automaton(condition).startswith("Grid")]
    if not gridworlds:
        settle(NOT_RUN, "no condition is the plain transformer on a gridworld")
    name = in_distribution_set(evidence)
    require(gridworlds, [name], needs)
    gate_right(gridworlds, name, RIGHT, terms.gate)
    require_probed(evidence, gridworlds, "boundaries", needs)
    parts = []
    for condition in gridworlds:
        rows = [_ratios(values) for _, values in evidence.probed(condition, "boundaries")]
        as_drawn = sum(any(on >= terms.value and before <= 1 / terms.value for on, before in heads) for heads in rows)
        best = [max(heads) for heads in rows]
        text = (
            f"{condition.name}: {percent(as_drawn, len(rows))} have such a head; the head with most on visits has {_median(best, 0)} times "
            f"uniform attention's there, and {_median(best, 1)} times before the latest (medians)"
        )
        parts.append(Part(*above([clopper_pearson(as_drawn, len(rows))], MAJORITY), text))
    return decide_all(
        parts,
        "",
        f"in more than half of the replicates one head of the last layer must have {terms.value:g} times uniform attention's mass on "
        f"visits of the ends, and 1/{terms.value:g} of its mass before the latest",
    )


def _ratios(values: dict[Name, float]) -> list[tuple[float, float]]:
    """For each head of the last layer, its mass on visits and before the latest visit, as multiples of uniform attention's."""
    even = {item: values["boundaries", None, None, f"uniform {item}"] for item in ("visits", "before")}
    last = max(layer for _, layer, _, _ in values if layer is not None)
    heads = sorted(head for _, layer, head, item in values if layer == last and item == "visits" and head is not None)
    return [
        (
            values["boundaries", last, head, "visits"] / even["visits"],
            values["boundaries", last, head, "before"] / even["before"] if even["before"] else 1.0,
        )
        for head in heads
    ]


def _median(pairs: list[tuple[float, float]], place: int) -> str:
    return f"{quantile([pair[place] for pair in pairs], 0.5):.3g}"


A3 = Claim(
    "A3",
    "Heads of the last layer look at the latest visit of a gridworld's end, and at nothing before it.",
    "Liu's thesis, figures 3.6 and 3.17, theorem 12; no statistic is printed",
    "factor by which masses must differ from uniform attention's",
    10,
    "10 replicates: that most have such a head, where 92 % of all do",
    heads_find_the_ends,
    "automata/a3",
    of_factor=True,
)
