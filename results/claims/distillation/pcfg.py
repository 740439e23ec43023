"""P13 and R7: students of a teacher's checkpoints against students of its end and of labels, on grammars (Panigrahi et al. 2025)."""

import math
from collections.abc import Mapping, Sequence
from functools import partial

from results.claims.claim import NOT_RUN, PRECONDITION, Claim, Finding, Terms, decide, settle
from results.claims.compare import between
from results.claims.distillation.ideal import beside
from results.claims.distillation.strategies import LABELS, ONE_SHOT, PROGRESSIVE
from results.claims.distillation.students import Cell, cells, gate_teacher, majority, median, together
from results.claims.evidence import Evidence
from results.claims.requirements import require_each
from results.statistics.intervals import CONFIDENCE
from results.statistics.unpaired import superiority

MASKED = {"task.grammar": ("cfg3b", "cfg3b_onerule"), "task.objective": ("masked",)}  # the thesis' cfg3b, read in both ways
NEXT = {"task.objective": ("next",)}


def better(
    evidence: Evidence,
    terms: Terms,
    needs: int,
    first: str,
    second: str,
    of: Mapping[str, Sequence[str]],
    criterion: bool = False,
) -> Finding:
    """Judge whether the first strategy, averaged over tasks, students and horizons, is more accurate than the second in most replicates.

    of: the values of the options that the claim is of. criterion: whether it must be more accurate by more than `value`. A student of
    labels shares nothing with the others, so it must be so in most pairs of any two replicates.
    """
    complete = _of(cells(evidence, (LABELS, ONE_SHOT, PROGRESSIVE), needs), of)
    gate_teacher(complete, terms.gate)
    least = terms.value if criterion else 0.0  # else the paper's number, which is shown beside ours
    one, other = (together([cell.accuracy(kind) for cell in complete]) for kind in (first, second))
    choices = math.prod(cell.choices[kind] for cell in complete for kind in (first, second))
    shown = "; ".join(f"{_named(complete, cell)}: {_gain(cell, first, second):+.4f}" for cell in complete)
    if LABELS in (first, second):
        require_each(len(one), len(other), needs, "have all horizons")
        first_values, second_values = (list(by_seed.values()) for by_seed in (one, other))
        raised = [accuracy + least for accuracy in second_values]
        chance, interval = superiority(raised, first_values, 1 - (1 - CONFIDENCE) / choices)
        holds, fails = interval.low > 0.5, interval.high < 0.5
        text = f"more accurate in {chance:.0%} of pairs {between(interval)}, unpaired"
        must = f"must be more than {least:g} more accurate in more than half of all pairs"
    else:
        gains = [one[seeds] - other[seeds] - least for seeds in one if seeds in other]
        holds, fails = majority(gains, needs, choices)
        text = f"on average above {least:g} in {sum(gain > 0 for gain in gains)} of {len(gains)} replicates"
        must = f"must be above {least:g} in more than half of all replicates"
    chosen = f"; corrected for the best of {choices} choices of conditions on this set" if choices > 1 else ""
    return decide(
        holds,
        fails,
        f"gain of {first} over {second}, medians: {shown}; {text}{beside(complete[0].teacher.settings)}",
        f"averaged over horizons {first} {must}{chosen}",
    )


def _of(complete: Sequence[Cell], wanted: Mapping[str, Sequence[str]]) -> list[Cell]:
    """The cells whose students have one of these values of each option; settles the claim where there is none."""
    kept = [cell for cell in complete if all(cell.arms[ONE_SHOT].settings[name] in values for name, values in wanted.items())]
    if not kept:
        about = " and ".join(f"{name} {' or '.join(values)}" for name, values in wanted.items())
        settle(NOT_RUN, f"no student has {about}, of which the claim is")
    return kept


def _gain(cell: Cell, first: str, second: str) -> float:
    """The median gain of pairs, or the difference of medians where nothing is shared."""
    if LABELS in (first, second):
        one, other = (median(cell.accuracy(kind)) for kind in (first, second))
        return one - other
    return median(cell.gain(first, second))


def shrinks(evidence: Evidence, terms: Terms, needs: int, along: str) -> Finding:
    """Judge whether progressive's gain over one-shot is larger at the shortest horizon, or with the fewest tokens, than at the other
    end, over the students that are at both."""
    complete = _of(cells(evidence, (LABELS, ONE_SHOT, PROGRESSIVE), needs), NEXT)
    gate_teacher(complete, terms.gate)
    # the fewest tokens are those of the highest level
    place = (lambda cell: cell.horizon) if along == "horizon" else (lambda cell: -cell.level)
    places = sorted({place(cell) for cell in complete})
    if len(places) < 2:
        settle(NOT_RUN, f"there is one {along} alone: nothing to compare")
    ends = [{_apart(cell, along): cell for cell in complete if place(cell) == end} for end in (places[0], places[-1])]
    both = ends[0].keys() & ends[1].keys()
    if not both:
        settle(NOT_RUN, f"no student is at both ends of {along}, {abs(places[0])} and {abs(places[-1])}")
    large, small = (together([end[student].gain(PROGRESSIVE, ONE_SHOT) for student in sorted(both)]) for end in ends)
    if median(large) <= 0:
        settle(PRECONDITION, f"there is no gain to shrink: its median is {median(large):+.4f} where it should be largest")
    falls = [large[seeds] - small[seeds] for seeds in large if seeds in small]
    holds, fails = majority([fall - terms.value for fall in falls], needs)
    return decide(
        holds,
        fails,
        f"gain of {PROGRESSIVE} over {ONE_SHOT} at {along} {abs(places[0])} and {abs(places[-1])}, median of seeds: "
        f"{median(large):+.4f} and {median(small):+.4f}; it falls in {sum(fall > terms.value for fall in falls)} of {len(falls)} "
        "replicates",
        "the gain must fall in more than half of all replicates",
    )


