"""Small decoders to probe, and their attention written out in loops."""

import math

import torch

import models
from harness.draw import Draw


def build_decoder(task, seed=0, **options):
    config = models.configure("transformer", **({"layers": 1, "width": 8, "heads": 1} | options))
    return config.make(Draw(torch.tensor([seed]), "init"), task.vocabulary, task.length, outputs=task.outputs)


def heads_in_loops(model, tokens):
    """Weights and values of every head of a pre-norm decoder with biases, one string, one head and one row at a time."""
    config = model.config
    size = config.width // config.heads
    x = model.tokens[0][tokens] + model.position_vectors(len(tokens))[0]
    layers = []
    for block in model.blocks:
        mean, variance = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, unbiased=False)
        normal = (x - mean) / (variance + 1e-5).sqrt() * block.norm1.gain[0] + block.norm1.bias[0]
        q, k, v = (normal @ part.weight[0] + part.bias[0] for part in (block.query, block.key, block.value))
        found, mixed = [], []
        for head in range(config.heads):
            own = slice(head * size, (head + 1) * size)
            weights = torch.zeros(len(tokens), len(tokens), dtype=x.dtype)
            for i in range(len(tokens)):
                scores = [math.exp(float(q[i, own] @ k[j, own]) / math.sqrt(size)) for j in range(i + 1)]
                weights[i, : i + 1] = torch.tensor(scores) / sum(scores)
            found.append((weights, v[:, own].norm(dim=-1)))
            mixed.append(weights @ v[:, own])
        x = x + torch.cat(mixed, -1) @ block.out.weight[0] + block.out.bias[0]
        mean, variance = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, unbiased=False)
        normal = (x - mean) / (variance + 1e-5).sqrt() * block.norm2.gain[0] + block.norm2.bias[0]
        hidden = torch.nn.functional.gelu(normal @ block.up.weight[0] + block.up.bias[0])
        x = x + hidden @ block.down.weight[0] + block.down.bias[0]
        layers.append(found)
    return layers


def values_by_place(rows):
    return {(row["layer"], row["head"], row["item"]): row["value"] for row in rows}
