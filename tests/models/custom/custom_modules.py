"""Users' modules, good and bad."""

import random

import numpy
import torch
from torch import nn

WEIGHTS = {"calls": 0, "steps": 0}


class Conv(nn.Module):
    """A buffer that is the same for every seed, and the number of outputs on request."""

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


class Plain(nn.Module):
    """A map of each token by itself; the classes below put something between."""

    def __init__(self, vocabulary, length):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, 8)
        self.head = nn.Linear(8, vocabulary)
        self.more()

    def more(self):
        """What else the module holds."""

    def inner(self, x):
        return x

    def forward(self, tokens):
        return self.head(self.inner(self.embed(tokens)))


class Recurrent(Plain):
    def __init__(self, vocabulary, length, cell="GRU", layers=1, bidirectional=False, bias=True):
        super().__init__(vocabulary, length)
        width = 4 if bidirectional else 8
        self.core = getattr(nn, cell)(8, width, layers, batch_first=True, bidirectional=bidirectional, bias=bias)

    def inner(self, x):
        return self.core(x)[0]


class Projected(Plain):
    def more(self):
        self.core = nn.LSTM(8, 12, batch_first=True, proj_size=8)

    def inner(self, x):
        return self.core(x)[0]


class Cell(Plain):
    def more(self):
        self.core = nn.GRUCell(8, 8)

    def inner(self, x):
        state, out = torch.zeros_like(x[:, 0]), []
        for t in range(x.shape[1]):
            state = self.core(x[:, t], state)
            out.append(state)
        return torch.stack(out, 1)


class Encoder(Plain):
    """torch's own layer, with a mask; dropout at 0 draws nothing."""

    def __init__(self, vocabulary, length):
        super().__init__(vocabulary, length)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(length))

    def inner(self, x):
        return self.layer(x, src_mask=self.mask[: x.shape[1], : x.shape[1]])


class Features(Plain):
    """A constant that differs between replicates, beside one that does not."""

    def more(self):
        self.register_buffer("random", torch.randn(8))
        self.register_buffer("same", torch.arange(8.0))

    def inner(self, x):
        return torch.sin(x * self.random + self.same)


class Open(Plain):
    """Any further option."""

    def __init__(self, vocabulary, length, **options):
        super().__init__(vocabulary, length)
        assert "outputs" not in options


class Needy(Plain):
    """`outputs` without a default, an option without one, and a name that Packed might have used."""

    rev = 3

    def __init__(self, vocabulary, length, outputs, width):
        super().__init__(vocabulary, length)
        self.head = nn.Linear(8, outputs)
        self.path = nn.Parameter(torch.ones(width))

    def inner(self, x):
        return x * self.path.mean()


class Dropout(Plain):
    def more(self):
        self.drop = nn.Dropout(0.5)

    def inner(self, x):
        return self.drop(x)


class Rand(Plain):
    def inner(self, x):
        return x + torch.rand(x.shape)


class Undefined(Plain):
    def inner(self, x):
        return x - x.detach() + torch.log(-x.square() - 1)


class NumpyRandom(Plain):
    def inner(self, x):
        return x * float(numpy.random.rand())


class Depth(Plain):
    """Stochastic depth that hardly ever has an effect."""

    def inner(self, x):
        return 2 * x if random.random() < 1e-9 else x


class Seen(Plain):
    """A generator of its own, whose state it moves."""

    def more(self):
        self.generator = torch.Generator().manual_seed(1)

    def inner(self, x):
        return x * torch.rand(8, generator=self.generator)


class BatchNorm(Plain):
    def more(self):
        self.norm = nn.BatchNorm1d(8)

    def inner(self, x):
        return self.norm(x.mT).mT


class BatchStatistics(Plain):
    def more(self):
        self.norm = nn.BatchNorm1d(8, track_running_stats=False)

    def inner(self, x):
        return self.norm(x.mT).mT


class Squeezed(Plain):
    """A string that is alone loses its axis."""

    def inner(self, x):
        return x.squeeze(0)


class Counter(Plain):
    calls = 0

    def inner(self, x):
        self.calls = self.calls + 1
        return x


class Cache(Plain):
    def more(self):
        self._cache = {}

    def inner(self, x):
        self._cache["last"] = x.detach()
        return x


class Running(Plain):
    def more(self):
        self.register_buffer("seen", torch.zeros(8))

    def inner(self, x):
        self.seen = self.seen + x.detach().mean((0, 1))
        return x


class Shrinking(Plain):
    def inner(self, x):
        with torch.no_grad():
            self.head.weight.mul_(0.99)
        return x


class Elsewhere(Plain):
    def inner(self, x):
        WEIGHTS["calls"] += 1
        return x * WEIGHTS["calls"]


