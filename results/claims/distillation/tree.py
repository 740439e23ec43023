"""PD-P11 and PD-P12: which levels of a tree of parities a teacher finds when, and which checkpoints teach it (Panigrahi et al. 2025)."""

from collections.abc import Mapping, Sequence
from statistics import fmean

import numpy as np

from results.claims.claim import NOT_RUN, PRECONDITION, TOO_FEW, Claim, Finding, Terms, decide, settle
from results.claims.compare import between
from results.claims.distillation.parity import LABELS, strategy
from results.claims.distillation.students import BySeed, right
from results.claims.evidence import Condition, Evidence
from results.claims.requirements import in_distribution_set, require
from results.rows.probe_values import by_step, parts
from results.rows.summary import of_replicates
from results.statistics.comparison import pair_superiority
from results.statistics.intervals import clopper_pearson, quantile

TASK = "hierarchical_parity"
LEARNED = 0.9  # accuracy at its end of a teacher of which there is something to say; ours
DEGREE = 2  # degree 1 is noisy, as the thesis says


def levels_one_by_one(evidence: Evidence, terms: Terms, needs: int) -> Finding:
    """In most teachers each node on the way to a class is largest in the output at a step of its own, and `value` times the outside."""
    rows = {} if evidence.measured is None else by_step(evidence.measured, "monomials")
    probed = (teacher for teacher in _teachers(evidence) if any(replicate.key in rows for replicate in teacher.replicates))
    teacher = next(probed, None)
    if teacher is None:
        settle(NOT_RUN, "no perceptron on a tree of parities has monomials rows: manyseeds probe STORE --probe monomials")
    test = in_distribution_set(evidence)
    require([teacher], [test], needs)
    _gate(teacher, test, terms.gate)
    finished = [replicate for replicate in teacher.replicates if replicate.status == "finished"]
    peaks = [_peaks(steps) for steps in of_replicates(finished, rows)]
    if len(peaks) < max(needs, len(finished)):
        settle(TOO_FEW, f"{len(peaks)} of {len(finished)} teachers were probed; the claim needs all, and at least {needs}")
    good = sum(
        len({step for step, _ in nodes.values()}) == len(nodes) and min(ratio for _, ratio in nodes.values()) >= terms.value
        for nodes in peaks
    )
    share = clopper_pearson(good, len(peaks))
    texts = [
        f"node {node} at step {quantile(np.array([float(nodes[node][0]) for nodes in peaks]), 0.5):,.0f}, "
        f"{quantile(np.array([nodes[node][1] for nodes in peaks]), 0.5):.1f} times the outside"
        for node in sorted(peaks[0])
    ]
    return decide(
        share.low > 0.5,
        share.high < 0.5,
        f"largest |correlation| of sets of {DEGREE}, medians: {', '.join(texts)}; at different steps in {good} of {len(peaks)} "
        f"{between(share)}",
        f"in more than half of all teachers every level must be {terms.value:g} times the outside, at a step of its own",
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
        inside, outside = (f"node={node} degree={DEGREE} {side}" for side in ("inside", "outside"))
        if any(inside not in items for items in steps.values()):
            settle(NOT_RUN, f"the monomials rows have no degree {DEGREE}")
        at = max(sorted(steps), key=lambda step: steps[step][inside])
        peaks[node] = at, steps[at][inside] / max(steps[at][outside], 1e-12)
    return peaks


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
    _gate(max(_teachers(evidence), key=lambda teacher: teacher.settings["model.width"]), test, terms.gate)
    means = {kind: _mean(conditions, test) for kind, conditions in members.items()}
    inside, holds, fails, texts = means["pairs inside"], [], [], []
    for kind in ("pairs with one outside", "single ones inside"):
        common = sorted(inside.keys() & means[kind].keys())
        if len(common) < needs:
            settle(TOO_FEW, f"{len(common)} seeds have all students; the claim needs {needs}")
        gains = [inside[seeds] - means[kind][seeds] - terms.value for seeds in common]
        chance, interval = pair_superiority(gains, 1 - 0.05 / 2)
        holds.append(interval.low > 0.5)
        fails.append(interval.high < 0.5)
        texts.append(f"than {kind} ({_said(means[kind])}): P = {chance:.2f} {between(interval)}")
    best = max(members["pairs inside"], key=lambda condition: fmean(right(condition, test).values()))
    return decide(
        all(holds),
        any(fails),
        f"mean accuracy at the end, medians of seeds: {_said(inside)} of pairs inside; higher {'; '.join(texts)}; the best pair is "
        f"{best.name}, {_said(right(best, test))}",
        f"means over all such students must differ by more than {terms.value:g} in most seeds",
    )


def _kind(condition: Condition) -> str | None:
    """The kind of a student by its checkpoints: inside means the first step with an accuracy, outside some steps later."""
    settings = condition.settings
    if settings.get("task.name") != TASK or settings.get("stage.labels") != "teacher":
        return None
    rules = [checkpoint["at"] for checkpoint in settings["stage.teacher.checkpoints"] if checkpoint["at"] != "last"]
    if not rules or not all(isinstance(rule, dict) for rule in rules):
        return None
    outside = any(rule["plus"] > 0 for rule in rules)
    return {(1, False): "single ones inside", (2, False): "pairs inside", (2, True): "pairs with one outside"}.get(
        (len(rules), outside)
    )


def _mean(members: Sequence[Condition], test: str) -> BySeed:
    values = [right(member, test) for member in members]
    common = set.intersection(*(set(by_seed) for by_seed in values))
    return {seeds: fmean(by_seed[seeds] for by_seed in values) for seeds in common}


def _gate(teacher: Condition, test: str, share: float) -> None:
    values = list(right(teacher, test).values())
    learned = sum(value >= LEARNED for value in values)
    if learned < share * len(values):
        settle(
            PRECONDITION,
            f"{learned} of {len(values)} teachers are right in {LEARNED:.0%} at their end; {share:.0%} must be",
        )


def _said(values: BySeed) -> str:
    return f"{quantile(np.array(list(values.values())), 0.5):.3f}"


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
