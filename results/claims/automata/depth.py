"""A1 and what follows from it: how many layers a semiautomaton needs (Liu's thesis, figures 3.5a, 3.15 and 3.16)."""

import itertools
import math
from typing import NamedTuple

from results.claims.automata.groups import MEMORY, NON_ABELIAN, RANKS, arms, automaton, best
from results.claims.claim import NOT_RUN, PRECONDITION, Claim, Finding, Terms, decide, settle
from results.claims.compare import exceeds, higher, median_accuracy
from results.claims.evidence import Condition, Evidence
from results.claims.requirements import by_place, in_distribution_set, require
from results.rows.plural import counted

SEMIAUTOMATA = 19  # of the thesis
DEEPEST = 16  # of the thesis
BEST_OF = 20  # replicates, of which the thesis gives the best
SOLVED = 0.99  # accuracy that counts as solved; ours, where a claim's value is not an accuracy
Cells = dict[str, dict[int, Condition]]


def by_depth(evidence: Evidence) -> Cells:
    """Transformers by automaton and number of layers, as `cells_of`. Settles a claim also where each automaton has one depth."""
    cells = cells_of(evidence)
    if not any(len(row) > 1 for row in cells.values()):
        settle(NOT_RUN, "no automaton is simulated at more than one depth")
    return cells


def cells_of(evidence: Evidence) -> Cells:
    """Transformers by automaton and number of layers. Settles a claim where they have several lengths or learning rates."""
    transformers = [condition for condition in arms(evidence) if condition.settings.get("task.observe") == "state"]
    for option in ("task.length", "train.lr"):
        values = {condition.settings[option] for condition in transformers}
        if len(values) > 1:
            settle(
                NOT_RUN, f"the conditions have {len(values)} values of {option}: the claim is of one, chosen by the monitor set"
            )
    transformers.sort(key=lambda condition: condition.settings["model.layers"])
    cells: Cells = {}
    for (name, depth), condition in by_place(transformers, _place, "are transformers of one automaton and depth").items():
        cells.setdefault(name, {})[depth] = condition
    return cells


def _place(condition: Condition) -> tuple[str, int]:
    return automaton(condition), condition.settings["model.layers"]


