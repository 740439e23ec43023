"""The same decoder on x-transformers, the library that the flip-flop studies of 2023 were made with."""

import importlib.util
from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor, nn

from benchmarks.cases import Case
from benchmarks.plain import start as start_plain
from models.transformer.transformer import Transformer


def missing(case: Case) -> str | None:
    """Why this peer has no row for a case, or None."""
    if not isinstance(case.model, Transformer):
        return "x-transformers has no such model"
    return None if importlib.util.find_spec("x_transformers") else "x-transformers is not installed"


def make(case: Case) -> nn.Module:
    """Its defaults at the shape of the case; its norms and its head have no bias. Flash attention is torch's fused one."""
    from x_transformers import Decoder, TransformerWrapper

    model = cast(Transformer, case.model)
    layers = Decoder(
        dim=model.width, depth=model.layers, heads=model.heads, attn_dim_head=model.width // model.heads, attn_flash=True
    )
    return TransformerWrapper(num_tokens=case.task.vocabulary, max_seq_len=case.task.length, attn_layers=layers)


@torch.no_grad()
def load(peer: nn.Module, packed: Any, slot: int) -> None:
    """Give it the weights of one replicate of a packed model."""
    theirs = dict(peer.named_parameters())
    pairs = {
        "token_emb.emb.weight": packed.tokens[slot],
        "pos_emb.emb.weight": packed.positions[slot],
        "attn_layers.final_norm.gamma": packed.norm.gain[slot] - 1,  # stored as offsets from one
        "to_logits.weight": packed.head.weight[slot].T,
    }
    for number, block in enumerate(packed.blocks):
        attention, forward = f"attn_layers.layers.{2 * number}", f"attn_layers.layers.{2 * number + 1}"
        pairs[f"{attention}.0.0.gamma"] = block.norm1.gain[slot] - 1
        pairs[f"{forward}.0.0.gamma"] = block.norm2.gain[slot] - 1
        for name, ours in (("to_q", block.query), ("to_k", block.key), ("to_v", block.value), ("to_out", block.out)):
            pairs[f"{attention}.1.{name}.weight"] = ours.weight[slot].T
        for name, ours in (("ff.0.0", block.up), ("ff.2", block.down)):
            pairs[f"{forward}.1.{name}.weight"] = ours.weight[slot].T
            pairs[f"{forward}.1.{name}.bias"] = ours.bias[slot]
    unmatched = set(theirs) - set(pairs) - {"pos_emb.scale"}  # starts at what ours is fixed to
    if unmatched:
        raise ValueError(f"this version of x-transformers has parameters that the benchmark does not know: {sorted(unmatched)}")
    for name, value in pairs.items():
        theirs[name].copy_(value)


def start(case: Case, device: torch.device, precision: str, compiled: bool = False) -> Callable[[], Tensor]:
    """A function that takes one training step per call; x-transformers computes all positions and can't be asked for some."""
    return start_plain(case, False, device, precision, compiled, model=make(case))
