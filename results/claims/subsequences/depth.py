"""S1: how many layers it takes to see a subsequence of η tokens, anywhere in order (after Sun et al. 2025, theorem 2.4).

Theorem 2.4 has subsequences shorter than 2^l in layer l, and its formal statement, A.4, O(log2 η) layers. The weights of the proof fail
from length 4 on, and weights that are right have 1 + ⌈log2 η⌉ layers (docs/explanation/tracing.md, "The theory in small"). So both sides
are asked: trained models should do it with that many (S1), and, if a layer can at most double what is joined, not with fewer than
⌈log2 η⌉ (S1-below), of which the theorem itself says nothing.
"""

from typing import NamedTuple

from results.claims.claim import NOT_RUN, Claim, Finding, Terms, decide, settle
from results.claims.evidence import Condition, Evidence
from results.claims.requirements import by_place, gate, in_distribution_set, require
from results.plain_values import Options
from results.rows.plural import counted
from results.statistics.intervals import clopper_pearson

MOST = 0.5
Cells = dict[int, dict[int, Condition]]


class Smallest(NamedTuple):
    """The smallest depth at which most replicates may solve it, and at which most are shown to; None: at no depth that was run."""

    possible: int | None
    shown: int | None


def length_of(settings: Options) -> int | None:
    """η, where the task asks whether a piece of η tokens has been read; else None.

    The automaton is then in state q after q tokens of the piece, and keeps the last state.
    """
    table = [list(row) for row in settings.get("task.automaton.table") or []]
    last, observe = len(table) - 1, settings.get("task.observe")
    if not table or settings.get("task.automaton.start") != 0 or any(after != last for after in table[last]):
        return None
    if not isinstance(observe, list | tuple) or list(observe) != [0] * last + [1]:
        return None
    chain = all(sorted(row) == [state] * (len(row) - 1) + [state + 1] for state, row in enumerate(table[:-1]))
    return last if chain else None


def layers_needed(length: int) -> int:
    """⌈log2 η⌉"""
    return (length - 1).bit_length()


def by_length(evidence: Evidence) -> Cells:
    """Transformers by length of the piece and number of layers. Settles a claim where there is none, or where two share both."""
    transformers = [
        condition for condition in evidence.with_settings({"model.name": "transformer"}) if length_of(condition.settings)
    ]
    if not transformers:
        settle(NOT_RUN, "no condition asks a transformer whether a piece of tokens has been read")
    cells: Cells = {}
    for (length, layers), condition in sorted(by_place(transformers, _place, "have one length and depth").items()):
        cells.setdefault(length, {})[layers] = condition
    return cells


def _place(condition: Condition) -> tuple[int, int]:
    return length_of(condition.settings) or 0, condition.settings["model.layers"]


def solved(condition: Condition, name: str, value: float) -> tuple[int, int]:
    """How many replicates have an accuracy of `value` or more over all positions, of how many; a diverged one has none."""
    errors = condition.wrong(name)
    return int((1 - errors >= value).sum()), len(errors)


def smallest(row: dict[int, Condition], name: str, value: float, confidence: float) -> Smallest:
    """The smallest depth that solves; each depth has a Clopper–Pearson interval of the share that does."""
    shares = {depth: clopper_pearson(*solved(condition, name, value), confidence) for depth, condition in row.items()}
    return Smallest(
        next((depth for depth, interval in shares.items() if interval.high > MOST), None),
        next((depth for depth, interval in shares.items() if interval.low > MOST), None),
    )