class Slowly(Plain):
    """A counter of the class, which two calls hardly show."""

    count = 0

    def inner(self, x):
        Slowly.count += 1
        return x * (1 + Slowly.count / 5000)


class Anneal:
    def __init__(self):
        self.count = 0

    def __call__(self):
        self.count += 1
        return 1 + self.count / 5000


class Annealed(Plain):
    """A counter of an object that is no module."""

    def more(self):
        self.scale = Anneal()

    def inner(self, x):
        return x * self.scale()


class Steadily(Plain):
    """A counter of the file that grows by a thousandth: a third call shows it, and a second hardly does."""

    def inner(self, x):
        WEIGHTS["steps"] += 1
        return x * (1 + WEIGHTS["steps"] / 1000)


class Once(Plain):
    """Can be called once alone."""

    def more(self):
        self.calls = iter([1])

    def inner(self, x):
        return x * next(self.calls)


class OnlyTraining(Plain):
    def inner(self, x):
        return 2 * x if self.training else x


class ForUse(Plain):
    """Returns something else in evaluation mode."""

    def forward(self, tokens):
        logits = super().forward(tokens)
        return logits if self.training else (logits, None)


class Rested(Plain):
    """A part whose mode is set by hand, and stays."""

    def more(self):
        self.drop = nn.Dropout(0.5).eval()

    def inner(self, x):
        return self.drop(x)


class Clamped(Plain):
    """Writes to a weight, and leaves the values as they are while they are small."""

    def inner(self, x):
        with torch.no_grad():
            self.head.weight.clamp_(-9, 9)
        return x


class Blocked(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        raise RuntimeError("no way back")


class OneWay(Plain):
    def inner(self, x):
        return Blocked.apply(x)


class Compiled(Plain):
    def more(self):
        self.head = torch.compile(self.head)


class Padded(Plain):
    def __init__(self, vocabulary, length):
        super().__init__(vocabulary, length)
        self.embed = nn.Embedding(vocabulary, 8, padding_idx=0)


class Half(Plain):
    def forward(self, tokens):
        return super().forward(tokens).half()


class Double(Plain):
    def more(self):
        self.double()


class Complex(Plain):
    def more(self):
        self.turn = nn.Parameter(torch.ones(8, dtype=torch.cfloat))


class SparseTable(Plain):
    def more(self):
        self.table = nn.Parameter(torch.eye(8).to_sparse())


class Projection(Plain):
    def more(self):
        self.projection = torch.randn(8)

    def inner(self, x):
        return x * self.projection


class Aside(Plain):
    """Its weights, but not by their names: a pack would train none of them."""

    def more(self):
        self.kept = [self.head.weight]

    def forward(self, tokens):
        return nn.functional.linear(self.embed(tokens), self.kept[0])


class NumpyMade(Plain):
    def more(self):
        self.gain = nn.Parameter(torch.tensor(numpy.random.randn(8), dtype=torch.float32))

    def inner(self, x):
        return x * self.gain


class Reseeding(Plain):
    def __init__(self, vocabulary, length):
        torch.manual_seed(0)
        super().__init__(vocabulary, length)


class Growing(Plain):
    """Holds another number each time that it is built, whatever the seed."""

    made = 0

    def more(self):
        Growing.made += 1
        self.number = Growing.made


class Colliding(Plain):
    def more(self):
        self.head__weight = nn.Parameter(torch.ones(8))


class Last(Plain):
    def forward(self, tokens):
        return super().forward(tokens)[:, -1]


class Whole(Plain):
    def forward(self, tokens):
        return super().forward(tokens).argmax(-1, keepdim=True).expand(-1, -1, 5)


class Fixed(Plain):
    def more(self):
        self.embed.weight.requires_grad_(False)


class Integers(Plain):
    def more(self):
        self.table = nn.Parameter(torch.arange(8), requires_grad=False)


class Sparse(Plain):
    def __init__(self, vocabulary, length):
        super().__init__(vocabulary, length)
        self.embed = nn.Embedding(vocabulary, 8, sparse=True)


class Lazy(Plain):
    def __init__(self, vocabulary, length):
        super().__init__(vocabulary, length)
        self.head = nn.LazyLinear(vocabulary)


class Heads(Plain):
    def __init__(self, vocabulary, length, heads=3):
        super().__init__(vocabulary, length)
        if 8 % heads:
            raise RuntimeError(f"{heads} heads do not divide 8")


class Placed(Plain):
    """A tensor on the CPU, wherever the tokens are."""

    def inner(self, x):
        return x + torch.arange(8.0)


class Mismatched(Plain):
    def inner(self, x):
        return x @ torch.ones(3, 3)


class Named(Plain):
    def rev(self):
        return 1


class Sizeless(nn.Module):
    def __init__(self, width):
        super().__init__()


NotAModule = dict
