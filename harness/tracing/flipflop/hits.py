"""How wrongly a model answers the read at the end of every string of a corpus."""

from torch import Tensor

from harness.tracing.flipflop.corpus import Corpus
from harness.tracing.last_logits import Model, logits_at
from tasks.flipflop.flipflop import SYMBOL


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
