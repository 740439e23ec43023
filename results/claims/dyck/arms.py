"""Conditions of Dyck studies by what they are, and the gate that they all pass."""

from collections.abc import Sequence

import numpy as np

from results.claims.claim import NOT_RUN, settle
from results.claims.evidence import Condition, Evidence, Seeds
from results.claims.requirements import gate_learned, own_sets, require, require_probed
from results.statistics.intervals import Floats, Interval

MINIMAL = "minimal_first_layer"
RESAMPLES = 9999
LEARNED, LEARNERS = 0.03, 0.9  # 97 % right, as the thesis says of all its models; of nine replicates in ten, which is ours


def arms(evidence: Evidence, model: str, attention: str = "learned") -> list[Condition]:
    """The conditions of `dyck` with a model, without the penalty on answers that depend on closed brackets."""
    return [
        each
        for each in evidence.with_settings({"task.name": "dyck", "model.name": model})
        if each.settings.get("model.attention", "learned") == attention and not each.settings.get("train.consistency.weight")
    ]


def gate(evidence: Evidence, conditions: Sequence[Condition], probe: str, needs: int, names: Sequence[str] = ()) -> None:
    """Settle a claim unless every condition has ended, has learned its training distribution and has been probed."""
    for each in conditions:
        require([each], [*own_sets(evidence, each), *names], needs)
    gate_learned(evidence, conditions, most=LEARNED, share=LEARNERS)
    if probe:
        require_probed(evidence, conditions, probe, needs)


def long_set(evidence: Evidence, condition: Condition, scored: str = "closing", sure: float = 0.0) -> str:
    """The set of prefixes more than ten times as long as the training strings, with these options of the task."""
    length = condition.settings["task.length"]
    names = [
        name
        for name, changed in evidence.definitions.items()
        if changed.get("length", 0) > 10 * length
        and changed.get("scored", "closing") == scored
        and changed.get("sure", 0.0) == sure
        and changed.get("complete") is False
    ]
    return names[0] if names else settle(NOT_RUN, "no set holds prefixes more than ten times as long as the training strings")


def middle_95(resampled: Floats) -> Interval:
    """The middle 95 % of what resampled replicates give."""
    low, high = np.quantile(resampled, [0.025, 0.975])
    return Interval(float(low), float(high))


def violation(evidence: Evidence, condition: Condition) -> dict[Seeds, float]:
    """The mean β of a condition's replicates, by seeds."""
    return {each.seeds: values["balance", 0, 0, "beta_mean"] for each, values in evidence.probed(condition, "balance")}
