"""Weights of the simplified two-layer model that make it a k-gram estimator (Varre et al. 2025, equations 8 and 10). All float64."""

import math
from typing import Any

import torch

import models
from harness.draw import Draw
from tasks.ngrams.in_context import InContextNgram


def model(task: InContextNgram, replicates: int = 1) -> Any:
    """The simplified model for a task with all weights 0."""
    shape = {"vocabulary": task.alphabet, "length": task.length, "m": max(1, task.order - 1)}
    made = models.build("simple_disentangled", Draw(torch.zeros(replicates, dtype=torch.int64), "init"), **shape)
    made = made.double()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.zero_()
    return made


def k_gram(task: InContextNgram, k: int, c: float, replicates: int = 1) -> Any:
    """θ*_k of equations 8 and 10: head h copies lag h, and a key's score is c times the number of lags below k that match."""
    made, identity = model(task, replicates), torch.eye(task.alphabet, dtype=torch.float64)
    block = [slice(h * task.alphabet, (h + 1) * task.alphabet) for h in range(task.order)]
    rows = torch.arange(task.length)
    with torch.no_grad():
        for h in range(1, k):
            made.scores[:, h - 1, rows, (rows - h).clamp(min=0)] = c
            made.value[:, h - 1] = identity
            made.query[:, block[h - 1], block[h]] = math.sqrt(c) * identity
            made.key[:, block[h], block[h]] = math.sqrt(c) * identity
    return made