def enough_layers(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge whether some depth up to 1 + ⌈log2 η⌉ is enough for every length; refuted where all of these were run and none is."""
    cells, name = by_length(evidence), in_distribution_set(evidence)
    asked = {length: _upto(row, layers_needed(length) + 1) for length, row in cells.items()}
    depths, measured = _judged(cells, asked, name, terms.value, needs)
    unknown = [length for length, row in asked.items() if len(row) <= layers_needed(length) and depths[length].shown is None]
    refuted = any(smallest.possible is None for length, smallest in depths.items() if length not in unknown)
    if unknown and not refuted:
        settle(
            NOT_RUN,
            f"no depth that was run is shown to solve length {' or '.join(map(str, unknown))}, and one up to 1 + ⌈log2 η⌉ was not run",
            measured,
        )
    if not refuted:
        _require_two_bounds(asked, measured)
    return decide(
        all(smallest.shown is not None for smallest in depths.values()),
        refuted,
        measured,
        "for every length the smallest depth at which more than half of the replicates solve it must be at most 1 + ⌈log2 η⌉, shown by "
        f"intervals at 5 % together; solved is {terms.value:g} of the answers right, over all positions",
    )


def fewer_fail(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge whether no depth below ⌈log2 η⌉ is enough, for every length that was run with such a depth.

    A length that no deeper model solves either says nothing of depth, unless a depth below the bound solves it.
    """
    cells, name = by_length(evidence), in_distribution_set(evidence)
    asked = {length: _upto(row, layers_needed(length) - 1) for length, row in cells.items()}
    asked = {length: row for length, row in asked.items() if row}
    if not asked:
        settle(NOT_RUN, "no length was run with fewer than ⌈log2 η⌉ layers")
    depths, measured = _judged(cells, asked, name, terms.value, needs)
    refuted = any(smallest.shown is not None for smallest in depths.values())
    if not refuted:
        for length in asked:
            _gate_deeper(length, cells[length], name, terms)
        _require_two_bounds(asked, measured)
    return decide(
        all(smallest.possible is None for smallest in depths.values()),
        refuted,
        measured,
        f"at each depth below ⌈log2 η⌉ at most half of the replicates may solve it ({terms.value:g} of the answers right, over all "
        "positions), shown by intervals at 5 % together",
    )


def _judged(cells: Cells, asked: Cells, name: str, value: float, needs: int) -> tuple[dict[int, Smallest], str]:
    """The smallest depth by length among those that are asked, at 5 % together; and what all depths show."""
    require([condition for row in cells.values() for condition in row.values()], [name], needs)
    confidence = 1 - 0.05 / max(1, sum(map(len, asked.values())))
    depths = {length: smallest(row, name, value, confidence) for length, row in asked.items()}
    told = [_told(length, row, name, value) for length, row in cells.items() if length in asked]
    return depths, "; ".join([depth for depth, _ in told] + [counts for _, counts in told])


def _gate_deeper(length: int, row: dict[int, Condition], name: str, terms: Terms) -> None:
    """Settle a claim unless a length is solved at some depth from ⌈log2 η⌉ on: else its training fails, and not its depth."""
    counts = [solved(condition, name, terms.value) for depth, condition in row.items() if depth >= layers_needed(length)]
    best, total = max(counts, key=lambda count: count[0] / max(count[1], 1), default=(0, 0))
    gate(best, total, terms.gate, f"replicates solve length {length} at the best depth from ⌈log2 η⌉ on")


def _require_two_bounds(asked: Cells, measured: str) -> None:
    """Settle a claim whose lengths all have one bound: any law of the length would give it."""
    if len({layers_needed(length) for length in asked}) < 2:
        settle(NOT_RUN, "the lengths that were run have one ⌈log2 η⌉, and the claim is of how it grows", measured)


def _told(length: int, row: dict[int, Condition], name: str, value: float) -> tuple[str, str]:
    """From which depth most replicates solve a length, and how many do at each depth."""
    counts = {depth: solved(condition, name, value) for depth, condition in row.items()}
    most = next((depth for depth, (k, n) in counts.items() if k > MOST * n), None)
    shares = ", ".join(f"{k} of {n} with {depth}" for depth, (k, n) in counts.items())
    first = smallest(row, name, value, 1 - 0.05 / len(row))
    enough = counted(most, "layer") if most else f"more than {counted(max(row), 'layer')}"
    return (
        f"length {length} (⌈log2 η⌉ = {layers_needed(length)}): most solve it with {enough} "
        f"[{first.possible or f'above {max(row)}'}, {first.shown or 'open'}]",
        f"length {length}: solved by {shares}",
    )


def _upto(row: dict[int, Condition], most: int) -> dict[int, Condition]:
    return {depth: condition for depth, condition in row.items() if depth <= most}


_POWER = "10 replicates: a depth at which 98 % of them solve is shown to be enough; 20: one at which 89 % do"
_DEPTH = "subsequences/depth"
S1 = Claim(
    "S1",
    "A subsequence of η tokens is seen with 1 + ⌈log2 η⌉ layers.",
    "Sun et al. 2025, theorem 2.4, with weights that are right",
    "accuracy over all positions that counts as solved",
    10,
    _POWER,
    enough_layers,
    _DEPTH,
    of_share=True,
)
S1_BELOW = Claim(
    "S1-below",
    "Fewer than ⌈log2 η⌉ layers do not see a subsequence of η tokens.",
    "a bound of ours, beside Sun et al. 2025, theorem 2.4, whose layer l has subsequences shorter than 2^l",
    "accuracy over all positions that counts as solved",
    10,
    _POWER,
    fewer_fail,
    _DEPTH,
    of_share=True,
)
