"""S_rep: how often the error comes back when the traced events stand in fresh random strings (section 5 of Sun et al. 2025).

The paper's four distributions fill the gaps of a text with language models; here they are the four families of `corpus`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.tracing.flipflop.corpus import FAMILIES, conditioned
from harness.tracing.flipflop.hits import hits
from harness.tracing.flipflop.prompt import Prompt
from harness.tracing.last_logits import Model

STRINGS = 1024  # of a family


@dataclass(frozen=True)
class Replay:
    """By family: soft (mean probability of a wrong symbol), hard (share of wrong reads), preserved (share with the prompt's truth).

    A family whose strings can't hold the events is left out.
    """

    soft: dict[str, float]
    hard: dict[str, float]
    preserved: dict[str, float]

    @property
    def srep(self) -> float:
        """Mean over the families of the share of wrong reads; nan where there is none."""
        return float(np.mean(list(self.hard.values()))) if self.hard else math.nan


def replay(
    model: Model, prompt: Prompt, events: Sequence[int], seed: int, strings: int = STRINGS, families: Sequence[str] = FAMILIES
) -> Replay:
    """The events in fresh strings; sets of events that are compared share their random numbers, family by family."""
    rates = Replay({}, {}, {})
    for family in families:
        corpus = conditioned(prompt, sorted(events), family, strings, prompt.draw(seed))
        if corpus is None or not bool(corpus.known.any()):
            continue
        soft, hard = hits(model, corpus)
        rates.soft[family] = float(soft[corpus.known].mean())
        rates.hard[family] = float(hard[corpus.known].mean())
        rates.preserved[family] = float((corpus.truth == prompt.truth)[corpus.known].double().mean())
    return rates
