"""The requirements on rows before a claim is tested. Each function settles the claim where they are not met."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from results.claims.claim import NOT_RUN, PRECONDITION, TOO_FEW, settle
from results.claims.evidence import Condition, Evidence, Seeds
from results.rows.options import flatten
from results.statistics.intervals import quantile

# largest error rate on its own training distribution at which a replicate has learned it; no paper says, so this is ours
LEARNED = 0.01
LEARNERS = 0.8  # share of a condition's replicates that must have learned; ours too
Place = TypeVar("Place")


def in_distribution_set(evidence: Evidence) -> str:
    """The largest set of the training distribution."""
    names = [name for name, definition in evidence.definitions.items() if not definition]
    if not names:
        settle(NOT_RUN, "no set that is scored at the end is of the training distribution")
    return max(names, key=lambda name: evidence.sequences[name])


def first_set(evidence: Evidence) -> str:
    """The first set that is scored at the end."""
    return next(iter(evidence.definitions), None) or settle(NOT_RUN, "no set is scored")


def own_sets(evidence: Evidence, condition: Condition) -> list[str]:
    """The sets scored at the end that are of this condition's own training distribution: they change nothing of its task."""
    return [name for name, definition in evidence.definitions.items() if condition.has(flatten(definition, "task."))]


def by_place(conditions: Iterable[Condition], place: Callable[[Condition], Place], alike: str) -> dict[Place, Condition]:
    """Conditions by their place, such as automaton and depth. Settles a claim where two share one.

    alike: the predicate of the sentence on such two, such as "have one length and depth".
    """
    by: dict[Place, Condition] = {}
    for condition in conditions:
        other = by.setdefault(place(condition), condition)
        if other is not condition:
            settle(NOT_RUN, f"{other.name} and {condition.name} {alike}, and nothing says which is meant")
    return by


def only(conditions: Sequence[Condition], what: str) -> Condition:
    """The one condition that a claim is of; settles the claim where there is none or there are several."""
    if len(conditions) != 1:
        settle(NOT_RUN, f"{len(conditions)} conditions are {what}, and the claim is of one")
    return conditions[0]


def gate(count: int, total: int, share: float, what: str, must: str = "must") -> None:
    """Settle a claim unless `count` of `total` replicates is at least this share.

    what, must: of the sentence "COUNT of TOTAL WHAT; SHARE MUST", such as "3 of 10 replicates have learned; 80% must".
    """
    if not total or count / total < share:
        settle(PRECONDITION, f"{count} of {total} {what}; {share:.0%} {must}")


def require_all(count: int, total: int, needs: int, what: str) -> None:
    """Settle a claim as too few replicates unless all of `total`, and at least `needs`, are counted. what: ends the sentence on it."""
    if count < max(needs, total):
        settle(TOO_FEW, f"{count} of {total} {what}; the claim needs all, and at least {needs}")


def require_each(one: int, other: int, needs: int, what: str) -> None:
    """Settle a claim as too few replicates unless each of two conditions has `needs`. what: ends the sentence on it."""
    if min(one, other) < needs:
        settle(TOO_FEW, f"{one} and {other} replicates {what}; the claim needs {needs} of each")


def common_seeds(rows: Iterable[Mapping[Seeds, object]], needs: int, what: str) -> list[Seeds]:
    """The seeds that all rows have, in order. Settles a claim as too few replicates where they are fewer than `needs`."""
    common = sorted(set.intersection(*map(set, rows)))
    if len(common) < needs:
        settle(TOO_FEW, f"{len(common)} seeds {what}; the claim needs {needs}")
    return common


def learners(condition: Condition, names: Sequence[str], most: float = LEARNED) -> tuple[int, int]:
    """How many replicates err on at most `most` of each of these sets, of how many that have a number on all of them."""
    rates = condition.rates(names)
    return int((rates <= most).all(1).sum()), len(rates)


def gate_learned(
    evidence: Evidence,
    conditions: Iterable[Condition],
    sets: Callable[[Evidence, Condition], list[str]] = own_sets,
    most: float = LEARNED,
    share: float = LEARNERS,
) -> None:
    """Settle a claim unless every condition that it compares has learned its own training distribution.

    sets: finds the sets of a condition's training distribution. most: the error rate up to which a replicate has learned. share:
    of each condition's replicates, how many must have.
    """
    for condition in conditions:
        names = sets(evidence, condition)
        if not names:
            settle(NOT_RUN, f"no set that is scored at the end is of the training distribution of {condition.name}")
        what = f"have learned their training distribution (errors of at most {most:.0%} on {', '.join(names)})"
        gate(*learners(condition, names, most), share, f"replicates of {condition.name} {what}")


def require(conditions: Iterable[Condition], names: Iterable[str], needs: int) -> None:
    """Settle a claim as too few replicates unless each condition has ended, with `needs` numbers on each set.

    Those that end first are no fair sample, so a number is waited for; a replicate that failed is left out.
    """
    names = tuple(dict.fromkeys(names))
    for condition in conditions:
        waiting = sum(replicate.ending(name) == "missing" for name in names for replicate in condition.replicates)
        if waiting:
            settle(
                TOO_FEW,
                f"{waiting} results of {condition.name} are still missing, and replicates that end first are not a fair sample",
            )
        for name in names:
            numbers = len(condition.errors(name))
            if numbers < needs:
                settle(TOO_FEW, f"{condition.name} has {numbers} replicates with a number on {name}; the claim needs {needs}")


def gate_tail(base: Condition, name: str) -> None:
    """Settle a claim that compares medians where the baseline's median error is 0."""
    if quantile(base.errors(name), 0.5) == 0:
        settle(PRECONDITION, f"the median error of {base.name} on {name} is 0: there is no tail to improve")


def require_probed(evidence: Evidence, conditions: Iterable[Condition], probe: str, needs: int) -> None:
    """Settle a claim unless all finished replicates, and at least `needs` of each condition, have values of a probe.

    Where only the worst replicates kept their weights, those are no fair sample.
    """
    for condition in conditions:
        settle_unless_probed(condition, probe, len(evidence.probed(condition, probe)), needs)


def probed_conditions(evidence: Evidence, probe: str, needs: int) -> list[Condition]:
    """The conditions that have values of a probe; settles a claim unless there is one, and as `require_probed`."""
    conditions = [condition for condition in evidence.conditions if evidence.probed(condition, probe)]
    if not conditions:
        settle(NOT_RUN, f"no replicate has rows of the {probe} probe: manyseeds probe STORE --probe {probe}")
    require_probed(evidence, conditions, probe, needs)
    return conditions


def settle_unless_probed(condition: Condition, probe: str, probed: int, needs: int) -> None:
    """Settle a claim unless all finished replicates of a condition, and at least `needs`, have values of a probe."""
    if not probed:
        ask = f"manyseeds probe STORE --probe {probe}, with keep: all in its study"
        settle(NOT_RUN, f"{condition.name} has no {probe} rows: {ask}")
    require_all(probed, len(condition.finished), needs, f"finished replicates of {condition.name} have {probe} rows")
