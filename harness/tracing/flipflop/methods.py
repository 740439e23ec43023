"""The methods that `manyseeds trace` compares: the trace itself, and scores of events of which the k highest are taken."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from harness.tracing.flipflop.baselines import last_write, leave_one_out, lime, random_scores
from harness.tracing.flipflop.network import attends, attention, gradient_input, gradient_shap, rollout
from harness.tracing.flipflop.prompt import Prompt
from harness.tracing.flipflop.trace import Evidence
from harness.tracing.scores import captum
from results.errors import StudyError

TRACE = "trace"


@dataclass(frozen=True)
class Case:
    """What a method may look at: the model, the prompt, the tracer's own evidence and the corpus seed."""

    model: Any
    prompt: Prompt
    given: Evidence
    seed: int


@dataclass(frozen=True)
class Method:
    """scores(case): float64 [P - 1]. inside: needs a causal transformer of its own token table; library: needs captum."""

    scores: Callable[[Case], Tensor]
    inside: bool = False
    library: bool = False


BASELINES: dict[str, Method] = {
    "random": Method(lambda case: random_scores(case.prompt)),
    "last-write": Method(lambda case: last_write(case.prompt)),
    "leave-one-out": Method(lambda case: leave_one_out(case.model, case.prompt, case.seed)),
    "lime": Method(lambda case: lime(case.given)),
    "attention": Method(lambda case: attention(case.model, case.prompt), inside=True),
    "rollout": Method(lambda case: rollout(case.model, case.prompt), inside=True),
    "gradient-input": Method(lambda case: gradient_input(case.model, case.prompt), inside=True, library=True),
    "gradient-shap": Method(lambda case: gradient_shap(case.model, case.prompt, case.seed), inside=True, library=True),
}
METHODS = (TRACE, *BASELINES)


def asked(names: Sequence[str], model: Any) -> tuple[list[str], list[str]]:
    """(methods, why others are left out) for a model; no names: all that it allows. ValueError where one that is named is not possible."""
    for name in names:
        if name not in METHODS:
            raise StudyError(f"--method {name} must be one of {', '.join(BASELINES)}, or {TRACE} for the trace alone")
    chosen, left = [], []
    for name in dict.fromkeys([TRACE, *(names or BASELINES)]):
        reason = _impossible(BASELINES[name], model) if name in BASELINES else None
        if reason is None:
            chosen.append(name)
        elif names:
            raise StudyError(f"--method {name}: {reason}")
        else:
            left.append(f"{name} is left out: {reason}")
    return chosen, left


def _impossible(method: Method, model: Any) -> str | None:
    if method.inside and not attends(model):
        return "it looks into causal transformers with an untied head, and this model is another"
    if method.library:
        try:
            captum()
        except ValueError as error:
            return str(error)
    return None
