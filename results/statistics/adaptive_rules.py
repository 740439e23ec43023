"""Adaptive replicates: the rule of a study, and its decision from the errors so far. Pure functions, without torch and store.

A condition is looked at when its *first* `min`, `min + step`, … `max` seeds have all ended, so seeds that happen to finish early can't
decide. It stops at the first look whose interval is narrow enough. Such an interval can cover less often than one of a fixed number of
replicates; docs/guides/adaptive.md says how often.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from results.errors import StudyError
from results.plain_values import Options, Value
from results.statistics.bootstrap import quantile_ratio
from results.statistics.intervals import Interval, clopper_pearson

PENDING = "pending"  # a seed that has not ended; a failed one is None: left out and counted
Error = float | None | str
_WIDEST = 4.0  # size, in limits, that counts for an interval that is not finite
_RULES = {"zero_error": ("set", "half_width"), "ratio_of_medians": ("set", "baseline", "width")}


@dataclass(frozen=True)
class Rule:
    """A stopping rule, applied at minimum, minimum + step, … maximum replicates.

    limit: of half the width of the 95 % Clopper–Pearson interval of P(no error on `set`); with a `baseline`, of the ratio of the ends of
    the bootstrap interval of the ratio of medians.
    """

    minimum: int
    maximum: int
    step: int
    set: str
    limit: float
    baseline: str | None = None
    budget: float | None = None  # slot-hours: GPU-hours, on CPU core-hours

    @property
    def looks(self) -> tuple[int, ...]:
        return (*range(self.minimum, self.maximum, self.step), self.maximum)

    @property
    def words(self) -> str:
        if self.baseline is None:
            return f"the interval of P(no error on {self.set}) is at most ±{self.limit:g}"
        return (
            f"the interval of the ratio of medians to {self.baseline} on {self.set} has upper/lower of at most {self.limit:g}"
        )


@dataclass(frozen=True)
class Decision:
    """The decision on one condition.

    target: replicates that it needs as far as is known. looks: those made so far. size: of the interval at the last look. reason: None
    while it goes on, else narrow | max | baseline. waiting: seeds below the next look that have not ended. failed: seeds that ended
    without a number and are left out.
    """

    target: int
    looks: int
    at: int
    reason: str | None
    waiting: int
    failed: int
    size: float | None


def parse(replicates: Options, budget: Value = None) -> Rule:
    """Parse a study's `replicates` and `budget` into a rule. Raises ValueError, in one sentence, where something is wrong."""
    _refuse_other(replicates, ("min", "max", "until", "step"), "replicates")
    for key in ("min", "max", "until"):
        if key not in replicates:
            raise StudyError(
                f"replicates.{key} is missing: write {{min: 15, max: 100, until: {{zero_error: {{…}}}}}}, or one number"
            )
    counts = {"step": 10} | {key: replicates[key] for key in ("min", "max", "step") if key in replicates}
    for key, value in counts.items():
        if type(value) is not int or value < 1:
            raise StudyError(f"replicates.{key} = {value!r} must be a whole number of at least 1")
    if counts["min"] >= counts["max"]:
        raise StudyError(
            f"replicates.min = {counts['min']} must be below replicates.max = {counts['max']}: for a fixed number write "
            f"replicates: {counts['max']}"
        )
    until = replicates["until"]
    if not isinstance(until, Mapping) or len(until) != 1:
        raise StudyError(f"replicates.until = {until!r} must give exactly one of {' and '.join(_RULES)}")
    _refuse_other(until, _RULES, "replicates.until")
    [(kind, node)] = until.items()
    where = f"replicates.until.{kind}"
    if not isinstance(node, Mapping):
        raise StudyError(f"{where} = {node!r} must be a mapping with {', '.join(_RULES[kind])}")
    _refuse_other(node, _RULES[kind], where)
    for key in _RULES[kind]:
        if key not in node:
            raise StudyError(f"{where}.{key} is missing: {where} has {', '.join(_RULES[kind])}")
    for key in ("set", "baseline"):
        if key in node and not isinstance(node[key], str):
            raise StudyError(f"{where}.{key} = {node[key]!r} must be a name")
    if kind == "zero_error":
        limit = _number(node["half_width"], f"{where}.half_width", 0, 0.5)
    else:
        limit = _number(node["width"], f"{where}.width", 1, math.inf)
    hours = None if budget is None else _hours(budget)
    return Rule(counts["min"], counts["max"], counts["step"], node["set"], limit, node.get("baseline"), hours)


