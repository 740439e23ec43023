"""Tracing one wrong read: a corpus around its prompt, how wrong the model is on it, and the events that go with the error.

A trace is a function of the weights, the prompt, the settings and the corpus seed.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from harness.tracing.flipflop.corpus import ANCHORS, FAMILIES, perturbed
from harness.tracing.flipflop.hits import hits
from harness.tracing.flipflop.prompt import Prompt
from harness.tracing.last_logits import Model
from harness.tracing.masking import MASKINGS
from harness.tracing.search import Cause, Search, chosen, search
from results.errors import StudyError

HITS = ("soft", "hard")
TARGETS = ("error", "token")


@dataclass(frozen=True)
class Settings:
    """family, strings, rate, masking: of the corpus (`corpus.perturbed`). anchors: position | offset, where events are looked for.

    hits: soft, the probability of a wrong symbol; hard, whether the likeliest symbol is wrong. target: error, any wrong answer; token, the
    answer that the model gives to the prompt, on the strings whose truth is another one (the paper's fixed target).
    """

    family: str = "type"
    strings: int = 4096
    rate: float = 0.5
    masking: str = "rgrand"
    anchors: str = "position"
    hits: str = "soft"
    target: str = "error"
    search: Search = field(default_factory=Search)

    def __post_init__(self) -> None:
        choices = {"family": FAMILIES, "masking": MASKINGS, "anchors": ANCHORS, "hits": HITS, "target": TARGETS}
        for name, values in choices.items():
            if getattr(self, name) not in values:
                raise StudyError(f"{name} = {getattr(self, name)!r} must be one of {', '.join(values)}")
        if self.strings < 1:
            raise StudyError(f"strings = {self.strings} must be at least 1")
        if not 0 < self.rate <= 1:
            raise StudyError(f"rate = {self.rate} must be above 0 and at most 1")


@dataclass(frozen=True)
class Evidence:
    """same bool [N, P]: which events of the prompt stand in which string; hit float64 [N]; preserved: share of strings with its truth."""

    same: Tensor
    hit: Tensor
    preserved: float


@dataclass(frozen=True)
class Trace:
    """causes: the best set of each size from 1; best: the one with the highest lower bound."""

    causes: list[Cause]
    preserved: float

    @property
    def best(self) -> Cause:
        return self.causes[chosen(self.causes) - 1]

    def of(self, k: int) -> Cause:
        """The best set of k events, or the largest there is."""
        return self.causes[min(k, len(self.causes)) - 1]


def evidence(model: Model, prompt: Prompt, how: Settings, seed: int) -> Evidence:
    """What the model does on the corpus of a prompt; strings without a truth, or beside the target's slice, are left out."""
    corpus = perturbed(prompt, how.family, how.strings, how.rate, prompt.draw(seed), how.anchors, how.masking)
    soft, hard = hits(model, corpus)
    kept = corpus.known
    if how.target == "token":
        kept = kept & (corpus.truth == prompt.truth)
        if prompt.task.symbols > 2:
            raise StudyError(f"target = 'token' is for 2 symbols, and the task has {prompt.task.symbols}: write error")
    hit = soft if how.hits == "soft" else hard
    preserved = float((corpus.truth == prompt.truth)[corpus.known].double().mean())
    return Evidence(corpus.same[kept], hit[kept], preserved)


def trace(model: Model, prompt: Prompt, how: Settings, seed: int) -> Trace:
    """Trace one read. ValueError where no event stands in enough strings."""
    return searched(evidence(model, prompt, how, seed), prompt, how.search)


def searched(given: Evidence, prompt: Prompt, how: Search) -> Trace:
    causes = search(given.same, given.hit, torch.arange(prompt.query).tolist(), how)
    if not causes:
        raise StudyError(
            f"no event of the prompt is in at least {how.support} of the {len(given.hit)} strings: give more strings"
        )
    return Trace(causes, given.preserved)
