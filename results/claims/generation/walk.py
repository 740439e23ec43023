"""VGB1 and VGB2: a walk that can step back against sampling that can't, both guided by a value that is wrong (Li 2025, section 3.3).

Rows are values of the experiment `verified_sampling`. A seed has a wrong value of its own, so conditions are compared unpaired.
"""

import itertools
from collections.abc import Callable, Iterable

import numpy as np

from results.claims.claim import NOT_RUN, PRECONDITION, Claim, Finding, Terms, decide, settle
from results.claims.compare import between, exceeds, higher
from results.claims.evidence import Condition, Evidence, differing
from results.claims.requirements import by_place, common_seeds, require_all
from results.statistics.bootstrap import divide
from results.statistics.intervals import Floats, Interval, quantile_interval

EXPERIMENT = "verified_sampling"
SPAN = 4  # how much longer the longest strings must be than the shortest; the thesis names no lengths, so this is ours
MIXED = 0.1  # largest relative distance of the measured mass of the leaves from the stationary one; ours
FALLING = 0.75  # least mass of the leaves times the length on the longest strings, as a part of that on the shortest; ours
_FREE = {"experiment.sampler", "experiment.horizon", "experiment.steps", "experiment.samples", "experiment.most"}


def amplification(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge the exact divergences from the target of guided sampling and of the walk's first leaf, at each length that has both."""
    pairs = beside(evidence, "guided", "vgb_first_leaf")
    lengths = span(pairs)
    require(evidence, [each for pair in pairs.values() for each in pair], "divergence", needs)
    finished(evidence, [walk for _, walk in pairs.values()])
    guided, walk = ({h: evidence.values(pairs[h][place], "divergence") for h in pairs} for place in (0, 1))
    short, long = lengths[0], lengths[-1]
    if min(float(np.median(guided[h])) for h in pairs) < 1e-9:
        settle(PRECONDITION, "the value is exact, or nearly so: guided sampling makes no error that could grow")
    confidence = 1 - 0.05 / (len(pairs) + 2)
    grows = exceeds(guided[long], guided[short], terms.value, confidence)
    less = {h: exceeds(guided[h], walk[h], 1.0, confidence) for h in lengths}
    # seeds are shared by the two samplers at one length, and not between lengths
    times = {h: _times(evidence, *pairs[h], needs) for h in (short, long)}
    slower = exceeds(times[long], times[short], 1.0, confidence)
    tests = [grows, *less.values(), slower]
    medians = ", ".join(f"{h}: {np.median(guided[h]):.3g} and {np.median(walk[h]):.3g}" for h in lengths)
    return decide(
        *higher(tests),
        f"median divergence in nats, guided and walk, by length {medians}; guided {grows.moves(True)} from {short} to {long}, and its "
        f"ratio to the walk {slower.moves(True)}",
        f"guided sampling must err more than {terms.value:g} times as much at the largest length, more than the walk at every length, and "
        "its ratio to the walk must grow; each in most pairs of seeds",
    )


def _times(evidence: Evidence, guided: Condition, walk: Condition, needs: int) -> Floats:
    """Guided sampling's divergence as a multiple of the walk's, of each seed that has both; infinity where the walk makes no error."""
    rows = [evidence.values_by_seeds(each, "divergence") for each in (guided, walk)]
    common = common_seeds(rows, needs, f"have a divergence of {guided.name} and of {walk.name}")
    return divide(*([row[seeds] for seeds in common] for row in rows))


def leaf_mass(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge the share of time that walks spend at leaves, times the length: at each length, and on the longest beside the shortest.

    A share that falls like 1 / H² may well be above c / H at short lengths; its product with the length falls by SPAN or more, and that of
    a share like 1 / H^1.3 to two thirds.
    """
    walks = by_place(chosen(evidence, "vgb_uniform_time", lambda noise, leaf: noise > 0), _horizon, "have one length")
    if not walks:
        settle(NOT_RUN, "no walk is looked at at a uniform time with a value that is wrong inside the tree")
    lengths = span(walks)
    require(evidence, walks.values(), "leaf_mass", needs)
    mixed(evidence, walks.values())
    scaled = {h: evidence.values(walks[h], "leaf_mass") * h for h in lengths}
    confidence = 1 - 0.05 / (len(lengths) + 1)
    intervals = {h: quantile_interval(scaled[h], 0.5, confidence) for h in lengths}
    stays = exceeds(scaled[lengths[-1]], scaled[lengths[0]], FALLING, confidence)
    kept, fallen = higher([stays])
    return decide(
        kept and all(each.low >= terms.value for each in intervals.values()),
        fallen or any(each.high < terms.value for each in intervals.values()),
        "mass of the leaves times the length, by length "
        + ", ".join(f"{h}: {np.median(scaled[h]):.3g} {between(intervals[h])}" for h in lengths),
        f"its median over seeds must be at least {terms.value:g} at every length, and in most pairs of seeds it must be at least "
        f"{FALLING:g} times as large on the longest strings as on the shortest; either refutes below",
    )


def target_at_leaves(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Judge how much farther from the target the walk's leaves are than the target's own strings, at each length with both samplers."""
    pairs = beside(evidence, "guided", "vgb_uniform_time")
    lengths = sorted(pairs)
    require(evidence, [each for pair in pairs.values() for each in pair], "distance", needs)
    mixed(evidence, [walk for _, walk in pairs.values()])
    confidence = 1 - 0.05 / len(pairs)
    excess = {h: tuple(beyond_chance(evidence, each, confidence) for each in pairs[h]) for h in lengths}
    if any(guided[1].low <= terms.value for guided, _ in excess.values()):
        settle(
            PRECONDITION,
            f"guided sampling is not shown to be {terms.value:g} from the target at every length, so the value is not wrong enough to tell "
            "the walk from it",
        )
    return decide(
        all(walk[1].high <= terms.value for _, walk in excess.values()),
        any(walk[1].low > terms.value for _, walk in excess.values()),
        "median distance from the target beyond that of as many strings of the target itself, walk and guided, by length "
        + ", ".join(f"{h}: {walk[0]:.3f} {between(walk[1])} and {guided[0]:.3f}" for h, (guided, walk) in excess.items()),
        f"the walk's must be at most {terms.value:g} at every length, and refutes above",
    )


def chosen(evidence: Evidence, sampler: str, wrong: Callable[[float, float], bool]) -> list[Condition]:
    """Conditions of a sampler whose value is wrong as `wrong(inside, leaves)` asks."""
    return [
        each
        for each in evidence.with_settings({"experiment.name": EXPERIMENT, "experiment.sampler": sampler})
        if wrong(each.settings["experiment.noise"], each.settings["experiment.leaf_noise"])
    ]


def beside(evidence: Evidence, one: str, other: str) -> dict[int, tuple[Condition, Condition]]:
    """Conditions of two samplers that share everything but what only one of them reads, by length; the value is wrong inside the tree and
    exact at leaves."""
    firsts, seconds = (chosen(evidence, sampler, lambda noise, leaf: noise > 0 and leaf == 0) for sampler in (one, other))
    pairs = [
        (first, second)
        for first, second in itertools.product(firsts, seconds)
        if _horizon(first) == _horizon(second) and differing(first, second) <= _FREE
    ]
    if not pairs:
        settle(NOT_RUN, f"no {one} and {other} share a value that is wrong inside the tree and exact at its leaves")
    if any(differing(pairs[0][0], first) - _FREE for first, _ in pairs):
        settle(NOT_RUN, "the lengths differ in more than their length: state the claim of a study of one process and one noise")
    one_each, other_each = (by_place(each, _horizon, "have one length") for each in zip(*pairs, strict=True))
    return {h: (one_each[h], other_each[h]) for h in one_each}


def span(lengths: Iterable[int]) -> list[int]:
    """The lengths in order; settles a claim on growth where they are too near each other."""
    ordered = sorted(lengths)
    if ordered[-1] < SPAN * ordered[0]:
        settle(NOT_RUN, f"lengths from {ordered[0]} to {ordered[-1]}: the longest must be at least {SPAN} times the shortest")
    return ordered


def require(evidence: Evidence, conditions: Iterable[Condition], metric: str, needs: int) -> None:
    """Settle a claim unless every replicate that was planned has ended, with `needs` values of each condition."""
    for each in conditions:
        waiting = sum(replicate.status == "missing" for replicate in each.replicates)
        count = len(evidence.values(each, metric))
        require_all(count, count + waiting, needs, f"replicates of {each.name} have a value of {metric}")


def finished(evidence: Evidence, conditions: Iterable[Condition]) -> None:
    """Settle a claim unless all walks came to their end."""
    for each in conditions:
        left = evidence.values(each, "unfinished")
        if len(left) and left.max() > 0:
            settle(
                PRECONDITION, f"{each.name}: up to {left.max():.0%} of the walks of a seed were given up; raise experiment.most"
            )


def mixed(evidence: Evidence, conditions: Iterable[Condition]) -> None:
    """Settle a claim on the long run unless walks are at leaves about as often as in the stationary law (within MIXED)."""
    conditions = list(conditions)
    finished(evidence, conditions)
    for each in conditions:
        measured, expected = (evidence.values(each, name) for name in ("leaf_mass", "expected_leaf_mass"))
        apart = (
            float(np.median(np.abs(measured / expected - 1))) if len(measured) == len(expected) and len(measured) else np.inf
        )
        if not apart <= MIXED:
            settle(
                PRECONDITION,
                f"{each.name}: walks are at leaves {apart:.0%} more or less often than in the long run; raise experiment.steps",
            )


def beyond_chance(evidence: Evidence, condition: Condition, confidence: float) -> tuple[float, Interval]:
    """The median over seeds of the distance from the target less that of the target's own strings, and its interval."""
    excess: Floats = evidence.values(condition, "distance") - evidence.values(condition, "distance_of_target")
    return float(np.median(excess)), quantile_interval(excess, 0.5, confidence, least=-1.0)


def _horizon(condition: Condition) -> int:
    return int(condition.settings["experiment.horizon"])


_SOURCE = "Li 2025, section 3.3"
VGB1 = Claim(
    "VGB1",
    "The error of sampling that a wrong value guides grows with the length, and VGB, which can step back, makes less of it.",
    _SOURCE,
    "factor by which guided sampling must err more at the largest length",
    20,
    "20 seeds: a factor that 80 % of all pairs of seeds exceed is shown",
    amplification,
    "generation/error_growth",
    of_experiments=True,
)
VGB2 = Claim(
    "VGB2",
    "In the long run the walk spends a share of at least c / H of its time at leaves.",
    _SOURCE,
    "c, for which the thesis gives no number; 1/2 with the exact value",
    20,
    "20 seeds: shown where 72 % of all seeds are above it",
    leaf_mass,
    "generation/long_run",
    of_experiments=True,
)
VGB2_TARGET = Claim(
    "VGB2-target",
    "With exact rewards at leaves the walk's law there is the target, whatever the value says inside the tree.",
    _SOURCE,
    "largest median total variation distance beyond chance",
    20,
    "20 seeds: shown where 72 % of all seeds are below it",
    target_at_leaves,
    "generation/long_run",
    of_experiments=True,
    of_share=True,
)
