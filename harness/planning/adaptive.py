"""How many replicates each condition of an adaptive study needs, from its tables: `targets` of `harness.planning.plan`. Pure
functions of rows.

The same rows give the same targets in any order, so a study that was interrupted ends where it would have ended. With a budget they
follow from the seconds in the rows too.
"""

import math
from collections.abc import Mapping

import pyarrow as pa

from harness.planning.plan import replicates_of
from harness.study.config import Study
from results.plain_values import Row
from results.progress.adaptive_status import error_of
from results.rows.summary import replicates_of as known_of
from results.statistics.adaptive_rules import PENDING, Decision, Error, Rule, decide, narrowing
from results.store.manifest import Planned

Errors = dict[str, tuple[Error, ...]]


def errors_of(study: Study, tables: Mapping[str, pa.Table], retry: bool = False) -> Errors:
    """The error of every seed on the rule's set, by condition, in the order of the seeds, up to the rule's maximum.

    tables: replicates, evaluations and failures. retry: failed seeds are to be trained again, so they have not ended.
    """
    rule = rule_of(study)
    hashes = {condition.name: study.set_hashes(condition) for condition in study.conditions}
    seen: Planned = {
        "conditions": [
            {
                "name": name,
                "config": {},
                "sets": {set_name: {"hash": digits} for set_name, digits in own.items()},
                "replicates": 0,
            }
            for name, own in hashes.items()
        ],
        "sets": study.set_entries(),
        "replicates": [replicate.entry() for replicate in replicates_of(study.conditions)],
    }
    out: dict[str, list[Error]] = {condition.name: [] for condition in study.conditions}
    for row in known_of(seen, tables["replicates"], tables["evaluations"], tables["failures"]):
        if row.stage == 0:
            out[row.condition].append(error_of(row, rule.set, retry))
    return {name: tuple(errors) for name, errors in out.items()}


def targets(study: Study, tables: Mapping[str, pa.Table], slots: int = 1, retry: bool = False) -> dict[str, int]:
    """Replicates that each condition is to have next.

    With a budget at most `slots` conditions go on at once: those whose intervals narrow most per hour, as long as the hours expected for
    them are left. A condition that gets nothing keeps the seeds that have ended.
    """
    rule, errors = rule_of(study), errors_of(study, tables, retry)
    decisions = decide(rule, errors)
    wanted = {name: decision.target for name, decision in decisions.items()}
    if rule.budget is None:
        return wanted
    ended = {name: _ended(errors[name], decision) for name, decision in decisions.items()}
    left = rule.budget - spent(study, tables["replicates"])
    if left <= 0:
        return ended
    if any(decision.looks == 0 and decision.waiting for decision in decisions.values()):
        return {name: max(ended[name], rule.minimum) for name in decisions}  # nothing narrows before the first look
    granted = dict(ended)
    for _ in range(slots):
        choice = _best(rule, errors, decisions, granted, hours_each(study, tables["replicates"]), left)
        if choice is None:
            break
        left -= choice[1]
        granted |= choice[0]
    return granted


def most(study: Study, tables: Mapping[str, pa.Table], retry: bool = False) -> dict[str, int]:
    """Replicates that each condition can still come to: the maximum of the rule, or those that it has where it has stopped."""
    rule = rule_of(study)
    decisions = decide(rule, errors_of(study, tables, retry))
    return {name: rule.maximum if decision.reason is None else decision.target for name, decision in decisions.items()}


def spent(study: Study, replicates: pa.Table) -> float:
    """Slot-hours that this study's committed replicates took, of one slot each; packs that failed left no row."""
    return sum(sum(hours) for hours in _hours(study, replicates).values())


def hours_each(study: Study, replicates: pa.Table) -> dict[str, float]:
    """Mean slot-hours of a committed replicate, by condition; for a condition without one, the largest of these means."""
    means = {name: sum(hours) / len(hours) for name, hours in _hours(study, replicates).items() if hours}
    return {condition.name: means.get(condition.name, max(means.values(), default=0.0)) for condition in study.conditions}


def rule_of(study: Study) -> Rule:
    """ValueError where the study has a fixed number of replicates."""
    if study.adaptive is None:
        raise ValueError(f"the study {study.name} has a fixed number of replicates: it has no rule to decide by")
    return Rule(**study.adaptive)


def _best(
    rule: Rule,
    errors: Errors,
    decisions: Mapping[str, Decision],
    granted: Mapping[str, int],
    per_replicate: Mapping[str, float],
    left: float,
) -> tuple[dict[str, int], float] | None:
    """The grant that narrows an interval most per hour, as ({condition: target}, hours), among those that fit into the hours `left`.

    A condition whose grant was begun goes first. None where no grant fits.
    """
    best: tuple[tuple[bool, float], dict[str, int], float] | None = None
    for name, decision in decisions.items():
        if name == rule.baseline or decision.reason is not None or granted[name] >= decision.target:
            continue
        grant = {name: decision.target}
        if rule.baseline is not None:
            grant[rule.baseline] = max(granted[rule.baseline], decision.target)
        hours = sum(
            errors[member][granted[member] : target].count(PENDING) * per_replicate[member] for member, target in grant.items()
        )
        if hours > left:
            continue
        finished = decision.at - decision.failed
        gain = narrowing(rule, decision.size, finished, decision.target - decision.at)
        rank = (granted[name] > decision.at, gain / hours if hours else math.inf)
        if best is None or rank > best[0]:
            best = (rank, grant, hours)
    return None if best is None else (best[1], best[2])


def _ended(errors: tuple[Error, ...], decision: Decision) -> int:
    """How many seeds have ended, counted up to the first that has not, at most the target."""
    first = errors.index(PENDING) if PENDING in errors else len(errors)
    return min(first, decision.target)


def _hours(study: Study, replicates: pa.Table) -> dict[str, list[float]]:
    names = {planned.key: study.conditions[planned.condition].name for planned in replicates_of(study.conditions)}
    out: dict[str, list[float]] = {condition.name: [] for condition in study.conditions}
    rows: list[Row] = replicates.select(["key", "train_s", "evaluate_s"]).to_pylist()
    for row in rows:
        if row["key"] in names:
            out[names[row["key"]]].append((row["train_s"] + row["evaluate_s"]) / 3600)
    return out
