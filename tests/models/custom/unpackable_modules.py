"""Users' modules that run alone and not in a pack, or that do what only a pack's owner may."""

import torch
from torch.utils.checkpoint import checkpoint

from tests.models.custom import unpackable_layers
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


class Masked(Plain):
    def inner(self, x):
        positive = x.clone()
        positive[positive < 0] = 0
        return positive


class Repeated(Plain):
    def inner(self, x):
        return x + torch.stack([string.repeat_interleave((string[:, 0] > 0).long(), 0).sum() for string in x])[:, None, None]


class Asserting(Plain):
    def forward(self, tokens):
        assert (tokens < 5).all()
        return super().forward(tokens)


class Encoded(Plain):
    def forward(self, tokens):
        return super().forward(tokens) + torch.zeros(*tokens.shape, 5).scatter_(-1, tokens[..., None], 1)


class Counted(Plain):
    def forward(self, tokens):
        return super().forward(tokens) + torch.stack(
            [torch.zeros(5).index_add_(0, string, torch.ones(len(string))) for string in tokens]
        ).unsqueeze(1)


class Placed(Plain):
    def forward(self, tokens):
        return super().forward(tokens) + torch.stack([self.seen(string) for string in tokens])[:, None]

    def seen(self, string):
        seen = torch.zeros(5)
        seen[string] = 1
        return seen


class OneHot(Plain):
    def forward(self, tokens):
        return super().forward(tokens) + torch.nn.functional.one_hot(tokens)


class Generated(Plain):
    """Draws the same numbers in each call, from a generator of its own."""

    def inner(self, x):
        return x * torch.rand(8, generator=torch.Generator().manual_seed(1))


class Ruleless(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x.sign()

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class RulelessFunction(Plain):
    def inner(self, x):
        return Ruleless.apply(x)


class DataRead(Plain):
    def inner(self, x):
        return x + x.data


class DataSet(Plain):
    def inner(self, x):
        other = 1 * x
        other.data = x.detach()
        return x + other


class Sparse(Plain):
    def inner(self, x):
        return torch.stack([(torch.eye(8).to_sparse() @ string.mT).mT for string in x])


class SparseMade(Plain):
    def forward(self, tokens):
        return super().forward(tokens) + torch.stack([self.counts(string) for string in tokens])[:, None]

    def counts(self, string):
        return torch.sparse_coo_tensor(string[None], torch.ones(len(string)), (5,), check_invariants=False).to_dense()


class Adapting(Plain):
    """Learns within a string, as test-time training does."""

    def inner(self, x):
        with torch.enable_grad():
            weight = self.head.weight
            return x + torch.stack([torch.autograd.grad((string @ weight.T).sum(), weight)[0].mean(0) for string in x])[:, None]


class AdaptingCopy(Plain):
    def inner(self, x):
        with torch.enable_grad():
            bias = torch.zeros_like(x).requires_grad_()
            return x + torch.autograd.grad((x + bias).square().sum(), bias, create_graph=True)[0]


class AdaptingAlways(Plain):
    """Forgets that evaluation keeps no gradients."""

    def inner(self, x):
        return x + torch.autograd.grad(x.square().sum(), x, create_graph=True)[0]


class Outside(Plain):
    """Fails in code of another file of the user's."""

    def inner(self, x):
        return unpackable_layers.first(x)


class Exchanged(Plain):
    def inner(self, x):
        return x + torch.add(x.detach(), 1, out=torch.empty_like(x))


class Joined(Plain):
    def inner(self, x):
        return x + torch.cat([x.detach()], out=torch.empty_like(x))


class Exported(Plain):
    def inner(self, x):
        return x + torch.from_dlpack(x.detach())


class Autocast(Plain):
    def forward(self, tokens):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return super().forward(tokens).float()


class AutocastDecorator(Plain):
    @torch.autocast("cpu", dtype=torch.bfloat16)
    def inner(self, x):
        return (x @ x.mT @ x).float()


class WithoutAutocast(Plain):
    """What a study in bf16 may need, and no change of precision in one of fp32."""

    def forward(self, tokens):
        with torch.autocast("cpu", enabled=False):
            return super().forward(tokens)


class Capped(Plain):
    def forward(self, tokens):
        return super().forward(tokens.clamp_(max=1))


class Hiding(Plain):
    def forward(self, tokens):
        tokens[tokens == 1] = 0
        return super().forward(tokens)


class HidingCarefully(Plain):
    """Takes any error to mean something else."""

    def forward(self, tokens):
        try:
            tokens[:, 0] = 0
        except Exception:
            tokens = tokens.clone()
        return super().forward(tokens)
