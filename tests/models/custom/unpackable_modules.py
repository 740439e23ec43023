"""Users' modules that run alone and not in a pack, or that do what only a pack's owner may."""

import torch
from torch.utils.checkpoint import checkpoint

from tests.models.custom.custom_modules import Plain


class Sign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.sign()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class OwnFunction(Plain):
    def inner(self, x):
        return Sign.apply(x)


class Checkpointed(Plain):
    def inner(self, x):
        return checkpoint(torch.tanh, x, use_reentrant=False)


class Item(Plain):
    def inner(self, x):
        return 2 * x if x.sum().item() > 0 else x


class Listed(Plain):
    def inner(self, x):
        return torch.stack([string * sum(string[0].tolist()) for string in x])


class Branching(Plain):
    def inner(self, x):
        if (x.mean(-1) > 0).all():
            return 2 * x
        return x


class Chosen(Plain):
    def inner(self, x):
        return torch.stack([string + torch.nonzero(string > 0).sum() for string in x])


class Selected(Plain):
    def inner(self, x):
        return torch.stack([string + torch.masked_select(string, string > 0).sum() for string in x])


class Compared(Plain):
    def inner(self, x):
        return torch.stack([string if torch.equal(string, string) else 2 * string for string in x])


class Stored(Plain):
    def inner(self, x):
        return x * min(x.untyped_storage().size(), 1)


class Shifted(Plain):
    def inner(self, x):
        shifted = torch.zeros(x.shape)
        shifted[:, 1:] = x[:, :-1]
        return shifted


class Summed(Plain):
    def inner(self, x):
        total = torch.zeros(x.shape[0], x.shape[2])
        for step in range(x.shape[1]):
            total += x[:, step]
        return x + total[:, None]


class Exchanged(Plain):
    def inner(self, x):
        return x + torch.add(x.detach(), 1, out=torch.empty_like(x))


class Autocast(Plain):
    def forward(self, tokens):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return super().forward(tokens).float()


class WithoutAutocast(Plain):
    """What a study in bf16 may need, and no change of precision in one of fp32."""

    def forward(self, tokens):
        with torch.autocast("cpu", enabled=False):
            return super().forward(tokens)


class Capped(Plain):
    def forward(self, tokens):
        return super().forward(tokens.clamp_(max=1))