def some_depth_suffices(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge whether, for every automaton, the best replicate of some depth reaches `value`.

    An automaton for which none does refutes the claim if all depths of the thesis were run, each with as many replicates.
    """
    cells, name = by_depth(evidence), in_distribution_set(evidence)
    require([condition for row in cells.values() for condition in row.values()], [name], needs)
    parts, reached, missed, open_ends = [], [], [], []
    for machine, row in cells.items():
        depth = max(row, key=lambda depth: (best(row[depth], name), -depth))
        enough = needed(row, name, terms.value)
        reached.append(enough is not None)
        if enough is None:
            missed.append(machine)
            if any(layers not in row for layers in range(1, DEEPEST + 1)):
                open_ends.append(machine)
        middle = median_accuracy(row[depth].wrong(name))
        parts.append(
            f"{machine} {best(row[depth], name):.3f} with {counted(depth, 'layer')} (median [{middle.low:.3f}, {middle.high:.3f}]; "
            + ("none enough)" if enough is None else f"enough: {enough})")
        )
    if missed and missed == open_ends:
        settle(
            NOT_RUN,
            f"{', '.join(missed)} {'is' if len(missed) == 1 else 'are'} simulated at no depth that was run, and not all up to "
            f"{DEEPEST} layers were",
            "; ".join(parts),
        )
    if all(reached) and len(reached) < SEMIAUTOMATA:
        settle(
            NOT_RUN,
            f"each of {len(reached)} is simulated, and the claim is of all {SEMIAUTOMATA} semiautomata of the thesis",
            "; ".join(parts),
        )
    return decide(
        all(reached),
        any(
            min(len(cell.wrong(name)) for cell in cells[machine].values()) >= BEST_OF
            for machine in missed
            if machine not in open_ends
        ),
        "; ".join(parts),
        f"the best replicate of some depth must reach {terms.value:g}: {sum(reached)} of {len(reached)} do; fewer than "
        f"{BEST_OF} replicates, the thesis' number, refute nothing",
    )


def deeper_is_better(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge whether non-abelian groups are simulated better with most layers than with fewest, with which they are not solved.

    A group that no replicate with most layers solves is not compared, since it is not simulated there, unless the median with
    fewest layers solves it, which refutes the claim. At least two groups, and half of them, must be compared.
    """
    cells, name = by_depth(evidence), in_distribution_set(evidence)
    groups = {machine: row for machine, row in cells.items() if NON_ABELIAN.match(machine) and len(row) > 1}
    if not groups:
        settle(NOT_RUN, "no non-abelian group is simulated at more than one depth")
    ends = {machine: (row[min(row)], row[max(row)]) for machine, row in groups.items()}
    require([condition for pair in ends.values() for condition in pair], [name], needs)
    shallow = {machine: median_accuracy(few.wrong(name), 1 - 0.05 / len(ends)) for machine, (few, _) in ends.items()}
    pairs = {machine: pair for machine, pair in ends.items() if best(pair[1], name) >= SOLVED or shallow[machine].low >= SOLVED}
    unsolved = [
        f"{machine} is not compared: best {best(many, name):.3f} with {max(groups[machine])}"
        for machine, (_, many) in ends.items()
        if machine not in pairs
    ]
    if len(pairs) < max(2, len(groups) / 2):
        settle(
            PRECONDITION,
            f"{len(pairs)} of {len(groups)} groups are solved with most layers (the best replicate has {SOLVED:g} of the "
            "states right); two must be, and half of all",
            "; ".join(unsolved),
        )
    ratios = {
        machine: exceeds(few.wrong(name), many.wrong(name), terms.value, 1 - 0.05 / len(pairs))
        for machine, (few, many) in pairs.items()
    }
    lows, highs = higher(ratios.values())
    return decide(
        lows and all(shallow[machine].high < SOLVED for machine in pairs),
        highs or any(shallow[machine].low >= SOLVED for machine in pairs),
        "; ".join(
            [
                f"{machine} with {counted(min(groups[machine]), 'layer')} errs {ratio} as much as with {max(groups[machine])}"
                for machine, ratio in ratios.items()
            ]
            + unsolved
        ),
        "P is the chance that a replicate with fewest layers errs more than one with most, and must lie above 1/2 for every "
        f"group that most layers solve; with fewest layers the median must have less than {SOLVED:g} of the states right",
    )


def seeds_differ(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge whether, in some condition, the best of 20 replicates is `value` above the median one.

    Of more than 20, the best of 20 is the one that a 20th of them reach. A single depth can show that there is such a condition, and
    not that there is none.
    """
    cells, name = cells_of(evidence), in_distribution_set(evidence)
    every = [condition for row in cells.values() for condition in row.values()]
    if not every:
        settle(NOT_RUN, "no transformer simulates an automaton whose whole state is its label")
    require(every, [name], needs)
    gaps = []
    for condition in every:
        middle, top = median_accuracy(condition.wrong(name), 1 - 0.05 / len(every)), best_of_twenty(condition, name)
        gaps.append((top - middle.high, top - middle.low, top, condition))
    least, _, highest, where = max(gaps, key=lambda gap: gap[0])
    most = max(high for _, high, *_ in gaps)
    swept = any(len(row) > 1 for row in cells.values())
    return decide(
        least >= terms.value,
        most < terms.value and swept and all(len(condition.wrong(name)) >= BEST_OF for condition in every),
        f"{where.name}: the best replicate has an accuracy of {highest:.3f}, at least {least:.3f} above the median",
        f"at some depth of some automaton the best must be {terms.value:g} above the median; {len(every)} are compared, at 5 % "
        f"together; fewer than {BEST_OF} replicates, the thesis' number, refute nothing{'' if swept else ', nor does one depth'}",
    )


def best_of_twenty(condition: Condition, name: str) -> float:
    """Accuracy of the best replicate; of more than 20, that which a 20th of them reach."""
    accuracies = sorted(condition.accuracies(name), reverse=True)
    return float(accuracies[math.ceil(len(accuracies) / BEST_OF) - 1])


class Depths(NamedTuple):
    """The least and the most that the smallest sufficient number of layers can be: numbers that were not run may suffice."""

    low: int
    high: float  # infinity where none that was run suffices

    def __str__(self) -> str:
        if math.isinf(self.high):
            return f"more than {self.low - 1}"
        return f"{self.high:.0f}" if self.low == self.high else f"{self.low}–{self.high:.0f}"


def memory_is_easiest(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge whether memory-only automata need `value` layers fewer than non-abelian groups, and D8 than Q8.

    The memory-only ones must be solved at some depth, and not all automata with fewest layers: else there is no order.
    """
    cells, name = by_depth(evidence), in_distribution_set(evidence)
    easy = [machine for machine in cells if MEMORY.match(machine)]
    hard = [machine for machine in cells if NON_ABELIAN.match(machine)]
    pairs = [(one, other) for one in hard for other in easy]
    if not pairs:
        settle(NOT_RUN, "the claim needs a Dyck language or a gridworld, and a non-abelian group")
    if {"D8", "Q8"} <= cells.keys():
        pairs.append(("Q8", "D8"))
    require([condition for machine in (*easy, *hard) for condition in cells[machine].values()], [name], needs)
    fewest = {machine: fewest_layers(cells[machine], name, SOLVED) for machine in (*easy, *hard)}
    for machine in easy:
        if math.isinf(fewest[machine].high):
            settle(
                PRECONDITION, f"no replicate on {machine} has {SOLVED:g} of the states right at any depth: nothing is easy here"
            )
    if all(depths.high == min(cells[machine]) for machine, depths in fewest.items()):
        settle(PRECONDITION, f"with fewest layers all automata have {SOLVED:g} of the states right: there is no order")
    gaps = {(one, other): (fewest[one].low - fewest[other].high, fewest[one].high - fewest[other].low) for one, other in pairs}
    against = [f"{one} needs no more than {other}" for (one, other), (_, most) in gaps.items() if most < terms.value]
    shown = sum(least >= terms.value for least, _ in gaps.values())
    return decide(
        shown == len(gaps),
        bool(against),
        "; ".join(
            [
                f"the order is shown in {shown} of {len(gaps)} comparisons and reversed in {len(against)}",
                *against,
                "layers that suffice: " + ", ".join(f"{machine} {depths}" for machine, depths in fewest.items()),
            ]
        ),
        f"layers suffice if the best replicate has {SOLVED:g} of the states right; the harder one of each two automata must need "
        f"more of them, by at least {terms.value:g}; a number of layers that was not run may suffice",
    )


def fewest_layers(cells: dict[int, Condition], name: str, value: float) -> Depths:
    """The smallest sufficient number of layers: at least the first that was not run, if it is below those that suffice."""
    enough = needed(cells, name, value)
    low = next(layers for layers in itertools.count(1) if layers not in cells or layers == enough)
    return Depths(low, enough or math.inf)


def needed(cells: dict[int, Condition], name: str, value: float) -> int | None:
    """The fewest layers whose best replicate reaches `value`; None where none does."""
    return next((depth for depth in sorted(cells) if best(cells[depth], name) >= value), None)


_TEN = "10 replicates: a depth at which 15 % of them succeed shows one that does"
_A1 = "automata/a1"
A1 = Claim(
    "A1",
    "Every one of the 19 semiautomata is simulated at some depth: the best of 20 replicates has over 99 % of the states right.",
    "Liu's thesis, figures 3.5a and 3.15",
    "accuracy that the best replicate of some depth must reach",
    10,
    _TEN,
    some_depth_suffices,
    _A1,
    paper_value=0.99,
    of_share=True,
)
A1_DEPTH = Claim(
    "A1-depth",
    "Non-abelian groups need depth: with most layers they are simulated better than with fewest.",
    "Liu's thesis, figures 3.15 and 3.16",
    "factor by which the errors with fewest layers must be above those with most",
    10,
    RANKS,
    deeper_is_better,
    _A1,
)
A1_SEEDS = Claim(
    "A1-seeds",
    "The best of 20 replicates can be ten points or more above the median one.",
    "Liu's thesis, figure 3.15 against 3.16",
    "accuracy by which the best must be above the median somewhere",
    10,
    "20 replicates: a gap where 32 cells are compared and the best is alone",
    seeds_differ,
    _A1,
    of_share=True,
)
A1_ORDER = Claim(
    "A1-order",
    "Automata that only remember (Dyck, gridworld) need fewer layers than non-abelian groups, and D8 than Q8.",
    "Liu's thesis, section 3.4.5.1 and figure 3.15",
    "layers that the harder one must need more than the easier one",
    BEST_OF,
    "20 replicates: a depth at which 8 % of them succeed shows one that does",
    memory_is_easiest,
    _A1,
)
