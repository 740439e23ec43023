"""Estimates of the next token's law from one string: how often each token followed what the last tokens match (Definition 2.1, F.2).

A set of lags N ⊆ {1, …, n - 1} matches a place i where x_{i-h} = x_{T+1-h} for every h in N. The k-gram estimator has N = {1, …, k - 1}.
"""

import itertools

import torch
from torch import Tensor

PSEUDO_COUNTS = (0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 40.0)  # among which the best smoothing is sought
SMOOTHINGS = (1.0, 2.0, 5.0, 12.0)  # with which a model is compared at every look

Lags = tuple[int, ...]


def lag_sets(order: int) -> list[Lags]:
    """Every set of lags below the order: those of the k-grams first, then the others."""
    contiguous = [tuple(range(1, k)) for k in range(1, order + 1)]
    every = [lags for size in range(order) for lags in itertools.combinations(range(1, order), size)]
    return contiguous + [lags for lags in every if lags not in contiguous]


def name(lags: Lags) -> str:
    """ "2-gram" for (1,), "lags 1,3" for (1, 3)."""
    if lags == tuple(range(1, len(lags) + 1)):
        return f"{len(lags) + 1}-gram"
    return f"lags {','.join(map(str, lags))}"


def counts(inputs: Tensor, lags: Lags, alphabet: int, order: int, last: bool) -> Tensor:
    """How often each token stands at a matching place i ≥ n, counted from 1: the paper's code skips the first n - 1 places.

    float32 [R, B, 1, S] for the token after the string if `last`, else [R, B, T, S] for the token after each position.
    """
    length = inputs.shape[-1]
    first = order - 1  # the first place that counts, from 0
    tokens = torch.nn.functional.one_hot(inputs[..., first:], alphabet).to(torch.float32)
    # [R, B, K, places]: x at place - lag beside x at position + 1 - lag
    positions = torch.arange(length - 1 if last else 0, length, device=inputs.device)
    places = torch.arange(first, length, device=inputs.device)
    matches = (places <= positions[:, None]).expand(*inputs.shape[:-1], -1, -1)
    for lag in lags:
        matches = matches & (inputs[..., positions + 1 - lag, None] == inputs[..., None, places - lag])
    return matches.to(torch.float32) @ tokens


def smoothed(counts: Tensor, pseudo: float) -> Tensor:
    """(count + a) / (all + S a), [..., S]: for the n-gram with a = α it is the Bayes predictor."""
    return (counts + pseudo) / (counts.sum(-1, keepdim=True) + counts.shape[-1] * pseudo)
