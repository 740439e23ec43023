"""Users' modules, good and bad."""

import torch
from torch import nn


class GRU(nn.Module):
    def __init__(self, vocabulary, length, width=16, outputs=None):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.mix = nn.Conv1d(width, width, 4, padding=3)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, outputs or vocabulary)
        self.register_buffer("scale", torch.full((width,), 0.5))

    def forward(self, tokens):
        x = self.embed(tokens) * self.scale
        return self.head(self.norm(x + torch.tanh(self.mix(x.mT)[..., : tokens.shape[-1]]).mT))


class Attention(nn.Module):
    """Tied weights, fused attention."""

    def __init__(self, vocabulary, length, width=16, heads=2):
        super().__init__()
        self.heads = heads
        self.embed = nn.Embedding(vocabulary, width)
        self.place = nn.Parameter(torch.randn(length, width) * 0.02)
        self.qkv = nn.Linear(width, 3 * width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        x = self.embed(tokens) + self.place[: tokens.shape[-1]]
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.head(x + mixed.transpose(1, 2).flatten(2))


class _Plain(nn.Module):
    def __init__(self, vocabulary, length):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, 8)
        self.head = nn.Linear(8, vocabulary)

    def inner(self, x):
        return x

    def forward(self, tokens):
        return self.head(self.inner(self.embed(tokens)))


class Dropout(_Plain):
    def __init__(self, vocabulary, length):
        super().__init__(vocabulary, length)
        self.drop = nn.Dropout(0.5)

    def inner(self, x):
        return self.drop(x)


class Rand(_Plain):
    def inner(self, x):
        return x + torch.rand(x.shape)


class BatchNorm(_Plain):
    def __init__(self, vocabulary, length):
        super().__init__(vocabulary, length)
        self.norm = nn.BatchNorm1d(8)

    def inner(self, x):
        return self.norm(x.mT).mT


class Counter(_Plain):
    calls = 0

    def inner(self, x):
        self.calls = self.calls + 1
        return x


class Running(_Plain):
    def __init__(self, vocabulary, length):
        super().__init__(vocabulary, length)
        self.register_buffer("seen", torch.zeros(8))

    def inner(self, x):
        self.seen = self.seen + x.detach().mean((0, 1))
        return x


class Last(_Plain):
    def forward(self, tokens):
        return super().forward(tokens)[:, -1]


class Fixed(_Plain):
    def __init__(self, vocabulary, length):
        super().__init__(vocabulary, length)
        self.embed.weight.requires_grad_(False)


class Sizeless(nn.Module):
    def __init__(self, width):
        super().__init__()


NotAModule = dict
