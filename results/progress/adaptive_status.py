"""The state of an adaptive study in sentences, from its newest manifest and its rows; for the status and the report."""

from collections.abc import Sequence

from results.rows.plural import counted, distinct
from results.rows.summary import Replicate
from results.statistics.adaptive_rules import PENDING, Decision, Error, Rule, decide
from results.store.manifest import Manifest

CAUTION = (
    "The interval at a stop is not one of a fixed number of replicates: it was chosen for being narrow. "
    "docs/guides/adaptive.md says how often it covers."
)
TAKEN_AS_FIXED = (
    "Adaptive: the errors decided how many replicates each condition has, and the intervals and p-values above take these numbers as "
    "fixed. docs/guides/adaptive.md says how often the interval of the rule covers."
)


def decisions_of(rule: Rule, manifest: Manifest, replicates: Sequence[Replicate]) -> dict[str, Decision]:
    """Decide on every condition of a manifest; seeds that it does not plan count as not ended."""
    errors: dict[str, list[Error]] = {condition["name"]: [] for condition in manifest["conditions"]}
    for replicate in replicates:
        if replicate.stage == 0:
            errors[replicate.condition].append(error_of(replicate, rule.set))
    return decide(rule, {name: (*own, *[PENDING] * (rule.maximum - len(own))) for name, own in errors.items()})


def error_of(replicate: Replicate, name: str, retry: bool = False) -> Error:
    """A replicate's error rate on a set: infinity if it diverged, None if it failed, PENDING if it has not ended.

    retry: a failed one is to be trained again, so it has not ended.
    """
    if replicate.status == "failed":
        return PENDING if retry else None
    if replicate.ending(name) == "missing":
        return PENDING
    return replicate.error(name)


def lines(manifest: Manifest, replicates: Sequence[Replicate]) -> list[str]:
    """A line about the rule and one for each condition; [] where the number of replicates is fixed."""
    stated = manifest.get("adaptive")
    if not stated:
        return []
    rule = Rule(**stated)
    head = f"Adaptive: {rule.minimum} to {rule.maximum} replicates a condition, until {rule.words}."
    return [
        head,
        *(_line(rule, name, decision, manifest) for name, decision in decisions_of(rule, manifest, replicates).items()),
    ]


def _line(rule: Rule, name: str, decision: Decision, manifest: Manifest) -> str:
    looks = counted(decision.looks, "look")
    planned = next(condition["replicates"] for condition in manifest["conditions"] if condition["name"] == name)
    if decision.reason == "narrow":
        text = f"stopped at {decision.target}: the interval was narrow enough ({_size(rule, decision)})"
    elif decision.reason == "max":
        text = f"stopped at {decision.target}, the maximum, with the interval still at {_size(rule, decision)}"
    elif decision.reason == "baseline":
        text = f"stopped at {decision.target}, as the baseline of the others"
    elif rule.budget is not None and planned < decision.target:
        text = f"at {planned}: the budget of {rule.budget:g} slot-hours went elsewhere or is spent before the look at {decision.target}"
    else:
        text = f"goes on to {decision.target}, {counted(decision.waiting, 'seed')} to end before the next look"
    failed = f"; {decision.failed} failed and left out" if decision.failed else ""
    return f"{name}: {looks}, {text}{failed}"


def _size(rule: Rule, decision: Decision) -> str:
    if decision.size is None:
        return "no interval"
    size = distinct(decision.size, 3, "g", rule.limit).replace("inf", "∞")
    return f"±{size}" if rule.baseline is None else f"upper/lower {size}"
