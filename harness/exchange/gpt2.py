"""A causal pre-norm transformer as a Hugging Face GPT-2 (Radford et al. 2019), and back.

GPT-2's maps are [in, out] as ours. What it lacks is folded: the scale of our position vectors into its table, the head's bias into the
bias of the last norm. What it always has and ours may lack (biases in attention, positions) is zero there.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import torch
from torch import Tensor

from harness.exchange import fit
from harness.exchange.folder import read_folder, write_folder
from harness.exchange.weights import single, take
from models.transformer.transformer import Decoder
from results.errors import StudyError
from results.plain_values import Options, Tree

# Hugging Face leaves values of its own defaults out of a config.json
_DEFAULTS: Tree = {
    "vocab_size": 50257,
    "n_positions": 1024,
    "n_embd": 768,
    "n_layer": 12,
    "n_head": 12,
    "n_inner": None,
    "activation_function": "gelu_new",
    "resid_pdrop": 0.1,
    "embd_pdrop": 0.1,
    "attn_pdrop": 0.1,
    "tie_word_embeddings": True,
}
_EXPECTED = {
    "layer_norm_epsilon": 1e-5,
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
}
_NORMS = {"ln_1": "norm1", "ln_2": "norm2"}


def to_gpt2(model: Decoder, folder: str | os.PathLike[str], slot: int = 0, about: Options | None = None) -> Path:
    """Write the replicate in `slot` as a folder that `GPT2LMHeadModel.from_pretrained` opens; `about` goes into its config.json.

    Raises ValueError naming the option of the model that GPT-2 lacks, or where the head's bias can't be folded.
    """
    fit.refuse_unfit(model, "gpt2")
    ours, config = take(model, slot), model.config
    width = config.width
    state = {"transformer.wte.weight": ours["tokens"], "transformer.wpe.weight": fit.position_table(model, slot)}
    for layer in range(config.layers):
        block, theirs = f"blocks.{layer}", f"transformer.h.{layer}"
        for name, norm in _NORMS.items():
            state[f"{theirs}.{name}.weight"], state[f"{theirs}.{name}.bias"] = _norm(ours, f"{block}.{norm}")
        parts = [f"{block}.{part}" for part in ("query", "key", "value")]
        state[f"{theirs}.attn.c_attn.weight"] = torch.cat([ours[f"{part}.weight"] for part in parts], dim=1)
        state[f"{theirs}.attn.c_attn.bias"] = torch.cat([fit.bias_of(ours, part, width) for part in parts])
        state[f"{theirs}.attn.c_proj.weight"] = ours[f"{block}.out.weight"]
        state[f"{theirs}.attn.c_proj.bias"] = fit.bias_of(ours, f"{block}.out", width)
        for name, part in (("c_fc", "up"), ("c_proj", "down")):
            state[f"{theirs}.mlp.{name}.weight"] = ours[f"{block}.{part}.weight"]
            state[f"{theirs}.mlp.{name}.bias"] = ours[f"{block}.{part}.bias"]
    head = ours["tokens"] if config.tied else ours["head.weight"].T
    gain, bias = _norm(ours, "norm")
    state["transformer.ln_f.weight"] = gain
    state["transformer.ln_f.bias"] = fold_bias(head, bias, ours["head.bias"]) if "head.bias" in ours else bias
    if not config.tied:
        state["lm_head.weight"] = head
    described = {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "dtype": "float32",
        "vocab_size": model.tokens.shape[1],
        "n_positions": model.length,
        "n_embd": width,
        "n_layer": config.layers,
        "n_head": config.heads,
        "n_inner": config.feed_forward,
        "activation_function": config.activation,
        "embd_pdrop": config.embedding_dropout,
        "attn_pdrop": config.attention_dropout,
        "resid_pdrop": config.residual_dropout,
        "layer_norm_epsilon": 1e-5,
        "bos_token_id": None,  # its defaults lie outside a small vocabulary
        "eos_token_id": None,
        "tie_word_embeddings": config.tied,
    }
    return write_folder(folder, described | ({"manyseeds": dict(about)} if about else {}), state)


def from_gpt2(folder: str | os.PathLike[str]) -> Decoder:
    """The model of a Hugging Face GPT-2 folder as a pack with R = 1. ValueError naming what ours has no counterpart of."""
    described, theirs = read_folder(folder)
    if described.get("model_type") != "gpt2":
        raise StudyError(f"{folder} holds a model of type {described.get('model_type')!r}, which is not gpt2")
    given = _DEFAULTS | described
    config = fit.imported(
        "GPT-2",
        described,
        {
            "layers": given["n_layer"],
            "width": given["n_embd"],
            "heads": given["n_head"],
            "feed_forward": given["n_inner"],
            "activation": given["activation_function"],
            "bias": True,
            "tied": given["tie_word_embeddings"],
            "head_bias": False,
            "initial": "gpt2",
            "embedding_dropout": float(given["embd_pdrop"]),
            "attention_dropout": float(given["attn_pdrop"]),
            "residual_dropout": float(given["resid_pdrop"]),
        },
        _EXPECTED,
    )
    # a GPT2Model alone is saved without the prefix; old files hold the causal mask as a buffer
    theirs = {name if name.startswith(("transformer.", "lm_head.")) else f"transformer.{name}": t for name, t in theirs.items()}
    theirs = {name: tensor for name, tensor in theirs.items() if not name.endswith((".attn.bias", ".attn.masked_bias"))}
    if config.tied:
        theirs.pop("lm_head.weight", None)  # the same table again
    ours = {"tokens": fit.pop(theirs, "transformer.wte.weight"), "positions": fit.pop(theirs, "transformer.wpe.weight")}
    for layer in range(config.layers):
        block, other = f"blocks.{layer}", f"transformer.h.{layer}"
        for name, norm in _NORMS.items():
            ours[f"{block}.{norm}.gain"] = fit.pop(theirs, f"{other}.{name}.weight")
            ours[f"{block}.{norm}.bias"] = fit.pop(theirs, f"{other}.{name}.bias")
        weights = fit.pop(theirs, f"{other}.attn.c_attn.weight").chunk(3, dim=1)
        biases = fit.pop(theirs, f"{other}.attn.c_attn.bias").chunk(3)
        for part, weight, bias in zip(("query", "key", "value"), weights, biases, strict=True):
            ours[f"{block}.{part}.weight"], ours[f"{block}.{part}.bias"] = weight, bias
        for name, part in (("attn.c_proj", "out"), ("mlp.c_fc", "up"), ("mlp.c_proj", "down")):
            ours[f"{block}.{part}.weight"] = fit.pop(theirs, f"{other}.{name}.weight")
            ours[f"{block}.{part}.bias"] = fit.pop(theirs, f"{other}.{name}.bias")
    ours["norm.gain"], ours["norm.bias"] = fit.pop(theirs, "transformer.ln_f.weight"), fit.pop(theirs, "transformer.ln_f.bias")
    if not config.tied:
        ours["head.weight"] = fit.pop(theirs, "lm_head.weight").T
    fit.refuse_rest(theirs)
    return cast(Decoder, single(config, given["vocab_size"], given["n_positions"], ours))


def fold_bias(weight: Tensor, norm_bias: Tensor, bias: Tensor) -> Tensor:
    """The bias b' [D] of the last norm with which a head without bias gives what it gave with one: W b' = W b + c.

    weight W [V, D], norm_bias b [D], bias c [V]. Of all solutions the nearest to b, in float64, then rounded. A solution for every c
    needs independent rows of W, so V ≤ D. ValueError where there is none.
    """
    wide, wanted = weight.double(), bias.double()
    if not (wide.isfinite().all() and wanted.isfinite().all()):
        raise StudyError("the weights of the head are not finite, the replicate diverged: use the format safetensors")
    shift = torch.linalg.lstsq(wide, wanted[:, None], driver="gelsd").solution[:, 0]
    folded = (norm_bias.double() + shift).float()
    error = (wide @ (folded.double() - norm_bias.double()) - wanted).abs().max()
    if not error <= 1e-5 * wanted.abs().max().clamp(min=1):
        vocabulary, width = weight.shape
        raise StudyError(
            f"model.head_bias can't be folded into a Hugging Face GPT-2, whose head has none: the {vocabulary} rows of the head are not "
            f"independent in {width} dimensions: use the format safetensors"
        )
    return folded


def _norm(tensors: Mapping[str, Tensor], name: str) -> tuple[Tensor, Tensor]:
    return tensors[f"{name}.gain"], tensors[f"{name}.bias"]
