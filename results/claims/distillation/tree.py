"""PD-P11 and PD-P12: which levels of a tree of parities a teacher finds when, and which checkpoints teach it (Panigrahi et al. 2025)."""

from collections.abc import Mapping

from results.claims.claim import NOT_RUN, PRECONDITION, Claim, Finding, Part, Terms, decide, decide_all, settle
from results.claims.compare import above, between, probability
from results.claims.distillation.parity import LABELS, strategy
from results.claims.distillation.students import median, most_accurate, together
from results.claims.evidence import Condition, Evidence
from results.claims.requirements import common_seeds, gate, in_distribution_set, require, require_all
from results.rows.probe_values import by_step, parts
from results.rows.summary import of_replicates
from results.statistics.comparison import pair_superiority
from results.statistics.intervals import clopper_pearson, quantile

TASK = "hierarchical_parity"
LEARNED = 0.9  # accuracy at its end of a teacher of which there is something to say; ours
DEGREE = 2  # degree 1 is noisy, as the thesis says


def levels_one_by_one(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """In most teachers each node on the way to a class is largest in the output at a step of its own, and `value` times the outside.

    At the first of these steps the last node must not stand out yet: of nodes that rise together and stay, noise decides which is
    largest when.
    """
    rows = {} if evidence.measured is None else by_step(evidence.measured, "monomials")
    probed = (teacher for teacher in _teachers(evidence) if any(replicate.key in rows for replicate in teacher.replicates))
    teacher = next(probed, None)
    if teacher is None:
        settle(NOT_RUN, "no perceptron on a tree of parities has monomials rows: manyseeds probe STORE --probe monomials")
    test = in_distribution_set(evidence)
    require([teacher], [test], needs)
    _gate_learned(teacher, test, terms.gate)
    found = of_replicates(teacher.finished, rows)
    peaks = [_peaks(steps) for steps in found]
    require_all(len(peaks), len(teacher.finished), needs, "teachers were probed")
    good = sum(_one_by_one(nodes, steps, terms.value) for nodes, steps in zip(peaks, found, strict=True))
    share = clopper_pearson(good, len(peaks))
    texts = [
        f"node {node} at step {quantile([nodes[node][0] for nodes in peaks], 0.5):,.0f}, "
        f"{quantile([nodes[node][1] for nodes in peaks], 0.5):.1f} times the outside"
        for node in sorted(peaks[0])
    ]
    return decide(
        *above([share], 0.5),
        f"largest |correlation| of sets of {DEGREE}, medians: {', '.join(texts)}; one by one in {good} of {len(peaks)} "
        f"{between(share)}",
        f"in more than half of all teachers every level must be {terms.value:g} times the outside, at a step of its own, and the last "
        "one less than that at the step of the first",
    )


def _teachers(evidence: Evidence) -> list[Condition]:
    """Perceptrons trained on the labels of a tree of parities."""
    return [condition for condition in evidence.of_task(TASK) if strategy(condition) == LABELS]


def _peaks(steps: Mapping[int, Mapping[str, float]]) -> dict[int, tuple[int, float]]:
    """By node: the step at which the sets inside are largest, and their ratio to those outside at that step."""
    places = (parts(item, "node={n} degree={n} {word}") for items in steps.values() for item in items)
    nodes = sorted({int(place[0]) for place in places if place})
    if not nodes:
        settle(NOT_RUN, "the monomials rows name no node")
    peaks = {}
    for node in nodes:
        inside = f"node={node} degree={DEGREE} inside"
        if any(inside not in items for items in steps.values()):
            settle(NOT_RUN, f"the monomials rows have no degree {DEGREE}")
        at = max(sorted(steps), key=lambda step: steps[step][inside])
        peaks[node] = at, _ratio(steps[at], node)
    return peaks


def _ratio(items: Mapping[str, float], node: int) -> float:
    return items[f"node={node} degree={DEGREE} inside"] / max(items[f"node={node} degree={DEGREE} outside"], 1e-12)


def _one_by_one(nodes: Mapping[int, tuple[int, float]], steps: Mapping[int, Mapping[str, float]], value: float) -> bool:
    """Whether all nodes stand out at steps of their own, and the last of them not at the step of the first."""
    if len({step for step, _ in nodes.values()}) < len(nodes) or min(ratio for _, ratio in nodes.values()) < value:
        return False
    first, last = (pick(nodes, key=lambda node: nodes[node][0]) for pick in (min, max))
    return _ratio(steps[nodes[first][0]], last) < value


def pairs_inside_are_best(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Compare by seed the final accuracy of pairs inside the transition with pairs that have one outside, and with single ones."""
    test = in_distribution_set(evidence)
    members: dict[str, list[Condition]] = {"pairs inside": [], "pairs with one outside": [], "single ones inside": []}
    for condition in evidence.conditions:
        kind = _kind(condition)
        if kind is not None:
            members[kind].append(condition)
    empty = [kind for kind, conditions in members.items() if not conditions]
    if empty:
        settle(NOT_RUN, f"no student is of {empty[0]}")
    everyone = [condition for conditions in members.values() for condition in conditions]
    require(everyone, [test], needs)
    _gate_learned(max(_teachers(evidence), key=lambda teacher: teacher.settings["model.width"]), test, terms.gate)
    means = {
        kind: together([condition.accuracy_by_seeds(test) for condition in conditions]) for kind, conditions in members.items()
    }
    inside, outside, single = means.values()
    both = outside.keys() & single.keys()
    if both and all(outside[seeds] == single[seeds] for seeds in both):
        settle(
            PRECONDITION,
            "pairs with one checkpoint outside end exactly as single ones inside do, so the checkpoint outside teaches as the last one "
            "does: take one that does not",
            f"mean accuracy at the end, medians of seeds: {median(inside):.3f} of pairs inside, {median(outside):.3f} of the others",
        )
    compared = []
    for kind in ("pairs with one outside", "single ones inside"):
        common = common_seeds([inside, means[kind]], needs, "have all students")
        gains = [inside[seeds] - means[kind][seeds] - terms.value for seeds in common]
        chance, interval = pair_superiority(gains, 1 - 0.05 / 2)
        text = f"than {kind} ({median(means[kind]):.3f}): {probability(chance, interval)}"
        compared.append(Part(interval.low > 0.5, interval.high < 0.5, text))
    best = most_accurate(members["pairs inside"], test)
    return decide_all(
        compared,
        f"mean accuracy at the end, medians of seeds: {median(inside):.3f} of pairs inside; higher ",
        f"means over all such students must differ by more than {terms.value:g} in most seeds",
        f"; the best pair is {best.name}, {median(best.accuracy_by_seeds(test)):.3f}",
    )


def _kind(condition: Condition) -> str | None:
    """The kind of a student by its checkpoints: inside means the first step with an accuracy, outside some steps before or later."""
    settings = condition.settings
    if settings.get("task.name") != TASK or settings.get("stage.labels") != "teacher":
        return None
    rules = [checkpoint["at"] for checkpoint in settings["stage.teacher.checkpoints"] if checkpoint["at"] != "last"]
    if not rules or not all(isinstance(rule, dict) for rule in rules):
        return None
    outside = any(rule["plus"] != 0 for rule in rules)
    return {(1, False): "single ones inside", (2, False): "pairs inside", (2, True): "pairs with one outside"}.get(
        (len(rules), outside)
    )


def _gate_learned(teacher: Condition, test: str, share: float) -> None:
    values = teacher.accuracy_by_seeds(test).values()
    learned = sum(value >= LEARNED for value in values)
    gate(learned, len(values), share, f"teachers are right in {LEARNED:.0%} at their end", "must be")


_SOURCE = "Panigrahi et al. 2025; Liu's thesis"
P11 = Claim(
    "PD-P11",
    "A teacher picks up the levels of a tree of parities at different steps.",
    f"{_SOURCE}, figure 4.20, no numbers printed",
    "times that a level's correlation must be that outside, at its largest",
    10,
    "10 replicates: that most do, where 92 % of all do",
    levels_one_by_one,
    "distillation/p11",
)
P12 = Claim(
    "PD-P12",
    "A student of two checkpoints inside the transition ends more accurate than one with a checkpoint outside it, and than one of a "
    "single checkpoint.",
    f"{_SOURCE}, figures 4.21 and 4.22, no numbers printed",
    "accuracy by which it must be more, on average over such students",
    10,
    "10 replicates, two comparisons: that it does, where each holds in 98 % of all seeds",
    pairs_inside_are_best,
    "distillation/p12",
)
