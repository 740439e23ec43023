"""A transformer and an LSTM on flip-flop strings in plain PyTorch, one seed at a time: what `here.yaml` does with packs.

python plain.py lstm 0
"""

import sys

import torch
from torch import nn
from torch.nn.functional import cross_entropy, gelu, scaled_dot_product_attention

T, WIDTH, BATCH, STEPS, WARMUP = 32, 32, 16, 300, 20
RATES = {"transformer": 3e-3, "lstm": 1e-3}
SETS = {"training_law": (0.8, 1), "sparse": (0.95, 2)}  # probability of an ignored instruction, seed of the strings


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (2, -1)).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, -1))
        x = x + self.out(scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.down(gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(5, WIDTH), nn.Embedding(T, WIDTH)
        nn.init.normal_(self.tokens.weight, std=(2 / WIDTH) ** 0.5)
        self.blocks = nn.Sequential(Block(), Block())
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 5)

    def forward(self, tokens):
        return self.head(self.norm(self.blocks(self.tokens(tokens) + self.positions.weight * WIDTH**-0.5)))


class LSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.lstm = nn.Embedding(5, WIDTH), nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.head = nn.Linear(WIDTH, 5)

    def forward(self, tokens):
        return self.head(self.lstm(self.tokens(tokens))[0])


def strings(count, p_ignore, generator):
    """Tokens [count, T] and the positions to answer: a read (1) asks for the bit of the last write (0); 2 is ignored."""
    left = (1 - p_ignore) / 2
    law = torch.tensor([left, left, p_ignore])
    orders = law.expand(count, -1).multinomial(T // 2, replacement=True, generator=generator)
    orders[:, 0], orders[:, -1] = 0, 1
    bits = torch.randint(2, orders.shape, generator=generator)
    last_write = torch.where(orders == 0, torch.arange(T // 2), 0).cummax(1).values
    bits = torch.where(orders == 1, bits.gather(1, last_write), bits)
    tokens = torch.stack([orders, bits + 3], -1).flatten(1)
    return tokens, tokens == 1


def measure(seed, settings):
    """Train one seed, and return its share of wrong reads on each set."""
    torch.manual_seed(seed)
    model, generator = {"transformer": Transformer, "lstm": LSTM}[settings["model"]](), torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), RATES[settings["model"]], (0.9, 0.999), 1e-8, weight_decay=0.1)
    rate = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda done: min((done + 1) / WARMUP, 1) * min(1, (STEPS - done) / (STEPS + 1 - WARMUP))
    )
    for _ in range(settings.get("steps", STEPS)):
        tokens, read = strings(BATCH, 0.8, generator)
        loss = cross_entropy(model(tokens)[read], tokens.roll(-1, 1)[read])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rate.step()
    for name, (p_ignore, set_seed) in SETS.items():
        tokens, read = strings(1000, p_ignore, torch.Generator().manual_seed(set_seed))
        with torch.no_grad():
            wrong = model(tokens)[read].argmax(-1) != tokens.roll(-1, 1)[read]
        yield {"set": name, "errors": wrong.float().mean(), "count": wrong.numel()}


if __name__ == "__main__":
    print(*measure(int(sys.argv[2]), {"model": sys.argv[1]}), sep="\n")
