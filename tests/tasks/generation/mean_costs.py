"""What rejection costs on average, exactly: the numbers that samplers are held against."""

import torch
from torch import Tensor

from tasks.generation.processes import Process, accepted, guided, visits


def tokenwise_queries(process: Process, value: Tensor) -> Tensor:
    """Mean number of tokens that tokenwise rejection draws for one string, [R]; the verifier is asked about each of them."""
    allowed = accepted(value)
    law = guided(process, allowed)
    chance = torch.stack([(process.law[:, h] * process.onward(allowed, h)).sum(-1) for h in range(process.horizon)], dim=1)
    seen = visits(process, law)[:, :-1]
    return torch.where(seen > 0, seen / chance, 0.0).sum((1, 2))


def rejection_queries(process: Process) -> Tensor:
    """Mean number of tokens that rejection of whole strings draws until one has a reward, [R]."""
    chance = (visits(process, process.law)[:, -1] * accepted(process.reward)).sum(-1)
    return process.horizon / chance