def _apart(cell: Cell, along: str) -> str:
    """What tells a student from others at one horizon, or at one level."""
    options = cell.arms[ONE_SHOT].settings
    left_out = {"horizon": (), "level": ("task.level",)}[along]
    kept = {name: value for name, value in options.items() if name.startswith(("task.", "model.")) and name not in left_out}
    return f"{sorted(kept.items())} {'' if along == 'horizon' else cell.horizon}"


def _named(shown: Sequence[Cell], cell: Cell) -> str:
    """The name of a cell: the options in which it differs from the others."""
    heads, levels = (len({get(cell) for cell in shown}) > 1 for get in (_heads, lambda cell: cell.level))
    about = [f"level {cell.level}"] * levels + [f"{_heads(cell)} heads"] * heads + [f"{cell.horizon} steps"]
    return ", ".join(about)


def _heads(cell: Cell) -> int:
    return int(cell.arms[ONE_SHOT].settings["model.heads"])


_MOST = "6 replicates: that most are, where 97 % of all are"
_UNPAIRED = "10 replicates of each: that most pairs are, where 95 % of all pairs are"
_THESIS = "Panigrahi et al. 2025; thesis"
P13 = Claim(
    "PD-P13",
    "On cfg3b, on average over horizons (numbers of steps), a student of a teacher's checkpoints in order is more accurate than "
    "one of its last checkpoint at the better temperature.",
    f"{_THESIS}, figure 4.4 right; means over the four horizons by eye off the figure",
    "accuracy gained on average over the horizons",
    10,
    "10 replicates: that most are, where 92 % of all are; the opposite, where all are, against the best of 16 choices",
    partial(better, first=PROGRESSIVE, second=ONE_SHOT, of=MASKED),
    "distillation/p13",
    paper_value=0.023,
    of_share=True,
)
P13_ONE_SHOT = Claim(
    "PD-P13-one-shot",
    "On cfg3b, on average over horizons, a student of the last checkpoint is more accurate than one of labels.",
    f"{_THESIS}, figure 4.4 right; means over the four horizons by eye off the figure",
    "accuracy gained on average over the horizons",
    10,
    _UNPAIRED,
    partial(better, first=ONE_SHOT, second=LABELS, of=MASKED),
    "distillation/p13",
    paper_value=0.0215,
    of_share=True,
)
P13_LABELS = Claim(
    "PD-P13-labels",
    "On cfg3b, on average over horizons, a student of a teacher's checkpoints in order is more accurate than one of labels.",
    f"{_THESIS}, figure 4.4 right; means over the four horizons by eye off the figure",
    "accuracy gained on average over the horizons",
    10,
    _UNPAIRED,
    partial(better, first=PROGRESSIVE, second=LABELS, of=MASKED),
    "distillation/p13",
    paper_value=0.0445,
    of_share=True,
)
R7 = Claim(
    "PD-R7",
    "For GPT-2 too, on average over horizons, levels and sizes, a student of a teacher's checkpoints in order is more accurate "
    "than one of its last checkpoint.",
    f"{_THESIS}, figures 4.33 and 4.34, where it is so “at all training sample budgets”; no numbers printed",
    "gain that must be exceeded, of the average over horizons, levels and students",
    6,
    _MOST,
    partial(better, first=PROGRESSIVE, second=ONE_SHOT, of=NEXT, criterion=True),
    "distillation/gpt2",
    of_share=True,
)
R7_HORIZON = Claim(
    "PD-R7-horizon",
    "The gain shrinks as the student is trained longer.",
    f"{_THESIS}, figures 4.33 and 4.34, no numbers printed",
    "fall that must be exceeded",
    6,
    _MOST,
    partial(shrinks, along="horizon"),
    "distillation/gpt2",
    of_share=True,
)
R7_TOKENS = Claim(
    "PD-R7-tokens",
    "The gain shrinks as more tokens enter the loss.",
    f"{_THESIS}, figures 4.33 to 4.34, from level 4 to level 2, no numbers printed",
    "fall that must be exceeded",
    6,
    _MOST,
    partial(shrinks, along="level"),
    "distillation/gpt2",
    of_share=True,
)
