"""The exact law by which attention is diluted: what models and probes are held against."""

import torch


def diluted(to_predicate: float, to_itself: float, length: int, answer: int) -> tuple[float, float]:
    """a_pred and a_ans for the answer 1 … L where the two scores are these and every other one is 0: the exact law of the theory's
    model, with S = exp(to_predicate) + exp(to_itself) + L + l - 2."""
    # answer l sees L predicates and l answers, two of them looked for
    top = max(to_predicate, to_itself, 0.0)
    predicate, itself, other = (float(torch.tensor(s - top, dtype=torch.float64).exp()) for s in (to_predicate, to_itself, 0.0))
    total = predicate + itself + (length + answer - 2) * other
    return predicate / total, itself / total
