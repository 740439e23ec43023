"""D1: the depth that a group needs as words grow, solvable against non-solvable (theorems 11 and 13; not tested in the thesis)."""

import math

from results.claims.automata.depth import Depths, needed
from results.claims.automata.groups import NON_SOLVABLE, arms, automaton
from results.claims.claim import NOT_RUN, Claim, Finding, Terms, decide, settle
from results.claims.evidence import Condition, Evidence
from results.claims.requirements import by_place, in_distribution_set, require


def only_non_solvable_grow(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge whether the fewest layers that suffice grow more from shortest to longest words for non-solvable than for solvable groups."""
    name = in_distribution_set(evidence)
    table: dict[str, dict[int, dict[int, Condition]]] = {}
    for (machine, length, layers), condition in by_place(
        arms(evidence), _place, "have one automaton, length and depth"
    ).items():
        table.setdefault(machine, {}).setdefault(length, {})[layers] = condition
    table = {machine: rows for machine, rows in table.items() if len(rows) > 1}
    non = [machine for machine in table if NON_SOLVABLE.match(machine)]
    if not non or len(non) == len(table):
        settle(NOT_RUN, "the claim needs a solvable and a non-solvable group at several lengths")
    require([condition for rows in table.values() for row in rows.values() for condition in row.values()], [name], needs)
    ends = {
        machine: [_needed(rows[length], name, terms.value) for length in (min(rows), max(rows))]
        for machine, rows in table.items()
    }
    if lost := [machine for machine, (first, _) in ends.items() if first.high == math.inf]:
        settle(
            NOT_RUN,
            f"{', '.join(lost)} reaches {terms.value:g} at no depth even at the shortest length: nothing can be seen to grow",
        )
    growth = {machine: (last.low - first.high, last.high - first.low) for machine, (first, last) in ends.items()}
    solvable = [machine for machine in table if machine not in non]
    return decide(
        min(growth[machine][0] for machine in non) > max(growth[machine][1] for machine in solvable),
        any(growth[one][1] <= growth[other][0] for one in non for other in solvable),
        "layers that suffice from the shortest to the longest words: "
        + ", ".join(f"{machine} {first} to {last}" for machine, (first, last) in ends.items()),
        f"the depth at which the best replicate reaches {terms.value:g} must grow by more layers for {', '.join(non)} than for "
        f"{', '.join(solvable)}",
    )


def _place(condition: Condition) -> tuple[str, int, int]:
    return automaton(condition), condition.settings["task.length"], condition.settings["model.layers"]


def _needed(cells: dict[int, Condition], name: str, value: float) -> Depths:
    """The smallest depth whose best replicate reaches `value`, as far as the depths that were run tell it."""
    enough = needed(cells, name, value)
    return Depths(1 + max((depth for depth in cells if enough is None or depth < enough), default=0), enough or math.inf)


D1 = Claim(
    "D1",
    "The depth that is needed grows more with the length for non-solvable groups than for solvable ones.",
    "theorems 11 and 13 of Liu's thesis; not tested there",
    "accuracy that the best replicate must reach for a depth to suffice",
    5,
    "5 replicates: a depth at which 28 % of them succeed shows one that does",
    only_non_solvable_grow,
    "automata/depth_by_length",
    of_share=True,
)
