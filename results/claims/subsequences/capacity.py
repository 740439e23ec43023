"""S2: how many pairs with answers of their own a width holds (after Sun et al. 2025, theorem A.6 and lemma A.3)."""

from collections.abc import Mapping, Sequence
from statistics import median_low

from results.claims.claim import NOT_RUN, PRECONDITION, Claim, Finding, Terms, decide, settle
from results.claims.compare import percent
from results.claims.evidence import Condition, Evidence, Seeds, differing
from results.claims.requirements import in_distribution_set, require
from results.statistics.intervals import clopper_pearson

Row = dict[int, Condition]  # by the number of pairs
Answer = bool | None  # None: the sweep does not reach far enough to tell
SWEPT = {"task.pairs", "model.width", "model.feed_forward"}


def cells(evidence: Evidence) -> dict[tuple[int, int], Row]:
    """Transformers on equally frequent pairs by (inner width, width) and number of pairs. Settles a claim on what cannot be compared."""
    compared = evidence.with_settings({"task.name": "associations", "model.name": "transformer", "task.zipf": 0})
    table: dict[tuple[int, int], Row] = {}
    for condition in compared:
        if more := sorted(differing(compared[0], condition) - SWEPT):
            settle(NOT_RUN, f"{compared[0].name} and {condition.name} differ in {more[0]} too, and the claim is of sizes alone")
        width, inner = condition.settings["model.width"], condition.settings["model.feed_forward"]
        table.setdefault((4 * width if inner is None else inner, width), {})[condition.settings["task.pairs"]] = condition
    inners, widths = {inner for inner, _ in table}, {width for _, width in table}
    if len(inners) < 2 or not any(2 * width in widths for width in widths):
        settle(
            NOT_RUN, "the claim needs transformers on equally frequent pairs at a width, at twice that, and at two inner widths"
        )
    numbers = {tuple(sorted(row)) for row in table.values()}
    if len(numbers) > 1 or len(table) < len(inners) * len(widths):
        settle(NOT_RUN, "every width and inner width must be trained on the same numbers of pairs")
    (swept,) = numbers
    if gaps := [n for n in swept if 2 * n <= swept[-1] and 2 * n not in swept]:
        settle(
            NOT_RUN, f"{gaps[0]} pairs are trained and {2 * gaps[0]} are not, so growth in proportion would not be seen as such"
        )
    return table


def most(row: Row, name: str, accuracy: float) -> dict[Seeds, int]:
    """Largest swept number of pairs that is answered with this accuracy, by seeds; 0 where none is."""
    largest: dict[Seeds, int] = {}
    for pairs, condition in row.items():
        for seeds, error in condition.wrong_by_seeds(name).items():
            largest[seeds] = max(largest.get(seeds, 0), pairs if error <= 1 - accuracy + 1e-9 else 0)
    return largest


def exceeds_times(large: int, small: int, factor: int, swept: Sequence[int]) -> Answer:
    """Whether one capacity is more than `factor` times the other; None where the sweep can't tell.

    large and small are swept numbers; the capacity lies between it and the next one. 0 stands for anything below the smallest swept number,
    the largest one for anything from there on.
    """
    if not small:
        return True if large >= factor * swept[0] else None
    if large > factor * small:
        return True
    return None if large == swept[-1] else False


def capacity_grows_faster(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge, by seeds, every doubling of the width at the largest inner width.

    Growth that stops there may be the inner width's doing, of which only a larger one could tell: the verdict is then open. It is not
    where the next smaller inner width does not stop it too: holding fewer is not enough, for it would where pairs grow with either width.
    """
    name, table = in_distribution_set(evidence), cells(evidence)
    require([condition for row in table.values() for condition in row.values()], [name], needs)
    capacities = {sizes: most(row, name, terms.value) for sizes, row in table.items()}
    swept = sorted(next(iter(table.values())))
    narrower, inner = sorted({inner for inner, _ in table})[-2:]
    doublings = sorted(width for at, width in table if at == inner and (inner, 2 * width) in table)
    confidence = 1 - 0.05 / len(doublings)
    texts, up, down, bound = [], [], [], []
    for width in doublings:
        less, more = capacities[inner, width], capacities[inner, 2 * width]
        before, pinched = capacities[narrower, width], capacities[narrower, 2 * width]
        grows = [exceeds_times(more[seeds], less[seeds], 2, swept) for seeds in more if seeds in less]
        binds = [
            _both(exceeds_times(more[seeds], pinched[seeds], 1, swept), _no_more(pinched[seeds], before[seeds], swept))
            for seeds in more
            if seeds in pinched and seeds in before
        ]
        shown, refuted = _majority(grows, confidence)
        by_inner, not_by_inner = _majority(binds, confidence)
        up.append(shown)
        down.append(refuted and not_by_inner)
        bound.append(refuted and by_inner)
        texts.append(
            f"width {width} to {2 * width}: {_middle(less, swept)} to {_middle(more, swept)} pairs, more than twice in "
            f"{percent(grows.count(True), len(grows), confidence)}{_unknown(grows)}; stopped, and lower, at inner width {narrower} in "
            f"{percent(binds.count(True), len(binds), confidence)}{_unknown(binds)}"
        )
    measured = (
        f"with inner width {inner}, median of the most pairs that are answered with accuracy {terms.value:g}: "
        + "; ".join(texts)
    )
    if any(bound) and not any(down):
        settle(
            PRECONDITION,
            f"an inner width of {narrower} stops the growth, so {inner} may stop it further up: train a larger one",
            measured,
        )
    return decide(
        all(up),
        any(down),
        measured,
        "at the largest inner width twice the width must hold more than twice the pairs in more than half of the replicates, for every "
        "doubling; one that is shown not to refutes, unless the next smaller inner width is shown to stop growing, and to hold fewer",
    )


def _majority(answers: Sequence[Answer], confidence: float) -> tuple[bool, bool]:
    """Whether most replicates are shown to say yes, and whether fewer than half do even if all unknown answers are yes."""
    yes, unknown = answers.count(True), answers.count(None)
    low = clopper_pearson(yes, len(answers), confidence).low
    return low > 0.5, clopper_pearson(yes + unknown, len(answers), confidence).high < 0.5


def _no_more(large: int, small: int, swept: Sequence[int]) -> Answer:
    more = exceeds_times(large, small, 1, swept)
    return None if more is None else not more


def _both(one: Answer, other: Answer) -> Answer:
    return False if False in (one, other) else None if None in (one, other) else True


def _middle(capacities: Mapping[Seeds, int], swept: Sequence[int]) -> str:
    """The median capacity as text."""
    middle = median_low(capacities.values())
    if not middle:
        return f"below {swept[0]}"
    return f"{middle} or more" if middle == swept[-1] else str(middle)


def _unknown(answers: Sequence[Answer]) -> str:
    count = answers.count(None)
    return f" ({count} beyond the sweep)" if count else ""


S2 = Claim(
    "S2",
    "The number of pairs that a transformer holds grows with its width faster than in proportion, where its inner width is no limit.",
    "Sun et al. 2025, theorem A.6 and lemma A.3; a prediction of ours, no experiment in the paper",
    "accuracy with which pairs count as held",
    10,
    "10 replicates of each size, two doublings: that twice the width holds more than twice the pairs, where 92 % of all do",
    capacity_grows_faster,
    "subsequences/capacity",
    of_share=True,
)
