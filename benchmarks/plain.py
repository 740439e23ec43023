"""The same models for one replicate in plain PyTorch, trained by torch.optim.AdamW.

Each has two variants: one computes everything, the other the last layer's queries, projections and head only at the needed positions.
"""

from collections.abc import Callable, Iterable
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, gelu, linear, scaled_dot_product_attention

from benchmarks.cases import Case, pack
from harness.draw import Draw
from harness.machine.precision import autocast, set_matmul
from harness.study.training_options import Train
from harness.training.training_strings import Feed, Strings
from models.linear import Linear, Norm
from models.lstm import LSTM
from models.mlp import MLP
from models.transformer.transformer import Transformer

_COVERED = ("layers", "width", "heads", "head_bias")  # options of the transformer that the plain one knows


class PlainTransformer(nn.Module):
    """tokens [B, T] → logits [B, T, V]; with positions [B, N] → [B, N, V]."""

    def __init__(self, config: Transformer, vocabulary: int, length: int):
        super().__init__()
        if config != Transformer(**{name: getattr(config, name) for name in _COVERED}):
            raise ValueError(f"the plain transformer of the benchmark has only the options {', '.join(_COVERED)}: {config}")
        self.scale = config.width**-0.5
        self.tokens = nn.Embedding(vocabulary, config.width)
        self.positions = nn.Embedding(length, config.width)
        self.blocks = nn.ModuleList(PlainBlock(config.width, config.heads) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, vocabulary, bias=config.head_bias)

    def forward(self, tokens: Tensor, positions: Tensor | None = None) -> Tensor:
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]] * self.scale
        for block in self.blocks[:-1]:
            x = block(x)
        return self.head(self.norm(self.blocks[-1](x, positions)))


class PlainBlock(nn.Module):
    """x [B, T, D] → [B, T, D], or at positions [B, N] → [B, N, D]."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor, positions: Tensor | None = None) -> Tensor:
        normal = self.norm1(x)
        if positions is None:
            query, key, value = (self._heads(part) for part in self.qkv(normal).chunk(3, -1))
            mixed = scaled_dot_product_attention(query, key, value, is_causal=True)
        else:
            width, index = x.shape[-1], positions[..., None].expand(-1, -1, x.shape[-1])
            weight = self.qkv.weight
            query = self._heads(linear(normal.gather(1, index), weight[:width]))
            key, value = (self._heads(part) for part in linear(normal, weight[width:]).chunk(2, -1))
            seen = torch.arange(x.shape[1], device=x.device) <= positions[:, None, :, None]
            mixed = scaled_dot_product_attention(query, key, value, attn_mask=seen)
            x = x.gather(1, index)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.down(gelu(self.up(self.norm2(x))))

    def _heads(self, x: Tensor) -> Tensor:
        """[B, T, D] → [B, H, T, K]"""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)


class PlainLSTM(nn.Module):
    """tokens [B, T] → logits [B, T, V]; with positions [B, N] the head is computed there alone."""

    def __init__(self, config: LSTM, vocabulary: int):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, config.width)
        self.lstm = nn.LSTM(config.width, config.width, config.layers, batch_first=True)
        self.head = nn.Linear(config.width, vocabulary)

    def forward(self, tokens: Tensor, positions: Tensor | None = None) -> Tensor:
        states, _ = self.lstm(self.tokens(tokens))
        if positions is not None:
            states = states.gather(1, positions[..., None].expand(-1, -1, states.shape[-1]))
        return self.head(states)


class PlainMLP(nn.Module):
    """bits [B, T] → logits [B, 1, V] of the last position, the only one that has any."""

    def __init__(self, config: MLP, length: int):
        super().__init__()
        if config.layers != 1:
            raise ValueError(f"the plain mlp of the benchmark has one hidden layer, not {config.layers}")
        self.hidden, self.head = nn.Linear(length, config.width), nn.Linear(config.width, 2)

    def forward(self, tokens: Tensor, positions: Tensor | None = None) -> Tensor:
        return self.head(torch.relu(self.hidden((1 - 2 * tokens).to(self.head.weight.dtype))))[:, None]


def make(case: Case) -> nn.Module:
    """The plain model of a case, with torch's own initial weights."""
    model, task = case.model, case.task
    if isinstance(model, Transformer):
        return PlainTransformer(model, task.vocabulary, task.length)
    return PlainLSTM(model, task.vocabulary) if isinstance(model, LSTM) else PlainMLP(model, task.length)


def has_variants(case: Case) -> bool:
    """Whether computing all positions differs from computing the needed ones; the MLP answers once a string."""
    return not isinstance(case.model, MLP)


