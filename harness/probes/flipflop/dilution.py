"""T2, dilution: no attention weight exceeds exp(2σ) / (exp(2σ) + T - 1) (Liu's thesis, 3.5.5.2, Proposition 4).

The proposition is for latents of norm at most 1 and scores without a scale, where σ is the largest singular value of W_K^T W_Q. Here σ is
that value times the largest squared norm of a latent on the strings, over √k; with biases, latents have one more coordinate, 1.
"""

from dataclasses import replace
from typing import cast

import torch
from torch import Tensor

from harness.probes.flipflop.attention import of_flipflop
from harness.probes.probe import Probe, Rows, of_heads
from harness.probes.strings import see, strings
from models.linear import Linear
from models.transformer.block import Block
from models.transformer.positions import ENCODINGS
from models.transformer.transformer import Decoder, Transformer
from results.errors import StudyError
from tasks.flipflop.flipflop import FlipFlop
from tasks.flipflop.simulation import Simulation


def dilution(model: Decoder, task: FlipFlop | Simulation, count: int) -> Rows:
    """Rows of layer and head at growing lengths T: "T=64 bound", "T=64 largest" (of all strings), "T=64 mean" (of the strings' largest).

    Only rows of queries that see all T keys count, for a causal model the last. `model` is a pack with R = 1, and becomes float64.
    ValueError for rotary and alibi, whose scores are no product of latents.
    """
    encoding = ENCODINGS[model.config.positions]
    if encoding.angles is not None or encoding.bias is not None:
        raise StudyError(
            f"the dilution bound is for scores of latents alone, and positions {model.config.positions} change them"
        )
    rows = []
    for length in lengths(task.length, ENCODINGS[model.config.positions].table):
        tokens = torch.cat([batch.inputs for batch in strings(replace(task, length=length), count, count)], dim=1)
        for layer, (bound, largest, mean) in enumerate(measure(model, tokens)):
            items = [f"T={length} {item}" for item in ("bound", "largest", "mean")]
            rows += of_heads({layer: torch.stack([bound, largest, mean])}, items)
    return rows


def lengths(own: int, table: bool) -> list[int]:
    """Powers of 2 from 8, the model's own length, and twice that where it has no table of positions."""
    shorter = [2**k for k in range(3, own.bit_length()) if 2**k < own]
    return [*shorter, own] if table else [*shorter, own, 2 * own]


def measure(model: Decoder, tokens: Tensor) -> list[tuple[Tensor, Tensor, Tensor]]:
    """tokens [1, B, T] → by layer the bound, the largest weight and the mean of the strings' largest, float64 [H] each."""
    model = model.double()
    blocks = [cast(Block, block) for block in model.blocks]
    latents: list[Tensor] = []
    seen: list[Tensor] = []
    hooks = [
        block.register_forward_pre_hook(lambda block, inputs: latents.append(latent(block, inputs[0]))) for block in blocks
    ]

    def look(layer: int, weights: Tensor) -> None:
        rows = weights[0, :, :, -1:] if model.config.causal else weights[0]  # [B, H, Q, T]
        seen.append(rows.amax((-1, -2)))

    try:
        for first in range(tokens.shape[1]):  # one string at a time: T² weights a head
            see(model, tokens[:, first : first + 1], look)
    finally:
        for hook in hooks:
            hook.remove()
    layers, measured_blocks = len(blocks), []
    for layer, block in enumerate(blocks):
        norm = max(float(vectors.square().sum(-1).max()) for vectors in latents[layer::layers])
        sigma = top_singular_values(block) * norm / (block.query.weight.shape[-1] // model.config.heads) ** 0.5
        # 1 / (1 + (T - 1) exp(-2σ)): never overflows
        bound = 1 / (1 + (tokens.shape[2] - 1) * torch.exp(-2 * sigma))
        largest = torch.stack(seen[layer::layers])  # [B, 1, H]
        measured_blocks.append((bound, largest.amax((0, 1)), largest.mean((0, 1))))
    return measured_blocks


def latent(block: Block, x: Tensor) -> Tensor:
    """What queries and keys are linear maps of: [1, N, D], or [1, N, D + 1] with biases."""
    normal = block.norm1(x) if block.norm1 is not None and block.config.norm == "pre" else x
    return torch.nn.functional.pad(normal, (0, 1), value=1.0) if block.config.bias else normal


@torch.no_grad()
def top_singular_values(block: Block) -> Tensor:
    """Of W_Q W_K^T of each head, [H]; with biases, of the maps with the bias as one more row."""
    query, key = (_by_head(one, block.config.heads) for one in (block.query, block.key))
    # the triangular factors have the same singular values, and are k × k
    left, right = torch.linalg.qr(query).R, torch.linalg.qr(key).R
    return torch.linalg.svdvals(left @ right.transpose(1, 2))[:, 0]


def _by_head(linear: Linear, heads: int) -> Tensor:
    """[1, D, H·K] and its bias → [H, D (+ 1), K]."""
    weight = linear.weight[0] if linear.bias is None else torch.cat([linear.weight[0], linear.bias[:1]])
    return weight.unflatten(1, (heads, -1)).transpose(0, 1)


DILUTION = Probe(
    lambda model, task, count, settings: dilution(model, task, count),
    lambda model, task: of_flipflop(model, task) and cast(Transformer, model).positions not in ("rotary", "alibi"),
    "transformers of flipflop and flipflop_simulation, without rotary and alibi positions, that have not diverged",
)
