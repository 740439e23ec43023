"""PD-P11 and PD-P12: which levels of a tree of parities a teacher finds when, and which checkpoints teach it (Panigrahi et al. 2025)."""

import json
from collections.abc import Mapping, Sequence
from math import comb

from results.claims.claim import NOT_RUN, Claim, Finding, Terms, decide, settle
from results.claims.compare import above, between, probability
from results.claims.distillation.parity import LABELS, strategy
from results.claims.distillation.students import median
from results.claims.evidence import Condition, Evidence
from results.claims.requirements import common_seeds, gate, in_distribution_set, require, require_all
from results.rows.probe_values import parts
from results.rows.summary import of_replicates
from results.statistics.comparison import pair_superiority
from results.statistics.intervals import CONFIDENCE, Interval, clopper_pearson, quantile

TASK = "hierarchical_parity"
LEARNED = 0.9  # accuracy at its end of a teacher of which there is something to say; ours
DEGREE = 2  # degree 1 is noisy, as the thesis says
# checkpoints inside the transition from which the pair is chosen, as in the thesis; of fewer, the best may be left out
CANDIDATES = 5


def levels_one_by_one(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """In most teachers each node on the way to a class is largest in the output at a step of its own, and `value` times the outside.

    At the first of these steps the last node must not stand out yet: of nodes that rise together and stay, noise decides which is
    largest when. Nodes that share a kept step may differ by less than two such steps, which counts neither way.
    """
    rows = evidence.measured_by_step("monomials")
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
    answers = [_one_by_one(nodes, steps, terms.value) for nodes, steps in zip(peaks, found, strict=True)]
    good, tied = answers.count(True), answers.count(None)
    share = Interval(clopper_pearson(good, len(peaks)).low, clopper_pearson(good + tied, len(peaks)).high)
    texts = [
        f"node {node} at step {quantile([nodes[node][0] for nodes in peaks], 0.5):,.0f}, "
        f"{quantile([nodes[node][1] for nodes in peaks], 0.5):.1f} times the outside"
        for node in sorted(peaks[0])
    ]
    return decide(
        *above([share], 0.5),
        f"largest |correlation| of sets of {DEGREE}, medians: {', '.join(texts)}; one by one in {good} of {len(peaks)}, "
        f"and in {tied} more levels share a kept step, which counts neither way {between(share)}",
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
    if len(nodes) < 2:
        settle(NOT_RUN, "the monomials rows name fewer than two nodes")
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


def _one_by_one(nodes: Mapping[int, tuple[int, float]], steps: Mapping[int, Mapping[str, float]], value: float) -> bool | None:
    """Whether all nodes stand out at steps of their own, and the last of them not at the step of the first.

    None where nothing speaks against it but nodes that share a step.
    """
    own = {step for step, _ in nodes.values()}
    first, last = min(own), max(own)
    together = first < last and all(_ratio(steps[first], node) >= value for node in nodes if nodes[node][0] == last)
    if together or min(ratio for _, ratio in nodes.values()) < value:
        return False
    return None if len(own) < len(nodes) else True


def best_pair_is_inside(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """Compare by seed the final accuracy of each pair inside the transition with all pairs that have one outside and all single ones.

    The claim holds where one pair is above all of these, and is refuted where every two of the single ones are a pair and every pair
    is below one of them; intervals are corrected for the number of pairs, and of these others. A pair whose checkpoint outside teaches
    as the last one does is a single one, as the thesis takes its pairs with 6M to be. Where all such pairs of a study end exactly as
    single ones, it need not have one of each single one.
    """
    test = in_distribution_set(evidence)
    pairs_inside, one_outside, singles = students = _students(evidence)
    inside = frozenset[str]().union(*(_rules(condition) for condition in singles))
    if len(inside) < CANDIDATES:
        settle(
            NOT_RUN, f"students of a single checkpoint inside the transition are of {len(inside)}; the claim needs {CANDIDATES}"
        )
    for condition in pairs_inside:
        if not _rules(condition) <= inside:
            settle(NOT_RUN, f"a checkpoint of {condition.name} has no student of it alone")
    everyone = [*pairs_inside, *one_outside, *singles]
    require(everyone, [test], needs)
    _gate_learned(max(_teachers(evidence), key=lambda teacher: teacher.settings["model.width"]), test, terms.gate)
    accuracy = {condition.name: condition.accuracy_by_seeds(test) for condition in everyone}
    seeds = common_seeds(accuracy.values(), needs, "have all students")
    pairs, outside, single = ([condition.name for condition in conditions] for conditions in students)
    alike = all(any(accuracy[name] == accuracy[other] for other in single) for name in outside)
    if not alike:
        _require_one_outside_each(singles, one_outside)
    rivals = [*outside, *single]
    confidence = 1 - (1 - CONFIDENCE) / max(len(pairs), len(rivals))
    tests = {
        pair: {
            rival: pair_superiority([accuracy[pair][each] - accuracy[rival][each] - terms.value for each in seeds], confidence)
            for rival in rivals
        }
        for pair in pairs
    }
    lowest = {pair: min(interval.low for _, interval in tests[pair].values()) for pair in pairs}
    highest = {pair: min(interval.high for _, interval in tests[pair].values()) for pair in pairs}
    best = max(pairs, key=lambda pair: (lowest[pair], median(accuracy[pair])))
    closest = (min(names, key=lambda rival: tests[best][rival][0]) for names in (outside, single))
    texts = [f"{rival} ({median(accuracy[rival]):.3f}), {probability(*tests[best][rival])}" for rival in closest]
    all_pairs = len({_rules(condition) for condition in pairs_inside}) == comb(len(inside), 2)
    return decide(
        max(lowest.values()) > 0.5,
        all_pairs and max(highest.values()) < 0.5,
        f"accuracy at the end, medians of seeds: {median(accuracy[best]):.3f} of the best pair, {best}; higher than the closest pair "
        f"with one outside, {texts[0]}; than the closest single one, {texts[1]}"
        f"{'; all pairs with one outside end exactly as single ones, so it teaches as the last one does' if alike else ''}",
        f"one pair must be higher by more than {terms.value:g} than each of all those, in most seeds, in intervals corrected for the "
        f"choice of pair{'' if all_pairs else '; as not every two single ones are a pair here, nothing can refute it'}",
    )


def _students(evidence: Evidence) -> tuple[list[Condition], list[Condition], list[Condition]]:
    """Students of a pair inside the transition, of a pair with one outside, and of a single checkpoint inside; not run if any lack."""
    members: dict[str, list[Condition]] = {"pair inside": [], "pair with one outside": [], "single one inside": []}
    for condition in evidence.conditions:
        kind = _kind(condition)
        if kind is not None:
            members[kind].append(condition)
    empty = [kind for kind, conditions in members.items() if not conditions]
    if empty:
        settle(NOT_RUN, f"no student is of a {empty[0]}")
    return members["pair inside"], members["pair with one outside"], members["single one inside"]


def _require_one_outside_each(singles: Sequence[Condition], one_outside: Sequence[Condition]) -> None:
    """Not run unless the checkpoint of each single one is in a pair with one outside too."""
    paired = frozenset[str]().union(*(_rules(condition) for condition in one_outside))
    for condition in singles:
        if not _rules(condition) <= paired:
            settle(NOT_RUN, f"no student is of the checkpoint of {condition.name} and one outside the transition")


def _rules(condition: Condition) -> frozenset[str]:
    """What leads to the checkpoints of a student, but for the last one."""
    return frozenset(
        json.dumps(checkpoint["at"], sort_keys=True)
        for checkpoint in condition.settings["stage.teacher.checkpoints"]
        if checkpoint["at"] != "last"
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
    return {(1, False): "single one inside", (2, False): "pair inside", (2, True): "pair with one outside"}.get(
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
    "For some two checkpoints inside the transition, a student of them ends more accurate than one of any two with one outside it, and "
    "than one of any single checkpoint inside.",
    f"{_SOURCE}, figures 4.21 and 4.22, no numbers printed",
    "accuracy by which it must be more",
    10,
    "10 replicates, ten pairs: that one does, where it is the best of all in 98 % of all seeds",
    best_pair_is_inside,
    "distillation/p12",
    of_share=True,
)