def first_look(maximum: int) -> int:
    """The default of `replicates.min`: 15, or half of a maximum below 30."""
    return min(15, math.ceil(maximum / 2))


def decide(rule: Rule, errors: Mapping[str, Sequence[Error]], paired: bool = True) -> dict[str, Decision]:
    """Decide what every condition needs, from its errors in the order of its seeds: a rate, infinity where diverged, None, or PENDING.

    With a baseline, a look needs the baseline's seeds below it too, and the baseline goes on as long as another condition does.
    """
    decisions = {name: _decide(rule, errors, name, paired) for name in errors if name != rule.baseline}
    if rule.baseline is not None:
        own = errors[rule.baseline]
        target = max((decision.target for decision in decisions.values()), default=rule.minimum)
        going = any(decision.reason is None for decision in decisions.values())
        waiting = sum(error == PENDING for error in own[:target])
        at = max((decision.at for decision in decisions.values()), default=0)
        looks = sum(look <= at for look in rule.looks)
        reason = None if going or waiting else "baseline"
        decisions[rule.baseline] = Decision(target, looks, at, reason, waiting, own[:at].count(None), None)
    return {name: decisions[name] for name in errors}


def interval_size(rule: Rule, errors: Sequence[Error], baseline: Sequence[Error], paired: bool = True) -> float:
    """The size that `limit` bounds, from the first seeds of a condition and its baseline; infinity where there is no interval.

    A diverged replicate is infinity: it ranks worst and is never without error.
    """
    if rule.baseline is None:
        rates = [error for error in errors if isinstance(error, float)]
        interval = clopper_pearson(sum(error == 0 for error in rates), len(rates))
        return (interval.high - interval.low) / 2
    of_ratio = _ratio(errors, baseline, paired)
    return math.inf if of_ratio is None or not 0 < of_ratio.low < math.inf else of_ratio.high / of_ratio.low


def narrowing(rule: Rule, size: float | None, replicates: int, more: int) -> float:
    """How much `more` replicates should narrow an interval of `size`, as a share of the limit: widths go as 1/√n.

    For a ratio, sizes are logarithms. An interval that is not finite counts as four times the limit, so that its condition does not take
    the whole budget.
    """
    if size is None or not replicates:
        return math.inf
    width = size / rule.limit if rule.baseline is None else math.log(size) / math.log(rule.limit)
    return min(width, _WIDEST) * (1 - math.sqrt(replicates / (replicates + more)))


def _decide(rule: Rule, errors: Mapping[str, Sequence[Error]], name: str, paired: bool) -> Decision:
    own = errors[name]
    baseline = errors[rule.baseline] if rule.baseline is not None else ()
    size, made, at = None, 0, 0
    for look in rule.looks:
        waiting = sum(error == PENDING for error in own[:look]) + sum(error == PENDING for error in baseline[:look])
        if waiting:
            return Decision(look, made, at, None, waiting, own[:at].count(None), size)
        made, at = made + 1, look
        size = interval_size(rule, own[:look], baseline[:look], paired)
        if size <= rule.limit:
            return Decision(look, made, look, "narrow", 0, own[:look].count(None), size)
    return Decision(at, made, at, "max", 0, own[:at].count(None), size)


def _ratio(errors: Sequence[Error], baseline: Sequence[Error], paired: bool) -> Interval | None:
    if paired:
        both = [isinstance(x, float) and isinstance(y, float) for x, y in zip(baseline, errors, strict=True)]
        baseline, errors = (list(itertools.compress(column, both)) for column in (baseline, errors))
    first, second = ([error for error in column if isinstance(error, float)] for column in (baseline, errors))
    if not first or not second:
        return None
    return quantile_ratio(first, second, 0.5, paired).interval


def _hours(budget: Value) -> float:
    if not isinstance(budget, Mapping) or set(budget) != {"gpu_hours"}:
        raise StudyError(f"budget = {budget!r} must be {{gpu_hours: <number>}}: hours of one GPU, or of one core on CPU")
    return _number(budget["gpu_hours"], "budget.gpu_hours", 0, math.inf)


def _number(value: Value, where: str, low: float, high: float) -> float:
    if type(value) not in (int, float) or not low < value < high:
        limits = f"above {low:g}" + (f" and below {high:g}" if math.isfinite(high) else "")
        raise StudyError(f"{where} = {value!r} must be a number {limits}")
    return float(value)


def _refuse_other(given: Options, keys: Sequence[str] | Options, where: str) -> None:
    for key in given:
        if key not in keys:
            raise StudyError(f"{where} has no key {key!r}; keys: {', '.join(keys)}")
