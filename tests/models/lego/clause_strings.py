"""Sentences of a cyclic group, as clauses."""

import torch

VOCABULARY = 12 + 3 + 3 + 1


def clause_sentences(batch, length, names=12, seed=0):
    """Sentences of the cyclic group of order 3: [B, 2L + 1, 5], predicates, then answers; blank 0, then names, actions, values."""
    generator = torch.Generator().manual_seed(seed)
    name = torch.rand(batch, names, generator=generator).argsort(1)[:, : length + 1]
    action = torch.randint(0, 3, (batch, length), generator=generator)
    value = torch.cat([torch.randint(0, 3, (batch, 1), generator=generator), action], 1).cumsum(1) % 3
    out = torch.zeros(batch, 2 * length + 1, 5, dtype=torch.long)
    out[:, :length] = torch.stack([name[:, 1:] + 1, action + names + 1, name[:, :-1] + 1, 0 * action, 0 * action], -1)
    out[:, length:, 3], out[:, length:, 4] = name + 1, value + names + 4
    return out
