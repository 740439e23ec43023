"""What must hold of the rows before a claim is tested; each function settles the claim where it does not."""

from collections.abc import Callable, Iterable, Sequence

from results.claims.claim import NOT_RUN, PRECONDITION, TOO_FEW, settle
from results.claims.evidence import Condition, Evidence
from results.rows.options import flatten
from results.statistics.intervals import quantile

LEARNED = (
    0.01  # most that a replicate errs on its own training distribution once it has learned it; no paper says, so this is ours
)
LEARNERS = 0.8  # share of a condition's replicates that must have learned; ours too


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
    absent = object()

    def same(name: str) -> bool:
        wanted = flatten(evidence.definitions[name], "task.")
        return all(condition.settings.get(option, absent) == value for option, value in wanted.items())

    return [name for name in evidence.definitions if same(name)]


def learners(condition: Condition, names: Sequence[str], most: float = LEARNED) -> tuple[int, int]:
    """How many replicates err on at most `most` of each of these sets, of how many that have a number on all of them."""
    rates = [[replicate.error(name) for name in names] for replicate in condition.replicates]
    scored = [[rate for rate in row if rate is not None] for row in rates if None not in row]
    return sum(max(row) <= most for row in scored), len(scored)


def gate_learned(
    evidence: Evidence,
    conditions: Iterable[Condition],
    sets: Callable[[Evidence, Condition], list[str]] = own_sets,
    most: float = LEARNED,
    share: float = LEARNERS,
) -> None:
    """Settles a claim unless every condition that it compares has learned its own training distribution.

    sets: finds the sets of a condition's training distribution. most: the error rate up to which a replicate has learned. share:
    of each condition's replicates, how many must have.
    """
    for condition in conditions:
        names = sets(evidence, condition)
        if not names:
            settle(NOT_RUN, f"no set that is scored at the end is of the training distribution of {condition.name}")
        count, total = learners(condition, names, most)
        if count < share * total:
            settle(
                PRECONDITION,
                f"{count} of {total} replicates of {condition.name} have learned their training distribution (errors of at most "
                f"{most:.0%} on {', '.join(names)}); {share:.0%} must",
            )


def require(conditions: Iterable[Condition], names: Iterable[str], needs: int) -> None:
    """Settles a claim as too few replicates unless each condition has ended, with `needs` numbers on each set.

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
    """Settles a claim that compares medians with a baseline that mostly has no error."""
    if quantile(base.errors(name), 0.5) == 0:
        settle(PRECONDITION, f"the median error of {base.name} on {name} is 0: there is no tail to improve")


def require_probed(evidence: Evidence, conditions: Iterable[Condition], probe: str, needs: int) -> None:
    """Settles a claim unless every replicate that finished has values of a probe, and `needs` of each condition have.

    Those whose weights were kept because they are the worst are no fair sample.
    """
    for condition in conditions:
        finished = sum(replicate.status == "finished" for replicate in condition.replicates)
        settle_unless_probed(condition.name, probe, len(evidence.probed(condition, probe)), finished, needs)


def settle_unless_probed(name: str, probe: str, probed: int, finished: int, needs: int) -> None:
    """Settles a claim unless all finished replicates of a condition, and at least `needs`, have values of a probe."""
    if not probed:
        settle(NOT_RUN, f"{name} has no {probe} rows: manyseeds probe STORE --probe {probe}, with keep: all in its study")
    if probed < max(needs, finished):
        settle(
            TOO_FEW,
            f"{probed} of {finished} finished replicates of {name} have {probe} rows; the claim needs all, and at least {needs}",
        )
