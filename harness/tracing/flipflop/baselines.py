"""What a trace is compared with, for any model: scores of the events before the read, float64 [P - 1], the higher the likelier a cause."""

import torch
from torch import Tensor

from harness.tracing.flipflop.corpus import refilled
from harness.tracing.flipflop.hits import hits
from harness.tracing.flipflop.prompt import Prompt
from harness.tracing.flipflop.trace import Evidence
from harness.tracing.last_logits import Model
from harness.tracing.scores import TRIES, ridge

_TIE = 1000  # site of the order of equal scores


def random_scores(prompt: Prompt) -> Tensor:
    """Equal scores for all events: a random subset, after ties are broken."""
    return torch.zeros(prompt.query, dtype=torch.float64)


def last_write(prompt: Prompt) -> Tensor:
    """The oracle that knows where the answer stands: the last write first, then the nearer events."""
    scores = torch.arange(prompt.query, dtype=torch.float64)
    scores[prompt.last_write] = prompt.query
    return scores


def leave_one_out(model: Model, prompt: Prompt, seed: int) -> Tensor:
    """How much less wrong the model is when one event is replaced by any other, and the rest stays; mean over TRIES strings."""
    here, _ = hits(model, refilled(prompt, torch.ones(1, prompt.query, dtype=torch.bool), prompt.draw(seed)))
    keep = ~torch.eye(prompt.query, dtype=torch.bool).repeat_interleave(TRIES, 0)
    soft, _ = hits(model, refilled(prompt, keep, prompt.draw(seed)))
    return here - soft.view(prompt.query, TRIES).mean(-1)


def lime(given: Evidence, penalty: float = 1.0) -> Tensor:
    """LIME (Ribeiro et al. 2016) on the tracer's own strings: ridge regression of the hit on which events stand in a string."""
    return ridge(given.same[:, :-1], given.hit, penalty)


def top(scores: Tensor, k: int, prompt: Prompt, seed: int) -> tuple[int, ...]:
    """The k events with the highest scores, ascending; equal ones in a random order of the seed."""
    order = prompt.draw(seed).permutation(len(scores), (), _TIE)[0]
    ranked = order[scores[order].argsort(descending=True, stable=True)]
    return tuple(sorted(ranked[:k].tolist()))
