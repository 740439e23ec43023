"""How wrongly a model answers the read at the end of every string of a corpus."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from harness.tracing.corpus import Corpus
from tasks.flipflop.flipflop import SYMBOL

_TOKENS = 2**14  # of a forward pass

Model = Callable[..., Tensor]  # tokens int64 [R, B, T], needed → logits; R = 1


@torch.no_grad()
def logits_at(model: Model, tokens: Tensor, query: Tensor, size: int | None = None) -> Tensor:
    """Logits float64 [N, V] of what follows position query[i] of string i; tokens int64 [N, T], what stands behind it is not read.

    size: strings of a forward pass.
    """
    found = []
    device = _device(model)
    size = size or max(1, _TOKENS // tokens.shape[1])
    order = query.argsort(stable=True)  # strings of like lengths together
    for rows in order.split(size):
        ends = query[rows].to(device)
        part = tokens[rows, : int(ends.max()) + 1].to(device)
        found.append(model(part[None], needed=(ends[None, :, None],))[0, :, 0].double().cpu())
    return torch.cat(found)[order.argsort()]


def _device(model: Any) -> torch.device:
    return next(model.parameters()).device if isinstance(model, nn.Module) else torch.device("cpu")


def wrongness(logits: Tensor, truth: Tensor) -> tuple[Tensor, Tensor]:
    """(soft, hard) float64 [N]: the probability of a wrong symbol among the symbols, and whether the likeliest symbol is wrong.

    logits [N, V], truth int64 [N], the number of the right symbol.
    """
    among = logits[:, SYMBOL:]
    right = among.softmax(-1).gather(-1, truth[:, None])[:, 0]
    return 1 - right, (among.argmax(-1) != truth).double()


def hits(model: Model, corpus: Corpus) -> tuple[Tensor, Tensor]:
    """(soft, hard) float64 [N] of a corpus, where `known`; a string without a truth has zeros, which mean nothing."""
    logits = logits_at(model, corpus.tokens, corpus.query)
    soft, hard = wrongness(logits, corpus.truth.clamp(min=0))
    return soft.where(corpus.known, 0), hard.where(corpus.known, 0)
