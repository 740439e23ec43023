"""Weights of the simplified two-layer model that make it a k-gram estimator, and the gradient there; nothing is trained.

Varre et al. 2025, section 4 and appendices E to G. All float64. Of the printed formulas these are corrected: 30c, 32 and 36c have row and
column swapped, so that a position would attend to the future; lemma D.1 needs r1[i] minus its mean, as lemma G.1 has; the matched score
of appendix E is (k - 1) c and not (k - 1) c².
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from harness.draw import Draw
from harness.experiments.ngrams.constructions import model
from tasks.ngrams.in_context import InContextNgram

FLOOR = 1e-8  # added to a probability before its logarithm, as in the paper's loss
BATCH = 512  # strings


def lag_set(task: InContextNgram, lags: Sequence[int], c: float) -> Any:
    """Equation 36, corrected: the estimator of a set of lags for this length. Head h copies lag h, and lag h - 1 at the last position.

    There a key holds what the query asks for, so the last position always matches itself, which the paper does not say: the token there
    counts even where it does not follow the lags (`estimate` with `itself`).
    """
    made, identity = model(task), torch.eye(task.alphabet, dtype=torch.float64)
    rows = torch.arange(task.length)
    with torch.no_grad():
        for h in lags:
            block = slice(h * task.alphabet, (h + 1) * task.alphabet)
            made.scores[0, h - 1, rows, (rows - h).clamp(min=0)] = c
            made.scores[0, h - 1, -1] = 0
            made.scores[0, h - 1, -1, task.length - h] = c
            made.value[0, h - 1] = identity
            made.query[0, block, block] = math.sqrt(c) * identity
            made.key[0, block, block] = math.sqrt(c) * identity
    return made


def estimate(tokens: Tensor, lags: Sequence[int], alphabet: int, itself: bool = False) -> tuple[Tensor, Tensor]:
    """p̂ [B, S] of Definition 2.1 and F.2 for tokens [B, T], and whether a string has a match, and none among the first max(lags) places.

    Those copy the first token for one that is not there, so the construction differs from the estimator where they match. itself:
    whether the last position counts in any case.
    """
    length, most = tokens.shape[1], max(lags, default=0)
    matches = torch.ones(tokens.shape, dtype=torch.bool)
    for lag in lags:
        source = (torch.arange(length) - lag).clamp(min=0)
        matches &= tokens[:, source] == tokens[:, length - lag, None]
    matches[:, -1] |= itself
    clear = matches[:, most:].any(1) & ~matches[:, :most].any(1)
    counts = (torch.nn.functional.one_hot(tokens, alphabet) * matches[..., None]).sum(1).double()
    return counts / counts.sum(-1, keepdim=True).clamp(min=1), clear


def answer(made: Any, tokens: Tensor) -> Tensor:
    """p of the last position [B, S] for tokens [B, T]."""
    last = torch.full((1, len(tokens), 1), tokens.shape[1] - 1)
    return made(tokens[None], (last,))[0, :, 0].exp() - FLOOR


def gradients(made: Any, task: InContextNgram, sequences: int, seed: int = 0) -> dict[str, tuple[float, float]]:
    """Of each block of weights the norm of the mean gradient of the loss over strings, and the Monte-Carlo floor of that norm: what it
    would be on average were the true gradient 0, sqrt(Σ variance / batches)."""
    draw = Draw(torch.tensor([seed]), "data")
    batches: dict[str, list[Tensor]] = {name: [] for name, _ in made.named_parameters()}
    for first in range(0, sequences, BATCH):
        batch = task.sample(draw.rows(first), min(BATCH, sequences - first))
        made.zero_grad()
        said = made(batch.inputs, (torch.full((1, batch.inputs.shape[1], 1), task.length - 1),))
        (-(batch.targets.double() * said).sum(-1).mean()).backward()
        for name, parameter in made.named_parameters():
            batches[name].append(parameter.grad.flatten().clone())
    out = {}
    for name, parts in batches.items():
        stacked = torch.stack(parts)
        floor = float((stacked.var(0) / len(stacked)).sum().sqrt()) if len(stacked) > 1 else math.nan
        out[name] = float(stacked.mean(0).norm()), floor
    return out