def packed_model(case: Case, first: int, size: int, device: torch.device) -> nn.Module:
    """The packed model of the seeds `first` …, before training."""
    draw = Draw(torch.arange(first, first + size, device=device), "init")
    return case.model.make(draw, case.task.vocabulary, case.task.length, case.task.outputs)


@torch.no_grad()
def load(plain: nn.Module, packed: Any, slot: int) -> None:
    """Give the plain model the weights of one replicate of a packed one."""
    if isinstance(plain, PlainTransformer):
        plain.tokens.weight.copy_(packed.tokens[slot])
        plain.positions.weight.copy_(packed.positions[slot])
        blocks: Any = plain.blocks
        for block, theirs in zip(blocks, packed.blocks, strict=True):
            qkv = [theirs.query.weight[slot].T, theirs.key.weight[slot].T, theirs.value.weight[slot].T]
            block.qkv.weight.copy_(torch.cat(qkv))
            for name in ("out", "up", "down"):
                _load_linear(getattr(block, name), getattr(theirs, name), slot)
            for name in ("norm1", "norm2"):
                _load_norm(getattr(block, name), getattr(theirs, name), slot)
        _load_norm(plain.norm, packed.norm, slot)
        _load_linear(plain.head, packed.head, slot)
    elif isinstance(plain, PlainLSTM):
        plain.tokens.weight.copy_(packed.tokens[slot])
        for number, layer in enumerate([packed, *packed.upper]):
            for name, theirs in (
                ("weight_ih", layer.input),
                ("weight_hh", layer.hidden),
                ("bias_ih", layer.input_bias),
                ("bias_hh", layer.hidden_bias),
            ):
                getattr(plain.lstm, f"{name}_l{number}").copy_(theirs[slot].T if theirs.dim() == 3 else theirs[slot])
        _load_linear(plain.head, packed.head, slot)
    elif isinstance(plain, PlainMLP):
        _load_linear(plain.hidden, packed.layers[0], slot)
        _load_linear(plain.head, packed.head, slot)
    else:
        raise ValueError(f"{type(plain).__name__} is not a plain model of the benchmark")


def _load_linear(linear: nn.Linear, theirs: Linear, slot: int) -> None:
    linear.weight.copy_(theirs.weight[slot].T)
    if linear.bias is not None:
        linear.bias.copy_(cast(Tensor, theirs.bias)[slot])


def _load_norm(norm: nn.LayerNorm, theirs: Norm, slot: int) -> None:
    norm.weight.copy_(theirs.gain[slot])
    norm.bias.copy_(theirs.bias[slot])


def loss_of(logits: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
    """Mean cross-entropy over the scored positions of one replicate: [B, N, V], [B, N], [B, N] → scalar."""
    surprise = cross_entropy(logits.float().flatten(0, 1), targets.flatten(), reduction="none")
    return (surprise * weights.flatten()).sum() / weights.sum()


def strings_of(case: Case, strings: Strings, slot: int = 0) -> tuple[Tensor, Tensor | None, Tensor, Tensor]:
    """tokens [B, T], positions [B, N] or None, targets [B, N], weights [B, N] of one replicate."""
    wanted = strings.needed
    targets, weights = wanted.targets[slot], wanted.weights[slot]
    if not has_variants(case):
        return strings.inputs[slot], None, targets[:, -1:], weights[:, -1:]
    return strings.inputs[slot], None if wanted.order is None else wanted.order[slot], targets, weights


def adamw(parameters: Iterable[nn.Parameter], train: Train) -> torch.optim.Optimizer:
    """Fused, which every device here has."""
    return torch.optim.AdamW(parameters, train.lr, train.betas, train.eps, train.weight_decay, fused=True)


def start(
    case: Case,
    needed: bool,
    device: torch.device,
    precision: str,
    compiled: bool = False,
    seed: int = 0,
    model: nn.Module | None = None,
) -> Callable[[], Tensor]:
    """A function that takes one training step of one replicate and returns its loss.

    The strings are the replicate's own, drawn as the harness draws them. model: instead of the plain one.
    """
    set_matmul(precision)
    feed = Feed(pack(case, 1, needed, precision, first=seed), device)
    if model is None:
        model = make(case)
        load(model, packed_model(case, seed, 1, torch.device("cpu")), 0)
    model.to(device)
    optimizer = adamw(model.parameters(), feed.train)
    forward = torch.compile(model, dynamic=False) if compiled else model
    step = 0

    def advance() -> Tensor:
        nonlocal step
        step += 1
        tokens, positions, targets, weights = strings_of(case, feed.at(step))
        with autocast(device, precision):
            logits = forward(tokens) if positions is None else forward(tokens, positions)
        loss = loss_of(logits, targets, weights)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return advance
